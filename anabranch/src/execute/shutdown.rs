//! The end of a runtime, also of one that is dropped inside one of its own tasks.
//!
//! # Protocol
//! A runtime ends when the [`Runtime`](crate::Runtime) and all task groups are dropped, which share a
//! [`Running`]. Outside of the tasks, the thread that drops the last of them waits for all tasks and then
//! ends the threads. Inside a task it cannot wait, because that task would wait for itself. Instead it hands
//! a reference to itself to the task that completes last:
//!
//! 1. [`Running::drop`] finds that its thread runs a task of this runtime. It stores an `Arc` of the runtime
//!    in [`DeferredShutdown::core`](super::deferred_shutdown::DeferredShutdown) and then sets
//!    `DeferredShutdown::is_deferred` ([`Core::shut_down_later`]).
//! 2. Every task that ends counts itself as completed and then looks at `is_deferred`
//!    ([`Core::complete_task`]). The thread that has set `is_deferred` then looks at the count: work that a
//!    task has begun counts as inside the task, and may drop the runtime when no task is in flight any more.
//!    The counter and the flag are SeqCst. So either the last task to complete sees the flag, or the thread
//!    that drops the runtime sees no task in flight, or both.
//! 3. A thread that sees the flag and no task in flight takes the `Arc`. The mutex makes sure that only one
//!    does.
//! 4. That thread writes the recorded graphs. If it has completed a task, it has released the latches of the
//!    task first. It may be in the middle of work on the runtime's own threads (in a waker, or in a loop), so
//!    it must not wait for them. A thread that is started for it ends them ([`LastReference::shut_down`]).
//!
//! The runtime is not freed before that, so every [node](super::task::node) may use its pointer to the
//! runtime until it has counted itself as completed, and not later.
//!
//! | state | `core` | `is_deferred` | changed by |
//! |---|---|---|---|
//! | running | `None` | `false` | |
//! | being dropped inside a task | `Some` | `false` | the thread that drops the runtime |
//! | dropped inside a task | `Some` | `true` | the same thread |
//! | shutting down | `None` | `true` | the thread that took the `Arc` |
//!
//! A task that is submitted after the drop, by another handle inside the same task, is in flight like any
//! other and is waited for. The tests are in `anabranch/tests/barriers.rs` and `handles.rs`.

use super::core::Core;
use std::sync::{Arc, atomic::Ordering::SeqCst};

/// Keeps a runtime running: the [`Runtime`](crate::Runtime) and its task groups share it.
#[derive(Debug)]
pub(crate) struct Running(Arc<Core>);

impl Running {
    pub(crate) fn new(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self(Arc::clone(core)))
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0
    }

    /// Waits for all tasks, unless the calling thread runs one of them or is in a forked process.
    pub(crate) fn wait_for_tasks(&self) {
        let core = &self.0;
        if core.check_outside("drop").is_err() {
            return;
        }
        // The other nodes would wait for what this one does not submit.
        core.cluster().into_iter().for_each(|cluster| cluster.stop_if_panicking());
        if !core.is_idle() {
            // No panic of a subscriber may end this wait: the tasks use the runtime.
            core.wait_without_span(&core.latch());
        }
        core.forget_completed();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.0.id().is_in_this_process() {
            // The threads are in the parent process, which ends the runtime and prints its failures.
            std::mem::forget(Arc::clone(&self.0));
        } else if self.0.check_outside("drop").is_err() {
            self.0.shut_down_later();
        } else {
            self.wait_for_tasks();
            self.0.shut_down();
        }
    }
}

impl Core {
    /// Writes the recorded graphs and ends the threads. No task may be in flight.
    fn shut_down(&self) {
        self.end_nodes();
        self.finish_recording();
        self.stop_threads();
    }

    /// Ends the threads. No task may be in flight.
    pub(super) fn stop_threads(&self) {
        self.executor.stop();
    }

    /// With several nodes: meets the others for the last time.
    fn end_nodes(&self) {
        self.cluster().into_iter().for_each(|cluster| cluster.end());
    }

    fn finish_recording(&self) {
        if let Some(recorder) = self.recorder() {
            recorder.finish();
        }
    }

    /// Leaves the shutdown to the task that completes last: the runtime was dropped inside one of its own
    /// tasks.
    fn shut_down_later(self: &Arc<Self>) {
        *self.shutdown.core.lock() = Some(Arc::clone(self));
        self.shutdown.is_deferred.store(true, SeqCst);
        self.last_reference().into_iter().for_each(LastReference::shut_down);
    }

    /// Counts a completed task. Returns the runtime if it was dropped inside a task and this was its last
    /// task; the caller shuts it down.
    pub(super) fn complete_task(&self) -> Option<LastReference> {
        self.in_flight.complete();
        // SeqCst: see the module documentation.
        if self.shutdown.is_deferred.load(SeqCst) { self.last_reference() } else { None }
    }

    /// The runtime, which was dropped inside a task, if no task is in flight: for the first thread that asks.
    #[cold]
    fn last_reference(&self) -> Option<LastReference> {
        if self.in_flight.count() > 0 {
            return None;
        }
        self.shutdown.core.lock().take().map(LastReference)
    }
}

/// The last reference to a runtime that was dropped inside one of its own tasks.
pub(super) struct LastReference(Arc<Core>);

impl LastReference {
    /// Writes the recorded graphs, and has the threads ended by another thread.
    pub(super) fn shut_down(self) {
        let Self(core) = self;
        core.finish_recording();
        let other = Arc::clone(&core);
        let end = move || {
            other.end_nodes();
            other.executor.stop();
        };
        if std::thread::Builder::new().name("anabranch-shutdown".into()).spawn(end).is_err() {
            // The system has no thread left, and this one must not wait. The threads of the runtime sleep
            // until the process ends.
            std::mem::forget(core);
        }
    }
}
