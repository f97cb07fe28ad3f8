//! Latches: counts of tasks that lead to an event.

use super::event::Event;
use crate::sync::atomic::{AtomicUsize, Ordering::*};
use anabranch_graph::TaskId;
use std::sync::Arc;

/// Sets an event when all tasks that hold the latch have completed.
#[derive(Debug)]
pub(crate) struct Latch {
    left: AtomicUsize,
    /// The last task that may hold it.
    pub(crate) last: TaskId,
    pub(crate) event: Event,
}

impl Latch {
    /// A latch with one count, which its maker [releases](Self::release) when it has added the latch to all tasks.
    pub(crate) fn new(last: TaskId) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(1), last, event: Event::default() })
    }

    /// Adds one count, for a task that has not completed.
    pub(crate) fn add(&self) {
        self.left.fetch_add(1, Relaxed);
    }

    /// Removes one count. The last one sets the event.
    pub(crate) fn release(&self) {
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.event.set();
        }
    }
}
