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
    /// A latch with one count, which its maker [releases](Self::release) when it has added the latch to all
    /// tasks.
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

/// Latches that a thread is about to release: mostly one.
pub(crate) struct Latches {
    first: Arc<Latch>,
    others: Vec<Arc<Latch>>,
}

impl Latches {
    pub(crate) fn new(first: Arc<Latch>, others: Vec<Arc<Latch>>) -> Self {
        Self { first, others }
    }

    /// Adds latches to others, if there are any.
    pub(crate) fn extend(latches: &mut Option<Self>, more: Vec<Arc<Latch>>) {
        let mut more = more.into_iter();
        if latches.is_none() {
            *latches = more.next().map(|first| Self::new(first, Vec::new()));
        }
        latches.iter_mut().for_each(|latches| latches.others.extend(more.by_ref()));
    }

    /// Releases all of them.
    pub(crate) fn release(self) {
        self.first.release();
        self.others.iter().for_each(|latch| latch.release());
    }
}
