//! The limit of tasks in flight: how far submission may run ahead of execution.
//!
//! Two counters, of tasks submitted and of tasks completed, are on cache lines of their own: submitters write
//! one, workers the other. A submitter reads the workers' counter only when the value that it last saw leaves
//! no room. A submitter that finds no room blocks until a quarter of the limit is free, so that not every
//! completed task wakes a thread.

use anabranch_par::Patience;
use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::*},
    time::Duration,
};

/// Counts the tasks in flight and blocks submitters beyond the limit.
#[derive(Debug)]
pub(super) struct InFlight {
    limit: u64,
    submitted: CachePadded<AtomicU64>,
    completed: CachePadded<AtomicU64>,
    /// The value of `completed` that a submitter last saw. Submitters look again only when it leaves no room.
    seen: CachePadded<AtomicU64>,
    /// The number of blocked submitters.
    blocked: AtomicUsize,
    gate: Mutex<()>,
    opens: Condvar,
}

impl InFlight {
    /// At most `limit` tasks may be in flight.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit as u64,
            submitted: CachePadded::default(),
            completed: CachePadded::default(),
            seen: CachePadded::default(),
            blocked: AtomicUsize::new(0),
            gate: Mutex::new(()),
            opens: Condvar::new(),
        }
    }

    /// The number of tasks that were submitted and have not completed.
    pub(super) fn count(&self) -> u64 {
        // The smaller one first: the difference must not wrap.
        let completed = self.completed.load(SeqCst);
        self.submitted.load(SeqCst) - completed
    }

    /// The number of tasks that have completed.
    pub(super) fn completed(&self) -> u64 {
        self.completed.load(Relaxed)
    }

    /// The number of tasks that were submitted.
    pub(super) fn submitted(&self) -> u64 {
        self.submitted.load(Relaxed)
    }

    /// Whether no task is in flight.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        // Acquire: the effects of completed tasks are visible.
        self.completed.load(Acquire) == self.submitted.load(Relaxed)
    }

    /// Whether the limit is reached. If there is room, this does not read the workers' counter.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        let submitted = self.submitted.load(Relaxed);
        if submitted.wrapping_sub(self.seen.load(Relaxed)) < self.limit {
            return false;
        }
        let completed = self.completed.load(Acquire);
        self.seen.store(completed, Relaxed);
        // Saturating: tasks that other threads have submitted meanwhile may have completed.
        submitted.saturating_sub(completed) >= self.limit
    }

    /// Counts a submission. One thread submits at a time, under the lock of the runtime's state, so this need
    /// not be a read-modify-write operation.
    #[inline]
    pub(super) fn submit(&self) {
        let submitted = self.submitted.load(Relaxed) + 1;
        self.submitted.store(submitted, Release);
    }

    /// Counts a completed task.
    #[inline]
    pub(super) fn complete(&self) {
        self.completed.fetch_add(1, SeqCst);
        // SeqCst on the counter and on `blocked`: either this thread sees the blocked submitter, or the
        // submitter sees the count of this thread.
        if self.blocked.load(SeqCst) > 0 {
            self.open_gate();
        }
    }

    #[cold]
    fn open_gate(&self) {
        if self.count() <= self.low_water() {
            drop(self.gate.lock());
            self.opens.notify_all();
        }
    }

    /// Blocked submitters go on when no more tasks than this are in flight.
    fn low_water(&self) -> u64 {
        self.limit - 1 - self.limit / 4
    }

    /// Blocks until there is room. Calls `help` before the thread sleeps, which returns whether it did
    /// anything useful, and `watch` at intervals while it sleeps.
    #[cold]
    pub(super) fn block(&self, mut help: impl FnMut() -> bool, every: Duration, mut watch: impl FnMut()) {
        let mut patience = Patience::new();
        loop {
            if self.count() <= self.low_water() {
                return;
            }
            if help() {
                patience = Patience::new();
            } else if !patience.pause() {
                break;
            }
        }
        self.blocked.fetch_add(1, SeqCst);
        let mut gate = self.gate.lock();
        while self.count() > self.low_water() {
            if self.opens.wait_for(&mut gate, every).timed_out() {
                MutexGuard::unlocked(&mut gate, &mut watch);
            }
        }
        drop(gate);
        self.blocked.fetch_sub(1, SeqCst);
    }
}
