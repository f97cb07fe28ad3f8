//! Task groups: tasks of one part of a program, which are waited for, cancelled and reported together.

use crate::{
    data::{buffer::Buffer, element::Element, initial::Initial},
    error::Error,
    execute::{GroupHandle, Status},
    label::TaskLabel,
    runtime::{self, Idle, Runtime},
    submit::{
        capture::{
            Captures, Copies, Fenceable,
            barrier::Barrier,
            fence::{self, Fence},
        },
        sequence::{Sequence, SequenceBody},
        task::{NewTask, batch::NewTasks},
    },
};
use anabranch_grid::Extent;
use anabranch_par::CancellationToken;
use std::{borrow::Cow, fmt, panic::Location};

/// A group of tasks: one part of a program, which waits for its own tasks and gets its own failures.
///
/// A group submits tasks like the [runtime](Runtime). It is the answer to programs in which several threads
/// or libraries share one runtime: each has a group, and none takes the failures of another.
///
/// ```
/// use anabranch::prelude::*;
///
/// let rt = Runtime::new()?;
/// let solver = rt.group("solver");
/// let output = rt.group("output");
/// solver.task("solve").once().host(|()| ())?;
/// output.task("save").once().host(|()| Err("the disk is full"))?;
///
/// solver.wait()?; // waits for the tasks of the solver, and reports their failures
/// assert!(output.wait().unwrap_err().to_string().contains("the disk is full"));
/// rt.wait()?; // waits for all tasks, and reports failures of tasks in no group
/// # Ok::<(), Error>(())
/// ```
///
/// - *Order.* A group does not change the order of tasks. Dependencies follow from the order in which all
///   tasks of the runtime were submitted, in whatever groups they are. Buffers and host objects belong to the
///   runtime, and all groups may use them.
/// - *Groups in groups.* A [nested](Self::group) group belongs to its parent: a wait for the parent waits for
///   the tasks of both, and cancelling the parent cancels both. Failures come out at the group whose tasks
///   failed, and nowhere else.
/// - *Failures that follow.* A task that needs results of a failed task is skipped. If it is in another
///   group, both groups report the failed task.
/// - *Handles.* Clones are handles to the same group. Tasks may have one, to submit more tasks to their own
///   group. Dropping a handle neither waits for the tasks nor cancels them. If the last handle is dropped and
///   a failure was not reported, the runtime prints the failure to standard error once the tasks of the group
///   are done.
/// - *The runtime.* A group keeps its runtime running: the threads end when the [`Runtime`] and all groups
///   are dropped.
#[derive(Clone)]
#[must_use = "a group without tasks does nothing"]
pub struct TaskGroup {
    handle: GroupHandle,
}

impl Runtime {
    /// Makes a [group](TaskGroup) of tasks, which are waited for, cancelled and reported together. The name
    /// is for messages.
    pub fn group(&self, name: impl Into<Cow<'static, str>>) -> TaskGroup {
        TaskGroup { handle: GroupHandle::new(&self.running, name.into()) }
    }
}

