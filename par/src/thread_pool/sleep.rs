//! How idle workers fall asleep and are woken: no wake-up is lost, and none is made that is not needed.
//!
//! A worker that runs out of work first *searches* (spins) for a while and then *sleeps* (parks). Whoever publishes
//! work wakes one sleeper, and only if nobody is searching. The two sides meet like this (fences sequentially
//! consistent, so at least one side sees the other):
//!
//! ```text
//! publisher                      worker
//! publish the work               searchers -= 1; sleepers += 1
//! fence                          fence
//! searchers > 0?  done           work to be seen?  get up again
//! sleepers > 0?   wake one       park
//! ```
//!
//! A worker that takes one piece of work and sees that more is left wakes the next one; so a single wake-up by the
//! publisher is enough, and the publisher never pays for more than one.

use crate::sync::{
    Padded, Thread,
    atomic::{AtomicBool, AtomicU64, Ordering::*, fence},
    thread,
};
use std::sync::OnceLock;

/// The three counters, in one word: so that one look says whether anybody is idle.
const SLEEPER: u64 = 1;
const SEARCHER: u64 = 1 << 20;
/// A thread that waits for a half of a join, and would run another one that this one has brought forth.
const WAITER: u64 = 1 << 40;

#[derive(Debug)]
pub(crate) struct Sleep {
    idle: Padded<AtomicU64>,
    beds: Box<[Padded<Bed>]>,
}

#[derive(Debug, Default)]
struct Bed {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Sleep {
    /// For `workers` workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self { idle: Padded(AtomicU64::new(0)), beds: (0..workers).map(|_| Padded::default()).collect() }
    }

    /// To be called by each worker on its own thread before anything else.
    pub(crate) fn register(&self, worker: usize) {
        self.beds[worker].thread.set(thread::current()).expect("a worker registers once");
    }

    /// The calling worker begins to look for work.
    pub(crate) fn start_search(&self) {
        self.idle.fetch_add(SEARCHER, Relaxed);
    }

    /// The calling worker has found work. If `more()` is there, somebody else is woken for it: its publisher may have
    /// relied on this worker's search.
    pub(crate) fn end_search(&self, more: impl Fn() -> bool) {
        self.idle.fetch_sub(SEARCHER, Relaxed);
        // Pairs with the fence in `wake_one`: either the publisher sees that we search no longer, or we see its work.
        fence(SeqCst);
        if more() {
            self.wake_one();
        }
    }

    /// The searching worker sleeps until it is woken, unless `work()` is there. It is searching again afterwards.
    pub(crate) fn sleep(&self, worker: usize, work: impl Fn() -> bool) {
        let bed = &self.beds[worker];
        // Release: whoever wakes us sees our thread's handle. A swap and not a store: a read-modify-write has one place in the order of what wakers do to the same flag.
        bed.asleep.swap(true, Release);
        self.idle.fetch_sub(SEARCHER - SLEEPER, Relaxed);
        // Pairs with the fence in `wake_one`: either we see the work below, or the publisher sees that we sleep.
        fence(SeqCst);
        if work() {
            // A waker may have taken us out already; then the counter is his.
            if bed.asleep.swap(false, Relaxed) {
                self.idle.fetch_sub(SLEEPER, Relaxed);
            }
        } else {
            while bed.asleep.load(Acquire) {
                thread::park();
            }
        }
        self.idle.fetch_add(SEARCHER, Relaxed);
    }

    /// Whether any thread could take work now (a hint, for one load).
    #[inline]
    pub(crate) fn anybody_idle(&self) -> bool {
        self.idle.load(Relaxed) != 0
    }

    /// Whether it is a worker (a hint): not only a thread that waits for a half of a join.
    pub(crate) fn worker_idle(&self) -> bool {
        self.idle.load(Relaxed) & (WAITER - 1) != 0
    }

    /// Counts the calling thread as waiting for a half of a join, or no longer.
    pub(crate) fn count_waiting(&self, waits: bool) {
        self.idle.fetch_add(if waits { WAITER } else { WAITER.wrapping_neg() }, Relaxed);
    }

    /// To be called after work was published: wakes one sleeping worker if none is searching.
    #[inline]
    pub(crate) fn wake_one(&self) {
        // Pairs with the fence in `sleep`.
        fence(SeqCst);
        let idle = self.idle.load(Relaxed);
        if idle & (SEARCHER - 1) != 0 && idle & (WAITER - SEARCHER) == 0 {
            self.rouse(1);
        }
    }

    /// To be called after work was published for one worker alone: wakes it if it sleeps.
    pub(crate) fn wake(&self, worker: usize) {
        // Pairs with the fence in `sleep`.
        fence(SeqCst);
        self.rouse_from(&self.beds[worker]);
    }

    /// Wakes every sleeping worker.
    pub(crate) fn wake_all(&self) {
        fence(SeqCst);
        self.rouse(usize::MAX);
    }

    #[cold]
    fn rouse(&self, mut count: usize) {
        for bed in &self.beds {
            if count == 0 {
                return;
            }
            count -= usize::from(self.rouse_from(bed));
        }
    }

    /// Wakes the worker in this bed, if it sleeps.
    fn rouse_from(&self, bed: &Bed) -> bool {
        // AcqRel: who gets up sees the work that it was woken for.
        let asleep = bed.asleep.load(Relaxed) && bed.asleep.swap(false, AcqRel);
        if asleep {
            self.idle.fetch_sub(SLEEPER, Relaxed);
            if let Some(thread) = bed.thread.get() {
                thread.unpark();
            }
        }
        asleep
    }
}
