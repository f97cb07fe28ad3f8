//! A handle to a submitted task: how it stands, waiting for it alone, cancelling it.

use crate::{
    core::Core,
    error::{Cause, Error},
    inside::Inside,
    node::{Latch, Node},
};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It waits for others, or for a thread.
    Waiting,
    /// It is being run.
    Running,
    /// It has done its work.
    Done,
    /// It has failed.
    Failed,
    /// It was not run, because it needs what another task would have written.
    Skipped,
    /// It was cancelled before it began.
    Cancelled,
}

/// A submitted task, for programs that want to know about this one: dropping the handle changes nothing.
///
/// It is a `Future`, and it can be [waited](Self::wait) for.
///
/// ```
/// use anabranch::prelude::*;
///
/// let rt = Runtime::new()?;
/// let task = rt.task("fails").once().host(|()| Err("no luck"))?;
/// let error = task.wait().unwrap_err();
/// assert!(error.to_string().ends_with("no luck"));
/// assert_eq!(task.status(), Status::Failed);
/// assert!(rt.wait().is_err()); // the next synchronisation tells, too
/// # Ok::<(), Error>(())
/// ```
pub struct TaskHandle {
    node: Node,
    /// Made when the handle is first polled.
    waiting: Option<(Arc<Core>, Arc<Latch>)>,
}

impl TaskHandle {
    pub(crate) fn new(node: Node) -> Self {
        Self { node, waiting: None }
    }

    /// How the task stands.
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

    /// Waits for this task, not for those that were submitted after it.
    ///
    /// # Errors
    /// [`Error::Failed`] where it has failed, was skipped or was cancelled, with the whole
    /// [chain](crate::Failure::chain) of causes; [`Error::WaitInsideTask`].
    pub fn wait(&self) -> Result<(), Error> {
        self.check_outside("TaskHandle::wait")?;
        if let Some(core) = self.node.pending_core() {
            core.settle_one(&self.node);
        }
        self.result()
    }

    /// Also where it is done: whether this is an error must not depend on the schedule.
    fn check_outside(&self, call: &'static str) -> Result<(), Error> {
        if Inside::is_at(self.node.core_address()) { Err(Error::WaitInsideTask { call }) } else { Ok(()) }
    }

    /// Asks that the task is not run; `false` where it has begun already, or is done. Tasks that need what it would have
    /// written are skipped.
    pub fn cancel(&self) -> bool {
        self.node.cancel()
    }

    fn result(&self) -> Result<(), Error> {
        self.node.poison().map_or(Ok(()), |failure| Err((&failure).into()))
    }
}

impl Future for TaskHandle {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.check_outside("TaskHandle::poll") {
            return Poll::Ready(Err(error));
        }
        if self.waiting.is_none() {
            self.waiting = self.node.pending_core().map(|core| (core, Latch::of(&self.node)));
        }
        if let Some((core, latch)) = &self.waiting {
            core.drive(&latch.event);
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
