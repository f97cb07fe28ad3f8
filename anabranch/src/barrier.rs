//! Barriers: epochs that the program asks for, with what is captured at them.

use crate::{
    capture::{Captures, Copies},
    core::Core,
    error::{Error, TaskLabel},
    fence::{self, Fence},
    node::{Latch, Node},
};
use std::{
    fmt,
    future::Future,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// An epoch that was asked for: see [`Runtime::barrier`](crate::Runtime::barrier).
///
/// It is a `Future`, and it can be [waited](Self::wait) for. The order that it makes is there also where nobody waits.
pub struct Barrier<R> {
    captured: Fence<R>,
    epoch: Arc<Latch>,
    core: Arc<Core>,
}

impl<R: Send + 'static> Barrier<R> {
    /// Every capture is a part of one fence right before the epoch.
    pub(crate) fn submit<C: Captures<Copies, Output = R>>(
        core: &Arc<Core>,
        location: &'static Location<'static>,
        captures: C,
    ) -> Result<Self, Error> {
        let captured = fence::submit::<Copies, _>(core, "barrier", true, location, captures)?;
        let epoch: Node = core.submit_epoch(TaskLabel { name: "barrier".into(), location });
        Ok(Self { captured, epoch: Latch::of(&epoch), core: Arc::clone(core) })
    }

    /// Waits until everything before it is done.
    ///
    /// # Errors
    /// [`Error::Failed`] with all failures since the last synchronisation; [`Error::WaitInsideTask`].
    pub fn wait(self) -> Result<R, Error> {
        self.core.check_outside("Barrier::wait")?;
        self.core.settle(&self.epoch);
        self.core.report()?;
        self.captured.wait()
    }

    /// Whether everything before it is done.
    pub fn is_ready(&self) -> bool {
        self.epoch.event.is_set()
    }
}

impl<R> Future for Barrier<R> {
    type Output = Result<R, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.core.check_outside("Barrier::poll") {
            return Poll::Ready(Err(error));
        }
        self.core.drive(&self.epoch.event);
        ready!(self.epoch.event.poll(context));
        self.core.report()?;
        Pin::new(&mut self.captured).poll(context)
    }
}

impl<R> fmt::Debug for Barrier<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("ready", &self.epoch.event.is_set()).finish_non_exhaustive()
    }
}
