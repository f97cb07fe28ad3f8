//! Handles to submitted tasks: for their status, to wait for one task alone, to be called when it is done, to
//! cancel it.

use super::{
    node::{DeadLatches, Pieces, TaskRuntime},
    status::{self, Status},
};
use crate::{error::Error, events::latch::Latch};
use anabranch_graph::TaskId;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A handle to a submitted task. The task runs whether or not the handle is kept.
///
/// It is a `Future`, and a thread can [wait](Self::wait) for it.
///
/// ```
/// use anabranch::prelude::*;
///
/// let rt = Runtime::new()?;
/// let task = rt.task("fails").once().host(|()| Err("no luck"))?;
/// let error = task.wait().unwrap_err();
/// assert!(error.to_string().ends_with("no luck"));
/// assert_eq!(task.status(), Status::Failed);
/// assert!(rt.wait().is_err()); // the next synchronisation reports it, too
/// # Ok::<(), Error>(())
/// ```
pub struct TaskHandle {
    /// The pieces of a kernel that was submitted in pieces, or the tasks of a batch. Any other task is one
    /// piece.
    pieces: Pieces,
    /// Made when the handle is first polled.
    polled: Option<(Arc<dyn TaskRuntime>, Arc<Latch>)>,
}

impl TaskHandle {
    pub(crate) fn new(pieces: Pieces) -> Self {
        Self { pieces, polled: None }
    }

    /// The nodes of the pieces.
    pub(crate) fn into_pieces(self) -> Pieces {
        self.pieces
    }

    /// The status of the task.
    pub fn status(&self) -> Status {
        status::of_pieces(&self.pieces)
    }

    /// Calls `callback` once with the last [status](Self::status) of the task: also if it fails, is skipped
    /// or was cancelled.
    ///
    /// The thread that completes the task calls it, before later tasks that depend on the task begin and
    /// before anything that waits for the task or for the runtime goes on. So the callback should be short.
    /// (A later task that needs only some [pieces](crate::interface::TaskBuilder::pieces) of a kernel may
    /// begin before.) If the task is done already, this thread calls it at once. The callback counts as a
    /// part of a task of every runtime: it may submit tasks, but waiting there, for whichever runtime, is
    /// [`Error::WaitInsideTask`].
    ///
    /// # Panics
    /// A panic in the callback does not change the status. [`Runtime::wait`](crate::Runtime::wait) reports it
    /// as [`Cause::Callback`](crate::Cause::Callback); if the task was done already, the panic reaches the
    /// caller of `on_done`.
    ///
    /// ```
    /// use anabranch::prelude::*;
    /// use std::sync::mpsc;
    ///
    /// let rt = Runtime::new()?;
    /// let (sender, receiver) = mpsc::channel();
    /// let task = rt.task("save").once().host(|()| ())?;
    /// task.on_done(move |status| sender.send(status).unwrap());
    /// rt.wait()?;
    /// assert_eq!(receiver.recv(), Ok(Status::Done));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn on_done(&self, callback: impl FnOnce(Status) + Send + 'static) {
        status::on_done(&self.pieces, callback);
    }

    /// Waits for this task, not for tasks that were submitted after it.
    ///
    /// The calling thread runs this task on its own stack if it can start: see
    /// [`Runtime::wait`](crate::Runtime::wait).
    ///
    /// With [several nodes](crate::guide::nodes), this is about this node's part of the task, and other nodes
    /// may have another result. [`Runtime::agree_result`](crate::Runtime::agree_result) makes one decision of
    /// it.
    ///
    /// # Errors
    /// [`Error::Failed`] if the task has failed, was skipped or was cancelled, with the whole
    /// [chain](crate::Failure::chain) of causes. [`Error::WaitInsideTask`].
    pub fn wait(&self) -> Result<(), Error> {
        const CALL: &str = "TaskHandle::wait";
        self.check_outside(CALL)?;
        if let Some(core) = self.pending_core() {
            core.wait_for_task(&self.pieces, &self.latch().event, CALL);
        }
        self.result()
    }

    /// Also for a task that is done: whether a wait is an error must not depend on the schedule.
    fn check_outside(&self, call: &'static str) -> Result<(), Error> {
        self.pieces.first().map_or(Ok(()), |piece| piece.runtime.check_outside(call))
    }

    /// The runtime of the task, unless the task is done.
    fn pending_core(&self) -> Option<Arc<dyn TaskRuntime>> {
        self.pieces.iter().find_map(|piece| piece.pending_core())
    }

    /// A latch for all pieces.
    fn latch(&self) -> Arc<Latch> {
        let (latch, mut dead) = (Latch::new(TaskId(u64::MAX)), DeadLatches::new());
        self.pieces.iter().for_each(|piece| piece.add_latch(&latch, &mut dead));
        latch.release();
        latch
    }

    /// Cancels the task, with [several nodes](crate::guide::nodes) this node's part of it. Returns `false` if
    /// it has begun or is done, or if it is a task with a [communicator](crate::Communicator) and this node
    /// has reported to the others that it is ready. Tasks that need its results are skipped, on whatever
    /// node.
    ///
    /// Of a kernel in [pieces](crate::interface::TaskBuilder::pieces) this cancels the pieces that have not
    /// begun, of a [batch](crate::Runtime::tasks) the tasks, and returns whether there were any.
    pub fn cancel(&self) -> bool {
        self.pieces.iter().filter(|piece| piece.cancel()).count() > 0
    }

    fn result(&self) -> Result<(), Error> {
        let failures = self.pieces.iter().filter_map(|piece| piece.poison());
        let first = failures.inspect(|failure| failure.mark_given()).min_by_key(|failure| failure.age());
        first.map_or(Ok(()), |failure| Err((&failure).into()))
    }
}

impl Future for TaskHandle {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.check_outside("TaskHandle::poll") {
            return Poll::Ready(Err(error));
        }
        if self.polled.is_none() {
            self.polled = self.pending_core().map(|core| (core, self.latch()));
        }
        if let Some((core, latch)) = &self.polled {
            ready!(core.poll(&latch.event, context));
        }
        Poll::Ready(self.result())
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let piece = self.pieces.first().map(|piece| format!("{piece:?}")).unwrap_or_default();
        write!(f, "{piece} ({:?})", self.status())
    }
}
