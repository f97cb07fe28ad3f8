//! Barriers: epochs that the program asks for, with captures right before them.
//!
//! A barrier comes after everything before it and before everything after it. How that is done without an
//! epoch in the graph is explained at [`Core::submit_barrier`]. The captures of a barrier are one fence right
//! before it.

use super::{
    Captures, Copies,
    fence::{self, Fence},
};
use crate::{
    error::Error,
    events::latch::Latch,
    execute::{Core, GroupHandle, Meeting, Node, Status},
    label::TaskLabel,
};
use std::{
    fmt,
    future::Future,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// An epoch that the program has asked for: see [`Runtime::barrier`](crate::Runtime::barrier).
///
/// It is a `Future`, and a thread can [wait](Self::wait) for it. It orders tasks whether or not a thread
/// waits for it.
pub struct Barrier<R> {
    captured: Fence<R>,
    epoch: Arc<Latch>,
    /// The task behind the captures. With several nodes the captures are an epoch of the command graph, and
    /// there is no other task.
    behind: Option<Node>,
    core: Arc<Core>,
    /// The group whose failures it reports.
    group: Option<GroupHandle>,
    /// With several nodes, from the first poll on.
    meeting: Option<Meeting>,
    is_reported: bool,
}

impl<R: Send + 'static> Barrier<R> {
    pub(crate) fn submit<C: Captures<Copies, Output = R>>(
        core: &Arc<Core>,
        group: Option<&GroupHandle>,
        location: &'static Location<'static>,
        captures: C,
    ) -> Result<Self, Error> {
        core.id().check_process("barrier")?;
        let captured = fence::submit::<Copies, _>(core, group, "barrier", true, location, captures)?;
        let label = TaskLabel { name: "barrier".into(), location };
        let behind = match core.several_nodes() {
            None => Some(core.submit_barrier(label, group.map(|group| &**group))),
            Some(_) => None,
        };
        let epoch = behind.as_ref().unwrap_or(captured.task()).latch();
        let (core, group) = (Arc::clone(core), group.cloned());
        Ok(Self { captured, epoch, behind, core, group, meeting: None, is_reported: false })
    }

    /// Waits until everything before the barrier is done.
    ///
    /// The calling thread may run host tasks that it waits for on its own stack: see
    /// [`Runtime::wait`](crate::Runtime::wait).
    ///
    /// # Errors
    /// [`Error::Failed`] with all failures since the last synchronisation, of the group or of the runtime
    /// that has submitted the barrier. [`Error::WaitInsideTask`].
    pub fn wait(self) -> Result<R, Error> {
        const CALL: &str = "Barrier::wait";
        self.core.check_outside(CALL)?;
        self.core.wait_for(&self.epoch, CALL);
        self.core.report(self.group.as_ref(), CALL)?;
        self.captured.wait()
    }

    /// Calls `callback` once when everything before the barrier is done, with the status of its captures
    /// ([`Status::Done`] if there are none): see [`TaskHandle::on_done`](crate::TaskHandle::on_done).
    pub fn on_done(&self, callback: impl FnOnce(Status) + Send + 'static) {
        let Some(behind) = &self.behind else { return self.captured.on_done(callback) };
        let status = self.captured.last_status();
        behind.on_done(move |_| callback(status()));
    }

    /// Whether everything before the barrier is done.
    pub fn is_ready(&self) -> bool {
        self.epoch.event.is_set()
    }
}

impl<R> Barrier<R> {
    fn poll_report(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        const CALL: &str = "Barrier::wait";
        if self.meeting.is_none() {
            self.meeting = Meeting::announce(&self.core, self.group.as_ref(), CALL)?;
        }
        ready!(self.core.poll(&self.epoch.event, context));
        match &mut self.meeting {
            Some(meeting) => meeting.poll(context),
            None => Poll::Ready(self.core.report(self.group.as_ref(), CALL)),
        }
    }
}

impl<R> Future for Barrier<R> {
    type Output = Result<R, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.core.check_outside("Barrier::poll") {
            return Poll::Ready(Err(error));
        }
        if !self.is_reported {
            ready!(self.poll_report(context))?;
            self.is_reported = true;
        }
        Pin::new(&mut self.captured).poll(context)
    }
}

impl<R> fmt::Debug for Barrier<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("ready", &self.epoch.event.is_set()).finish_non_exhaustive()
    }
}
