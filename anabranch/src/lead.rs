//! How far submission may run ahead: the counts of tasks submitted and completed, and the gate at which a thread that
//! submits too fast is held.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

/// A value alone on its cache lines (two of them: adjacent lines are fetched in pairs): what submitters write must not be
/// beside what runners read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Submitters write one count, runners the other.
#[derive(Debug)]
pub(crate) struct Lead {
    limit: u64,
    submitted: Padded<AtomicU64>,
    completed: Padded<AtomicU64>,
    /// What `completed` was when a submitter last looked: it looks again only when this is too little.
    seen: Padded<AtomicU64>,
    /// Submitters that are held.
    held: AtomicUsize,
    gate: Mutex<()>,
    opens: Condvar,
}

impl Lead {
    /// At most `limit` tasks may be in flight.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit: limit as u64,
            submitted: Padded::default(),
            completed: Padded::default(),
            seen: Padded::default(),
            held: AtomicUsize::new(0),
            gate: Mutex::new(()),
            opens: Condvar::new(),
        }
    }

    /// Tasks that were submitted and are not done.
    pub(crate) fn in_flight(&self) -> u64 {
        // First the smaller one: the difference must not wrap.
        let completed = self.completed.0.load(SeqCst);
        self.submitted.0.load(SeqCst) - completed
    }

    /// Tasks that are done.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.0.load(Relaxed)
    }

    /// Tasks that were submitted.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.0.load(Relaxed)
    }

    /// Whether no task is in flight.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        // Acquire: what completed tasks did is visible.
        self.completed.0.load(Acquire) == self.submitted.0.load(Relaxed)
    }

    /// Whether a submitter is to be held now. Where there is room this costs no look at what the runners write.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        let submitted = self.submitted.0.load(Relaxed);
        if submitted.wrapping_sub(self.seen.0.load(Relaxed)) < self.limit {
            return false;
        }
        let completed = self.completed.0.load(Acquire);
        self.seen.0.store(completed, Relaxed);
        // Meanwhile others may have submitted, and that may be done.
        submitted.saturating_sub(completed) >= self.limit
    }

    /// Counts a submission. One thread at a time, under the lock of the books: so it is no read-modify-write.
    #[inline]
    pub(crate) fn submit(&self) {
        let submitted = self.submitted.0.load(Relaxed) + 1;
        self.submitted.0.store(submitted, Release);
    }

    /// Counts a task that is done.
    #[inline]
    pub(crate) fn complete(&self) {
        self.completed.0.fetch_add(1, SeqCst);
        // SeqCst on counter and `held`: either we see who is held, or the held one sees our count.
        if self.held.load(SeqCst) > 0 {
            self.open_gate();
        }
    }

    #[cold]
    fn open_gate(&self) {
        if self.in_flight() <= self.low_water() {
            drop(self.gate.lock());
            self.opens.notify_all();
        }
    }

    /// Held submitters are let go when so few tasks are left: not for every one, which would be a wake-up each.
    fn low_water(&self) -> u64 {
        self.limit - 1 - self.limit / 4
    }

    /// Blocks until there is room. `watch` is called now and then.
    #[cold]
    pub(crate) fn hold(&self, every: std::time::Duration, mut watch: impl FnMut()) {
        self.held.fetch_add(1, SeqCst);
        let mut gate = self.gate.lock();
        while self.in_flight() > self.low_water() {
            if self.opens.wait_for(&mut gate, every).timed_out() {
                parking_lot::MutexGuard::unlocked(&mut gate, &mut watch);
            }
        }
        drop(gate);
        self.held.fetch_sub(1, SeqCst);
    }
}
