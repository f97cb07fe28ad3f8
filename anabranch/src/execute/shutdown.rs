//! The end of a runtime, also of one that is dropped inside one of its own tasks.
//!
//! # Protocol
//! A runtime ends when the [`Runtime`](crate::Runtime) and all task groups are dropped, which share a [`Running`]. Outside of the
//! tasks, the thread that drops the last of them waits for all tasks and then ends the threads. Inside a task it cannot wait, because that task would wait for itself. Instead it hands a reference to itself to the task that completes last:
//!
//! 1. [`Running::drop`] finds that its thread runs a task of this runtime. It stores an `Arc` of the runtime in `DeferredShutdown::core`
//!    and then sets `DeferredShutdown::is_deferred` ([`Core::shut_down_later`]).
//! 2. Every task that ends counts itself as completed and then looks at `is_deferred` ([`Core::complete_task`]). Both the
//!    counter and the flag are SeqCst: at least the last task to complete sees the flag, because the task in which the
//!    runtime was dropped had not completed when the flag was set.
//! 3. A task that sees the flag and finds no task in flight takes the `Arc`. The mutex makes sure that only one does.
//! 4. That thread releases the latches of its task first, and only then drops the [`LastReference`], which writes the recorded
//!    graphs and ends the threads. A thread of the pool may thus end its own pool; the pool allows that.
//!
//! The runtime is not freed before that, so every [node](super::node) may use its pointer to the runtime until it has
//! counted itself as completed, and not later.
//!
//! | state | `core` | `is_deferred` | changed by |
//! |---|---|---|---|
//! | running | `None` | `false` | |
//! | being dropped inside a task | `Some` | `false` | the thread that drops the runtime |
//! | dropped inside a task | `Some` | `true` | the same thread |
//! | shutting down | `None` | `true` | the thread whose task completed last |
//!
//! A task that is submitted after the drop, by another handle inside the same task, is in flight like any other and is waited
//! for. The tests are in `anabranch/tests/barriers.rs` and `handles.rs`.

use super::core::Core;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

/// The reference that a runtime which was dropped inside its own task leaves for its last task.
#[derive(Default)]
pub(super) struct DeferredShutdown {
    core: Mutex<Option<Arc<Core>>>,
    is_deferred: AtomicBool,
}

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

    /// Waits for all tasks, unless the calling thread runs one of them.
    pub(crate) fn wait_for_tasks(&self) {
        let core = &self.0;
        if core.check_outside("drop").is_err() {
            return;
        }
        if !core.is_idle() {
            // No panic of a subscriber may end this wait: the tasks use the runtime.
            core.wait_without_span(&core.latch());
        }
        core.forget_completed();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.check_outside("drop").is_err() {
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
        if let Some(recorder) = self.recorder() {
            recorder.finish();
        }
        self.executor.stop();
    }

    /// Leaves the shutdown to the task that completes last: the runtime was dropped inside one of its own tasks.
    fn shut_down_later(self: &Arc<Self>) {
        *self.shutdown.core.lock() = Some(Arc::clone(self));
        self.shutdown.is_deferred.store(true, SeqCst);
    }

    /// Counts a completed task. Returns the runtime if it was dropped inside a task and this was its last task; the caller
    /// drops it.
    pub(super) fn complete_task(&self) -> Option<LastReference> {
        self.in_flight.complete();
        // SeqCst, as in `shut_down_later`: either this thread sees the flag, or another task is still in flight.
        if !self.shutdown.is_deferred.load(SeqCst) || !self.in_flight.is_idle() {
            return None;
        }
        self.shutdown.core.lock().take().map(LastReference)
    }
}

/// The last reference to a runtime that was dropped inside one of its own tasks.
pub(super) struct LastReference(Arc<Core>);

impl Drop for LastReference {
    fn drop(&mut self) {
        // Before the memory is freed: the threads may still look at it.
        self.0.shut_down();
    }
}
