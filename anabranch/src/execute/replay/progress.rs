//! How far the strands of a run have come, and the threads that sleep until they have come further.

use crate::sync::{
    Mutex, Thread,
    atomic::{AtomicU64, AtomicUsize, Ordering::*, fence},
    thread,
};
use crossbeam_utils::CachePadded;
use std::{mem, time::Duration};

/// A thread that sleeps looks around after this time, although nothing has woken it.
const LOOK: Duration = Duration::from_secs(1);

/// Loom takes sequentially consistent operations for acquiring and releasing ones. A fence gives it the order
/// that they have.
#[inline]
fn in_one_order() {
    #[cfg(loom)]
    fence(SeqCst);
}

/// How many steps of each strand are done.
pub(super) struct Progress {
    /// Stored after steps for which another strand waits, and at the end.
    done: Box<[CachePadded<AtomicU64>]>,
    /// The number of strands that have an end still before them.
    unfinished: AtomicUsize,
    /// The number of threads in the list.
    sleeping: AtomicUsize,
    sleepers: Mutex<Vec<Thread>>,
}

impl Progress {
    /// What [`done`](Self::done) says of a strand that has ended.
    pub(super) const END: u64 = i64::MAX as u64;

    pub(super) fn new(strands: usize) -> Self {
        Self {
            done: (0..strands).map(|_| CachePadded::default()).collect(),
            unfinished: AtomicUsize::new(strands),
            sleeping: AtomicUsize::new(0),
            sleepers: Mutex::default(),
        }
    }

    /// The number of steps of a strand that are done.
    #[inline]
    pub(super) fn done(&self, strand: usize) -> u64 {
        // SeqCst: see `sleep`. It is an acquiring load, too: what the steps have written is visible.
        self.done[strand].load(SeqCst)
    }

    /// Counts steps of a strand as done: this many in all.
    #[inline]
    pub(super) fn set_done(&self, strand: usize, done: u64) {
        // SeqCst, and before the look at the sleepers: see `sleep`.
        self.done[strand].swap(done, SeqCst);
        in_one_order();
        if self.sleeping.load(SeqCst) > 0 {
            self.wake();
        }
    }

    /// Notes that a strand has ended, once.
    pub(super) fn finish(&self, strand: usize) {
        self.unfinished.fetch_sub(1, SeqCst);
        self.set_done(strand, Self::END);
    }

    /// Whether all strands have ended.
    pub(super) fn is_finished(&self) -> bool {
        self.unfinished.load(SeqCst) == 0
    }

    #[cold]
    fn wake(&self) {
        let sleepers = {
            let mut sleepers = self.sleepers.lock();
            self.sleeping.store(0, SeqCst);
            mem::take(&mut *sleepers)
        };
        sleepers.iter().for_each(Thread::unpark);
    }

    /// Sleeps until a number of steps is stored, unless `found` finds something to do. Returns what it has
    /// found. May return earlier.
    ///
    /// The thread registers, and then looks. A thread that stores a number looks at the sleepers after that.
    /// All of these operations are sequentially consistent: so this thread sees the number, or the other one
    /// sees this thread.
    #[cold]
    pub(super) fn sleep<R>(&self, found: impl FnOnce() -> Option<R>) -> Option<R> {
        let own = thread::current();
        {
            let mut sleepers = self.sleepers.lock();
            sleepers.push(own.clone());
            self.sleeping.store(sleepers.len(), SeqCst);
        }
        // What this thread looks at next it reads after that, also whether a strand is taken.
        fence(SeqCst);
        let found = if self.is_finished() { None } else { found() };
        if !self.is_finished() && found.is_none() {
            thread::park_timeout(LOOK);
        }
        let mut sleepers = self.sleepers.lock();
        sleepers.retain(|sleeper| sleeper.id() != own.id());
        self.sleeping.store(sleepers.len(), SeqCst);
        found
    }
}
