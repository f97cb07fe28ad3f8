//! Sequences: tasks that are recorded once and replayed.
//!
//! [`Runtime::record`](crate::Runtime::record) gives its closure a [`SequenceBody`], whose tasks are built as
//! those of the runtime ([`builder`]; [`host`] has host tasks; [`on_device`] has those with a shader, or with
//! other kernels for devices than for the host). Each becomes [`units`] without its types, in the
//! [`recorder`], and a [`template`]. On the host of one node, the sequence is [`planned`]: when the closure
//! returns, the graph derives the order of the units, once. A [`replay`](Sequence::replay) is one task with
//! the accesses of all, whose body executes the units ([`replays`]): see [`replay`](crate::execute::replay).
//! With several nodes, and if a task runs on a device or blocks, a replay is [`submitted`]: the templates
//! become tasks, if all that they [need](needs) is there.

pub(crate) mod builder;
pub(crate) mod host;
mod needs;
pub(crate) mod on_device;
mod owner;
mod planned;
mod recorder;
mod replays;
mod submitted;
pub(crate) mod template;
mod units;

pub use self::{owner::DeadlineExceeded, replays::ReplayUntil};

use self::{
    builder::NewSequenceTask, host::NewSequenceTasks, needs::Needs, owner::Owner, planned::Planned,
    recorder::Recorder, submitted::Submitted,
};
use super::task::{NewTask, batch::NewTasks};
use crate::{
    data::{buffer::Buffer, element::Element, view::ReadView},
    error::Error,
    execute::{Core, GroupHandle, Running, TaskHandle},
    label::TaskLabel,
};
use std::{borrow::Cow, cell::RefCell, fmt, panic::Location, sync::Arc, time::Instant};

/// What the closure of [`Runtime::record`](crate::Runtime::record) records tasks with.
#[derive(Debug)]
pub struct SequenceBody<'r> {
    core: &'r Arc<Core>,
    group: Option<&'r GroupHandle>,
    recorder: &'r RefCell<Recorder>,
}

impl<'r> SequenceBody<'r> {
    /// Begins a task of the sequence. The name is for messages.
    #[track_caller]
    pub fn task(&self, name: impl Into<Cow<'static, str>>) -> NewSequenceTask<'r> {
        let task = NewTask::new(self.core, self.group, name, Location::caller());
        NewSequenceTask { task, recorder: self.recorder }
    }

    /// Begins a batch of the sequence: a host task for each point of an index space, as
    /// [`Runtime::tasks`](crate::Runtime::tasks). The name is for messages.
    #[track_caller]
    pub fn tasks(&self, name: impl Into<Cow<'static, str>>) -> NewSequenceTasks<'r> {
        let tasks = NewTasks::new(self.core, self.group, name, Location::caller());
        NewSequenceTasks { tasks, recorder: self.recorder }
    }
}

/// Tasks that were recorded once, to be replayed: see [`Runtime::record`](crate::Runtime::record).
///
/// Clones are handles to the same sequence.
#[derive(Clone)]
pub struct Sequence {
    owner: Owner,
    how: How,
}

/// How a sequence is replayed.
#[derive(Clone)]
enum How {
    Planned(Planned),
    Submitted(Arc<Submitted>),
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequence({})", self.owner.label)
    }
}

impl Sequence {
    /// Records the tasks of a closure.
    pub(crate) fn record<E: From<Error>>(
        running: &Arc<Running>,
        group: Option<&GroupHandle>,
        label: TaskLabel,
        body: impl FnOnce(&SequenceBody<'_>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let core = running.core();
        // A dry run submits what several nodes would submit.
        let is_submitted = core.nodes() > 1 || core.several_nodes().is_some();
        let recorder = RefCell::new(Recorder { is_submitted, ..Recorder::default() });
        body(&SequenceBody { core, group, recorder: &recorder })?;
        let Recorder { tasks, parts, submits, is_submitted } = recorder.into_inner();
        let how = if is_submitted {
            How::Submitted(Arc::new(Submitted::new(submits, Needs::new(parts.accesses()))))
        } else {
            How::Planned(Planned::new(core, &label, tasks, parts))
        };
        let (running, group) = (Arc::clone(running), group.cloned());
        Ok(Self { owner: Owner { running, group, label, deadline: None }, how })
    }

    /// The same sequence, whose replays end when this moment has passed: the runtime reads the clock before
    /// each replay. Other handles to the sequence stay without it, or with theirs.
    ///
    /// Replays that end so have failed: their handle and the next synchronisation report it, with
    /// [`DeadlineExceeded`] as the error of [`Cause::Error`](crate::Cause::Error). Units of later replays may
    /// have run then, because there is no barrier between two replays, so what the sequence writes is
    /// poisoned. A program that needs the result of the last whole replay uses
    /// [`replay_until`](Self::replay_until), with a condition that reads the clock.
    ///
    /// If the tasks are submitted one by one, no replay is submitted after that moment, and those before it
    /// run to the end. On several nodes, whose clocks differ, a replay with a deadline is refused with
    /// [`Error::OneNodeOnly`].
    ///
    /// ```
    /// use anabranch::prelude::*;
    /// use std::time::{Duration, Instant};
    ///
    /// let rt = Runtime::new()?;
    /// let u = rt.buffer_from(&[0_u64])?;
    /// let count = rt.record("count", |body| {
    ///     body.task("add").over([1]).update(&u, one_to_one()).kernel(|_, (u,)| u[[0]] += 1)
    /// })?;
    /// let soon = Instant::now() + Duration::from_millis(10);
    /// let error = count.clone().deadline(soon).replay(u64::MAX)?.wait().unwrap_err();
    /// assert!(error.to_string().contains("its deadline passed before replay"));
    /// assert!(rt.wait().is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.owner.deadline = Some(deadline);
        self
    }

