//! Handles to submitted tasks: for their status, to wait for one task alone, to cancel it.

use super::{core::Core, current_task::CurrentTask, latch::Latch, node::Node};
use crate::error::{Cause, Error};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It waits for other tasks, or for a thread.
    Waiting,
    /// It is running.
    Running,
    /// It has ended without a failure.
    Done,
    /// It has failed.
    Failed,
    /// It was skipped, because it needs results of a failed or cancelled task.
    Skipped,
    /// It was cancelled before it began.
    Cancelled,
}

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
    node: Node,
    /// Made when the handle is first polled.
    polled: Option<(Arc<Core>, Arc<Latch>)>,
}

impl TaskHandle {
    pub(crate) fn new(node: Node) -> Self {
        Self { node, polled: None }
    }

    /// The status of the task.
    pub fn status(&self) -> Status {
        if !self.node.is_done() {
            return match (self.node.is_claimed(), self.node.is_cancelled()) {
                (true, _) => Status::Running,
                (false, true) => Status::Cancelled,
                (false, false) => Status::Waiting,
            };
        }
        match self.node.poison().as_ref().map(|failure| &failure.cause) {
            None => Status::Done,
            Some(Cause::Skipped { .. }) => Status::Skipped,
            Some(Cause::Cancelled) => Status::Cancelled,
            Some(_) => Status::Failed,
        }
    }

    /// Waits for this task, not for tasks that were submitted after it.
    ///
    /// # Errors
    /// [`Error::Failed`] if the task has failed, was skipped or was cancelled, with the whole [chain](crate::Failure::chain)
    /// of causes. [`Error::WaitInsideTask`].
    pub fn wait(&self) -> Result<(), Error> {
        const CALL: &str = "TaskHandle::wait";
        self.check_outside(CALL)?;
        if let Some(core) = self.node.pending_core() {
            core.wait_for_task(&self.node, &self.node.latch().event, CALL);
        }
        self.result()
    }

    /// Also for a task that is done: whether a wait is an error must not depend on the schedule.
    fn check_outside(&self, call: &'static str) -> Result<(), Error> {
        if CurrentTask::is_of(self.node.runtime_id()) {
            return Err(Error::WaitInsideTask { call });
        }
        Ok(())
    }

    /// Cancels the task. Returns `false` if it has begun or is done. Tasks that need its results are skipped.
    pub fn cancel(&self) -> bool {
        self.node.cancel()
    }

    fn result(&self) -> Result<(), Error> {
        self.node.poison().map_or(Ok(()), |failure| {
            failure.mark_given();
            Err((&failure).into())
        })
    }
}

impl Future for TaskHandle {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.check_outside("TaskHandle::poll") {
            return Poll::Ready(Err(error));
        }
        if self.polled.is_none() {
            self.polled = self.node.pending_core().map(|core| (core, self.node.latch()));
        }
        if let Some((core, latch)) = &self.polled {
            core.run_until(&latch.event);
            if latch.event.poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.result())
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({:?})", self.node, self.status())
    }
}
