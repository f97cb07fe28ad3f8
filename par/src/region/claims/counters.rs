//! The counters that participants claim units from.

use super::Partition;
use crate::sync::atomic::{AtomicUsize, Ordering::*};
use crossbeam_utils::CachePadded;

/// The runs of one block: those before `next` are claimed.
#[derive(Debug, Default)]
pub(super) struct Counter {
    pub(super) next: AtomicUsize,
    pub(super) end: AtomicUsize,
}

/// The counters of one slot, one per block; every region that is opened in the slot uses them again.
#[derive(Debug)]
pub(crate) struct Counters(Box<[CachePadded<Counter>]>);

impl Counters {
    /// For regions of up to `participants` participants.
    pub(crate) fn new(participants: usize) -> Self {
        Self((0..participants).map(|_| CachePadded::default()).collect())
    }

    /// Sets the counters for a new region. No other thread may be using them.
    pub(crate) fn lay_out(&self, partition: &Partition) {
        for (block, counter) in self.0[..partition.blocks()].iter().enumerate() {
            let runs = partition.runs(block);
            // Relaxed: the region is opened with Release afterwards.
            counter.next.store(runs.start, Relaxed);
            counter.end.store(runs.end, Relaxed);
        }
    }

    /// Whether a unit is left that no participant has claimed (a hint).
    pub(crate) fn has_unclaimed(&self, partition: &Partition) -> bool {
        self.0[..partition.blocks()].iter().any(|c| c.next.load(Relaxed) < c.end.load(Relaxed))
    }

    #[inline]
    pub(super) fn of(&self, block: usize) -> &Counter {
        &self.0[block]
    }
}