    /// Submits this number of replays, as one task. The handle is that of the task.
    ///
    /// To other tasks a replay is a task with the accesses and effects of all tasks of the sequence: it comes
    /// after all tasks before it whose results it needs, and tasks after it see the state after its last
    /// replay. Inside, there is no barrier between two replays. The chunks are dealt to the threads before
    /// the first replay: a chunk begins when those before it on its thread are done, and those that it needs,
    /// of its replay and of the one before. [The guide](crate::guide::small_tasks#sequences) says what that
    /// means for uneven chunks. The results are those of the same tasks, submitted again and again.
    ///
    /// If a task fails, the replays end, and the handle and the next synchronisation report the first
    /// failure, with the task and the number of the replay: the same in every schedule. What the sequence
    /// writes is poisoned then. A cancelled [group](crate::TaskGroup) ends its replays, too. If they have
    /// begun, that poisons what the sequence writes and its host objects
    /// ([`Cause::ReplaysCancelled`](crate::Cause::ReplaysCancelled)).
    ///
    /// With 0 replays nothing is submitted.
    ///
    /// # On several nodes, on devices, and with tasks that block
    /// With [several nodes](crate::guide::nodes), in a [dry run](crate::Builder::dry_run) for several nodes,
    /// and if one of the tasks runs on a device or is declared as
    /// [`blocking`](crate::interface::SequenceTask::blocking), this submits the tasks of all replays one by
    /// one. The results are the same. That saves the recording of kernels, but
    /// each task costs a submission, and the call blocks while the [limit of tasks in
    /// flight](crate::Builder::max_in_flight) is reached. The handle is one for all tasks. The name of a task
    /// has the number of the replay. A failure poisons what the task writes and what is computed from that,
    /// as always; the tasks that do not need it run to the end. With several nodes, a cancelled group skips
    /// the tasks, but the call still submits them.
    ///
    /// # Errors
    /// If the sequence reads what was never written: see [`Error`]. Nothing is submitted then. Where tasks
    /// are submitted one by one, each of them may also be refused for the reasons of a task, and those before
    /// it are submitted then.
    pub fn replay(&self, replays: u64) -> Result<TaskHandle, Error> {
        self.owner.check_replay()?;
        match &self.how {
            How::Planned(planned) => planned.replay(&self.owner, replays),
            How::Submitted(submitted) => submitted.replay(&self.owner, replays),
        }
    }

    /// Submits replays, as one task, until `condition` holds for what `buffer` has after one of them, but not
    /// more than `most`. The returned [`ReplayUntil`] is a handle that knows the number of replays.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// // The square root of 2 by Newton's method.
    /// let rt = Runtime::new()?;
    /// let (x, change) = (rt.buffer_from(&[1.0_f64])?, rt.buffer::<f64, 0>([]));
    /// let newton = rt.record("newton", |body| {
    ///     body.task("step").over([1]).update(&x, all()).write(&change, all()).kernel(|_, (x, change)| {
    ///         let next = 0.5 * (x[[0]] + 2.0 / x[[0]]);
    ///         change.set([], (next - x[[0]]).abs());
    ///         x.set([0], next);
    ///     })
    /// })?;
    /// let steps = newton.replay_until(100, &change, |change| change[[]] < 1e-9)?.wait()?;
    /// assert_eq!(steps, Some(5));
    /// assert!((rt.fence(&x)?.wait()?[[0]] - f64::sqrt(2.0)).abs() < 1e-15);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// The condition is a part of the task: it runs on a thread that runs kernels, after each replay and
    /// before the next one, and should be short. So no replay runs beyond the one that met it. A panic in it
    /// is a failure of the task. No thread has to wait between the replays, and the program goes on meanwhile.
    /// With 0 replays nothing is submitted.
    ///
    /// The rest is as for [`replay`](Self::replay). Where the tasks are submitted one by one, this call waits
    /// for each replay before it submits the next one. Each node calls its condition. The replays end when
    /// the conditions of all nodes hold, or when the condition fails on a node: it panics, or needs a failed
    /// task. A failed task that the buffer does not need does not end them.
    ///
    /// # Errors
    /// As [`replay`](Self::replay). If the buffer belongs to another runtime, or was never written.
    /// [`Error::WaitInsideTask`] where the call waits.
    #[track_caller]
    pub fn replay_until<T, const D: usize>(
        &self,
        most: u64,
        buffer: &Buffer<T, D>,
        condition: impl FnMut(&ReadView<T, D>) -> bool + Send + 'static,
    ) -> Result<ReplayUntil, Error>
    where
        T: Element,
    {
        let owner = &self.owner;
        owner.check_replay()?;
        let name = format!("condition of {}", owner.label.name());
        let task = NewTask::new(owner.running.core(), owner.group.as_ref(), name, Location::caller());
        match &self.how {
            How::Planned(planned) => planned.replay_until(owner, most, task, buffer, condition),
            How::Submitted(submitted) => submitted.replay_until(owner, most, task, buffer, condition),
        }
    }
}
