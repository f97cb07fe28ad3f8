//! Sequences: tasks that are recorded once and replayed.
//!
//! [`Runtime::record`](crate::Runtime::record) gives its closure a [`SequenceBody`], whose tasks are built as those of the runtime ([`builder`]).
//! Each becomes [`units`] without its types, in the [`recorder`]. When the closure returns, the graph derives the order of the units, once. A
//! [`replay`](Sequence::replay) is one task with the accesses of all, whose body executes the units ([`replays`]): see
//! [`replay`](crate::execute::replay).

pub(crate) mod builder;
mod recorder;
mod replays;
mod units;

pub use self::replays::ReplayUntil;

use self::{
    builder::NewSequenceTask,
    recorder::{Parts, Recorder, Whole},
    replays::{ReplayBody, Replays},
    units::Recorded,
};
use super::{declaration::explain, task::NewTask};
use crate::{
    data::{buffer::Buffer, element::Element, host_object::HostObject, view::ReadView},
    error::Error,
    execute::{Core, GroupHandle, Node, Place, Running, Submission, TaskHandle},
    label::TaskLabel,
};
use anabranch_graph::{Access, BufferId, Effect, Order};
use anabranch_grid::all;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::{
    borrow::Cow,
    cell::RefCell,
    fmt,
    panic::Location,
    sync::{Arc, OnceLock},
};

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
}