impl TaskGroup {
    /// Makes a group in this group. Waiting for this group waits for its tasks, too, and cancelling this
    /// group cancels them. Its failures come out there, and not here.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let solver = rt.group("solver");
    /// let smoother = solver.group("smoother");
    /// let task = smoother.task("smooth").once().host(|()| Err("it diverges"))?;
    /// solver.wait()?;
    /// assert_eq!(task.status(), Status::Failed);
    /// assert!(smoother.check().is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn group(&self, name: impl Into<Cow<'static, str>>) -> Self {
        Self { handle: self.handle.nested(name.into()) }
    }

    /// The name of the group.
    pub fn name(&self) -> &str {
        self.handle.name()
    }

    /// Creates a buffer without contents: see [`Runtime::buffer`]. It belongs to the runtime, not to the
    /// group. This is for libraries that have a group and no runtime.
    pub fn buffer<T: Element, const D: usize>(&self, extent: impl Into<Extent<D>>) -> Buffer<T, D> {
        runtime::create(self.handle.core(), extent.into(), None)
    }

    /// Creates a buffer from its initial contents: see [`Runtime::buffer_from`].
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let group = rt.group("solver");
    /// let u = group.buffer_from(&[1.0, 2.0])?;
    /// group.task("double").once().update(&u, all()).host(|(u,)| u[[1]] *= 2.0)?;
    /// assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [1.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn buffer_from<I: Initial<D> + ?Sized, const D: usize>(
        &self,
        initial: &I,
    ) -> Result<Buffer<I::Element, D>, Error> {
        runtime::create_from(self.handle.core(), initial)
    }

    /// Records tasks once, to replay them again and again as tasks of this group: see [`Runtime::record`].
    ///
    /// # Errors
    /// As [`Runtime::record`].
    #[track_caller]
    pub fn record(
        &self,
        name: impl Into<Cow<'static, str>>,
        body: impl FnOnce(&SequenceBody<'_>) -> Result<(), Error>,
    ) -> Result<Sequence, Error> {
        let label = TaskLabel { name: name.into(), location: Location::caller() };
        Sequence::record(self.handle.running(), Some(&self.handle), label, body)
    }

    /// Begins a task of this group: see [`Runtime::task`].
    #[track_caller]
    pub fn task(&self, name: impl Into<Cow<'static, str>>) -> NewTask<'_> {
        NewTask::new(self.handle.core(), Some(&self.handle), name, Location::caller())
    }

    /// Begins a batch of tasks of this group: see [`Runtime::tasks`].
    #[track_caller]
    pub fn tasks(&self, name: impl Into<Cow<'static, str>>) -> NewTasks<'_> {
        NewTasks::new(self.handle.core(), Some(&self.handle), name, Location::caller())
    }

    /// Copies buffers, parts of buffers and host objects after all tasks submitted so far: see
    /// [`Runtime::fence`]. The fence is a task of this group.
    ///
    /// # Errors
    /// See [`Runtime::fence`].
    #[track_caller]
    pub fn fence<F: Fenceable>(
        &self,
        what: F,
    ) -> Result<Fence<<F::Captures as Captures<Copies>>::Output>, Error> {
        let (core, group) = (self.handle.core(), Some(&self.handle));
        fence::submit::<Copies, _>(core, group, "fence", false, Location::caller(), what.captures())
    }

    /// Submits an epoch: see [`Runtime::barrier`]. It orders the tasks of all groups, because groups do not
    /// change the order of tasks. Waiting for it reports the failures of this group.
    #[track_caller]
    pub fn barrier(&self) -> Barrier<()> {
        self.barrier_with(()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Submits an epoch like [`barrier`](Self::barrier), with captures right before it: see
    /// [`Runtime::barrier_with`].
    ///
    /// # Errors
    /// See [`Runtime::fence`]. No barrier is submitted then.
    #[track_caller]
    pub fn barrier_with<C: Captures<Copies>>(&self, captures: C) -> Result<Barrier<C::Output>, Error> {
        Barrier::submit(self.handle.core(), Some(&self.handle), Location::caller(), captures)
    }

    /// Waits until no task of this group, or of a group in it, is in flight: for the tasks submitted so far,
    /// and also for those that are submitted meanwhile, by tasks of the group for example.
    ///
    /// The calling thread may run host tasks of the group on its own stack: see [`Runtime::wait`]. If no task
    /// is in flight, this costs a few loads. With [several nodes](crate::guide::nodes), it also waits until
    /// every node has called it and has done its part, and all of them get the failures of all.
    ///
    /// # Errors
    /// [`Error::Failed`] with all failures of this group since the last synchronisation.
    /// [`Error::WaitInsideTask`].
    pub fn wait(&self) -> Result<(), Error> {
        const CALL: &str = "TaskGroup::wait";
        let core = self.handle.core();
        core.check_outside(CALL)?;
        if !self.handle.is_idle() {
            core.wait_for_group(&self.handle, &self.handle.latch(), CALL);
        }
        core.report(Some(&self.handle), CALL)
    }

    /// Whether no task of this group, or of a group in it, is in flight on this node. This costs one load.
    pub fn is_idle(&self) -> bool {
        self.handle.is_idle()
    }

    /// Waits like [`wait`](Self::wait), as a `Future` for asynchronous code.
    pub fn idle(&self) -> Idle {
        Idle::of_group(&self.handle)
    }

    /// Calls `callback` once, as soon as no task of this group, or of a group in it, is in flight: now, or on
    /// the thread that completes the last of them. The status is [`Status::Failed`] if the group has failures
    /// that were not reported, [`Status::Cancelled`] if it was [cancelled](Self::cancel), and otherwise
    /// [`Status::Done`].
    ///
    /// The callback counts as a part of a task of every runtime: it may submit tasks and
    /// [`check`](Self::check) the group, but waiting there, for whichever runtime, is
    /// [`Error::WaitInsideTask`]. It delays the thread, so it should be short.
    ///
    /// With [several nodes](crate::guide::nodes), all of this concerns this node's parts of the tasks.
    ///
    /// Whatever waits for the group goes on after its callbacks have returned. A callback that another
    /// callback adds is called after that one.
    ///
    /// # Panics
    /// A panic in the callback is a failure of this group: [`Cause::Callback`](crate::Cause::Callback). If
    /// the group is idle already, the panic reaches the caller of `on_done`.
    ///
    /// ```
    /// use anabranch::prelude::*;
    /// use std::sync::mpsc;
    ///
    /// let rt = Runtime::new()?;
    /// let group = rt.group("output");
    /// let (sender, receiver) = mpsc::channel();
    /// group.task("save").once().host(|()| ())?;
    /// group.on_done(move |status| sender.send(status).unwrap());
    /// assert_eq!(receiver.recv(), Ok(Status::Done));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn on_done(&self, callback: impl FnOnce(Status) + Send + 'static) {
        self.handle.on_done(Location::caller(), callback);
    }

    /// Reports the failures of this group since the last synchronisation, without waiting: see
    /// [`Runtime::check`]. Tasks may call it, too, unless there are several nodes, which must meet for it.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn check(&self) -> Result<(), Error> {
        self.handle.core().report(Some(&self.handle), "TaskGroup::check")
    }

    /// Cancels the tasks of this group and of the groups in it that have not begun, and all tasks that are
    /// submitted to them later. This cannot be undone: make another group for tasks that are to run.
    ///
    /// With [several nodes](crate::guide::nodes), this cancels the parts of the tasks on this node. A node
    /// that cancels parts of a task alone harms no other: what needs their data is skipped, on whatever node.
    /// To cancel the same tasks on all nodes, call this on all of them at the same point of the program,
    /// after they have [agreed](Runtime::agree) on it.
    ///
    /// A task with a [communicator](crate::Communicator) counts as begun when this node has reported to the
    /// others that it is ready.
    ///
    /// A cancelled task poisons the buffers that it was to write and leaves host objects as they are; only
    /// [replays](crate::Sequence::replay) that have begun end early, and poison them, too.
    /// [`wait`](Self::wait) of a group or of the runtime does not report a cancellation, and
    /// [`wait`](crate::TaskHandle::wait) of the task's handle does. Fences and barriers are not cancelled, because the program looks through them at the
    /// results that are left.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let search = rt.group("search");
    /// search.cancel();
    /// let task = search.task("look").once().host(|()| ())?;
    /// search.wait()?; // a cancelled task is no failure
    /// assert_eq!(task.status(), Status::Cancelled);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn cancel(&self) {
        self.handle.token().cancel();
    }

    /// The token of this group. Cancelling it is the same as [`cancel`](Self::cancel). A task that takes long
    /// can look at it, and loops inside tasks can [have it](anabranch_par::Loop::cancel_with).
    pub fn token(&self) -> &CancellationToken {
        self.handle.token()
    }
}

impl fmt::Debug for TaskGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self.handle, f)
    }
}
