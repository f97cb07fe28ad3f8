//! A queue of jobs that may begin while they are queued.
//!
//! The thread that joins a spawned job runs it if no other thread has begun it. The job then leaves a *stale*
//! entry behind, which the thread drops that takes it out. While all threads are busy that take entries out,
//! none takes stale ones out, so they are counted. When there are many and they are the greater part of the
//! queue, the thread that left the last one *sweeps* the queue: it takes out every entry and puts back those
//! that are not stale. Each sweep takes out more entries than it puts back. When a thread has left a stale
//! entry and no other thread sweeps, there are at most [`STALE`] stale entries, or at most as many as others.

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering::*};

/// How many stale entries there may be before they are swept out.
pub(super) const STALE: isize = 128;

/// A queue that many threads may add to and take from.
pub(super) trait Entries: Default {
    type Entry;
    fn push(&self, entry: Self::Entry);
    fn pop(&self) -> Option<Self::Entry>;
    fn is_empty(&self) -> bool;
    fn len(&self) -> usize;
    fn is_stale(entry: &Self::Entry) -> bool;
}

#[derive(Default)]
pub(super) struct SweptQueue<Q> {
    entries: Q,
    /// The number of stale entries. An entry is counted after its job has begun, so the count may be below 0
    /// for a moment.
    stale: CachePadded<AtomicIsize>,
    /// Held by the thread that sweeps.
    sweep: Mutex<()>,
}

impl<Q: Entries> SweptQueue<Q> {
    #[inline]
    pub(super) fn push(&self, entry: Q::Entry) {
        self.entries.push(entry);
    }

    /// Takes out the oldest entry. It may be stale: then the caller says so with
    /// [`popped_stale`](Self::popped_stale). This does not look at the entry itself: a thread that first
    /// reads a job and then begins it would fetch the job's cache line from another core twice.
    #[inline]
    pub(super) fn pop(&self) -> Option<Q::Entry> {
        self.entries.pop()
    }

    /// Called for a stale entry that [`pop`](Self::pop) returned.
    pub(super) fn popped_stale(&self) {
        self.stale.fetch_sub(1, Relaxed);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Called by a thread that has made an entry stale. Returns whether entries were moved: then a thread may
    /// have missed them, and one must be woken.
    #[must_use]
    pub(super) fn left_stale(&self) -> bool {
        let stale = self.stale.fetch_add(1, Relaxed) + 1;
        stale > STALE && 2 * stale as usize > self.len() && self.sweep()
    }

    /// Takes every entry out and puts the ones that are not stale back, in their order.
    #[cold]
    fn sweep(&self) -> bool {
        let Some(_guard) = self.sweep.try_lock() else { return false };
        let mut moved = false;
        for _ in 0..self.len() {
            let Some(entry) = self.entries.pop() else { break };
            if Q::is_stale(&entry) {
                self.popped_stale();
            } else {
                self.entries.push(entry);
                moved = true;
            }
        }
        moved
    }

    /// Waits for a thread that sweeps, which may have taken out the last entry to put it back.
    pub(super) fn wait_for_sweep(&self) {
        drop(self.sweep.lock());
    }
}