/// Tasks that were recorded once, to be replayed: see [`Runtime::record`](crate::Runtime::record).
///
/// Clones are handles to the same sequence.
#[derive(Clone)]
pub struct Sequence {
    /// It keeps the runtime running, as a group does.
    running: Arc<Running>,
    group: Option<GroupHandle>,
    label: TaskLabel,
    /// The recorded tasks. A replay has this effect on them, so two replays never run at once.
    tasks: HostObject<Vec<Recorded>>,
    effect: Effect,
    parts: Arc<Parts>,
    whole: Arc<Whole>,
    /// The same with a condition on one of these buffers.
    until: Arc<Mutex<FxHashMap<BufferId, Arc<Whole>>>>,
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequence({})", self.label)
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
        if core.several_nodes().is_some() {
            let what = format!("the replay of {label}");
            return Err(core.refuse(Error::OneNodeOnly { what }).into());
        }
        let recorder = RefCell::default();
        body(&SequenceBody { core, group, recorder: &recorder })?;
        let Recorder { tasks, parts } = recorder.into_inner();
        let (id, number) = core.create_object(None);
        let effect = Effect { object: id, order: Order::Observe };
        let whole = Arc::new(parts.whole(&label, effect, core.threads()));
        Ok(Self {
            running: Arc::clone(running),
            group: group.cloned(),
            label,
            tasks: HostObject::new(id, number, tasks, core.owner()),
            effect,
            parts: Arc::new(parts),
            whole,
            until: Arc::default(),
        })
    }

    /// Submits this number of replays, as one task. The handle is that of the task.
    ///
    /// To other tasks a replay is a task with the accesses and effects of all tasks of the sequence: it comes after all tasks before it whose results it
    /// needs, and tasks after it see the state after its last replay. Inside, a unit of work begins as soon as what it needs is done, in
    /// its replay and in the one before: there is no barrier between two replays. The results are those of the same tasks, submitted
    /// again and again.
    ///
    /// If a task fails, the replays end, and the handle and the next synchronisation report the first failure, with the task and the number of the
    /// replay: the same in every schedule. What the sequence writes is poisoned then. A cancelled [group](crate::TaskGroup) ends its replays, too.
    ///
    /// With 0 replays nothing is submitted.
    ///
    /// # Errors
    /// If the sequence reads what was never written: see [`Error`]. Nothing is submitted then.
    pub fn replay(&self, replays: u64) -> Result<TaskHandle, Error> {
        if replays == 0 || self.parts.is_empty() {
            return Ok(TaskHandle::new(SmallVec::new()));
        }
        self.submit(&self.whole, replays, None)
    }

    /// Submits replays, as one task, until `condition` holds for what `buffer` has after one of them, but not more than `most`. The returned
    /// [`ReplayUntil`] is a handle that knows the number of replays.
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
    /// The condition is a part of the task: it runs on a thread that runs kernels, after each replay and before the next one, and should be short. So no
    /// replay runs beyond the one that met it. A panic in it is a failure of the task. Nobody has to wait between the replays, and the program goes
    /// on meanwhile. With 0 replays nothing is submitted.
    ///
    /// The rest is as for [`replay`](Self::replay).
    ///
    /// # Errors
    /// As [`replay`](Self::replay). If the buffer belongs to another runtime, or was never written.
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
        let core = self.running.core();
        let recorder = RefCell::default();
        let name = format!("condition of {}", self.label.name());
        let task = NewTask::new(core, self.group.as_ref(), name, Location::caller());
        let (condition, met) = (Mutex::new(condition), Arc::new(OnceLock::new()));
        let by_task = Arc::clone(&met);
        NewSequenceTask { task, recorder: &recorder }.once().read(buffer, all()).ends_when(
            move |replay, (buffer,): (&ReadView<T, D>,)| {
                let is_met = (condition.lock())(buffer);
                if is_met {
                    let first = by_task.set(replay + 1);
                    debug_assert!(first.is_ok(), "no replay runs after that");
                }
                is_met
            },
        )?;
        let Recorder { mut tasks, parts: of } = recorder.into_inner();
        let condition = tasks.pop().expect("it was recorded");
        let task = if most > 0 {
            let whole = self.whole_until(buffer.inner.id, &condition, &of);
            self.submit(&whole, most, Some(condition))?
        } else {
            TaskHandle::new(SmallVec::new())
        };
        Ok(ReplayUntil::new(task, met))
    }

    /// What the tasks are together with a condition on this buffer, which is derived once. `of` has the label of the buffer.
    fn whole_until(&self, buffer: BufferId, condition: &Recorded, of: &Parts) -> Arc<Whole> {
        let whole = || {
            let parts = self.parts.with_condition(condition, of);
            Arc::new(parts.whole(&self.label, self.effect, self.running.core().threads()))
        };
        Arc::clone(self.until.lock().entry(buffer).or_insert_with(whole))
    }

    /// Submits replays as one task. `last` is the condition, if there is one.
    fn submit(&self, whole: &Arc<Whole>, replays: u64, last: Option<Recorded>) -> Result<TaskHandle, Error> {
        let (core, label) = (self.running.core(), &self.label);
        core.id().check_process("submit")?;
        let record = core.needs_records().then(|| Arc::new(whole.task_record(replays)));
        let accesses: SmallVec<[Access; 4]> =
            whole.accesses.iter().map(|(access, ..)| access.clone()).collect();
        let task = Submission {
            label,
            group: self.group.as_deref(),
            accesses: &accesses,
            effects: &whole.effects,
            priority: 0,
            place: Place::Compute,
            observes: false,
            record: record.as_ref(),
            device: None,
        };
        let labels: Vec<_> = whole.accesses.iter().map(|(_, label, rank)| (label.clone(), *rank)).collect();
        let accepted = core.accept(&task).map_err(|error| explain(label, *error, &labels))?;
        let versions = accesses.iter().map(|access| access.buffer).zip(accepted.versions().iter().copied());
        let replays = Replays {
            tasks: self.tasks.clone(),
            last,
            whole: Arc::clone(whole),
            versions: versions.collect(),
            replays,
            token: self.group.as_ref().map(|group| group.token().clone()),
        };
        let node = Node::new(|| accepted.head(), || ReplayBody::new(replays));
        Ok(TaskHandle::new(smallvec![accepted.insert(node)]))
    }
}
