//! How idle workers fall asleep and are woken: no wake-up is lost, and no worker is woken without need.
//!
//! A worker that runs out of work *searches* (spins) for a while and then *sleeps* (parks). A thread that
//! publishes work wakes one sleeper, and only if no worker searches. One word counts searchers, sleepers and
//! threads that wait for a half of a join, so one load says whether any thread is idle.
//!
//! | state of a worker | counted in | left by | to |
//! |---|---|---|---|
//! | busy | – | `start_search`, by the worker | searching |
//! | searching | SEARCHER | `end_search`, by the worker | busy |
//! | searching | SEARCHER | `sleep`, by the worker | asleep |
//! | asleep | SLEEPER | the swap of `asleep` to false, by the thread that wakes it, or by the worker if it sees work | searching |
//!
//! A publisher and a worker that falls asleep meet like this. The fences are sequentially consistent, so at
//! least one side sees what the other has written:
//!
//! ```text
//! publisher                      worker
//! 1. publish the work            1. asleep = true; searchers -= 1; sleepers += 1
//! 2. fence                       2. fence
//! 3. searchers > 0?  done        3. is there work?  get up again
//! 4. sleepers > 0?   wake one    4. park until asleep is false
//! ```
//!
//! If the publisher sees a searcher, it relies on that searcher to find the work. So a searcher that takes
//! one piece of work looks whether more is left, and wakes the next sleeper if so (`end_search`). A single
//! wake-up by the publisher is therefore enough, and the publisher never pays for more than one.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `idle` | each worker for itself; the thread that wakes a sleeper subtracts SLEEPER | all threads |
//! | `Sleeper::asleep` | set by its worker; cleared by whichever thread swaps it to false first, and only that thread corrects `idle` | all threads |
//! | `Sleeper::thread` | its worker, once, before it first sleeps | threads that have swapped `asleep` to false |
//!
//! Loom checks that no wake-up is lost (`no_wake_up_is_lost`, `work_that_a_searcher_leaves_is_found_later` in
//! `models.rs`; `an_offer_wakes_a_sleeper` in `join/models.rs`). The pattern is that of an
//! [eventcount](https://www.1024cores.net/home/lock-free-algorithms/eventcounts): prepare to wait, look
//! again, commit. rayon's
//! [`sleep/README.md`](https://github.com/rayon-rs/rayon/blob/main/rayon-core/src/sleep/README.md) describes
//! a similar protocol with a counter of events.

use crate::sync::{
    Thread,
    atomic::{AtomicBool, AtomicU64, Ordering::*, fence},
    thread,
};
use crossbeam_utils::CachePadded;
use std::sync::OnceLock;

const SLEEPER: u64 = 1;
const SEARCHER: u64 = 1 << 20;
/// A thread that waits for a half of a join, and would run halves that descend from it.
const WAITER: u64 = 1 << 40;

#[derive(Debug)]
pub(crate) struct Sleep {
    /// The three counters, in one word.
    idle: CachePadded<AtomicU64>,
    sleepers: Box<[CachePadded<Sleeper>]>,
}

#[derive(Debug, Default)]
struct Sleeper {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Sleep {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            idle: CachePadded::new(AtomicU64::new(0)),
            sleepers: (0..workers).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Each worker calls this on its own thread before anything else.
    pub(crate) fn register(&self, worker: usize) {
        self.sleepers[worker].thread.set(thread::current()).expect("a worker registers once");
    }

    /// The calling worker begins to look for work.
    pub(crate) fn start_search(&self) {
        self.idle.fetch_add(SEARCHER, Relaxed);
    }

    /// The calling worker has found work. If there is `more()`, another worker is woken for it, because its
    /// publisher may have relied on this worker's search.
    pub(crate) fn end_search(&self, more: impl Fn() -> bool) {
        self.idle.fetch_sub(SEARCHER, Relaxed);
        // Pairs with the fence in `wake_one`: either the publisher sees that we search no longer, or we see
        // its work.
        fence(SeqCst);
        if more() {
            self.wake_one();
        }
    }

    /// The searching worker sleeps until it is woken, unless there is `work()`. It is searching again
    /// afterwards.
    pub(crate) fn sleep(&self, worker: usize, work: impl Fn() -> bool) {
        let sleeper = &self.sleepers[worker];
        // Release: a thread that wakes us sees our handle. A swap and not a store, because only a
        // read-modify-write is ordered with the swaps of the threads that wake us.
        sleeper.asleep.swap(true, Release);
        self.idle.fetch_sub(SEARCHER - SLEEPER, Relaxed);
        // Pairs with the fence in `wake_one`: either we see the work below, or the publisher sees that we
        // sleep.
        fence(SeqCst);
        if work() {
            // If another thread has woken us already, it has corrected the counter.
            if sleeper.asleep.swap(false, Relaxed) {
                self.idle.fetch_sub(SLEEPER, Relaxed);
            }
        } else {
            while sleeper.asleep.load(Acquire) {
                thread::park();
            }
        }
        self.idle.fetch_add(SEARCHER, Relaxed);
    }

    /// Whether any thread could take work now (a hint, for one load).
    #[inline]
    pub(crate) fn any_idle(&self) -> bool {
        self.idle.load(Relaxed) != 0
    }

    /// Whether the next thread that publishes work has to wake a worker for it (a hint, for one load).
    #[inline]
    pub(crate) fn must_wake(&self) -> bool {
        let idle = self.idle.load(Relaxed);
        idle & (SEARCHER - 1) != 0 && idle & (WAITER - SEARCHER) == 0
    }

    /// Whether a worker could take work now (a hint). Threads that wait for a half of a join do not count.
    pub(crate) fn any_worker_idle(&self) -> bool {
        self.idle.load(Relaxed) & (WAITER - 1) != 0
    }

    /// Counts the calling thread as waiting for a half of a join, or no longer.
    pub(crate) fn count_waiter(&self, waits: bool) {
        self.idle.fetch_add(if waits { WAITER } else { WAITER.wrapping_neg() }, Relaxed);
    }

    /// Wakes one sleeping worker if no worker is searching. Called after work was published.
    #[inline]
    pub(crate) fn wake_one(&self) {
        // Pairs with the fence in `sleep`.
        fence(SeqCst);
        self.wake_one_after_fence();
    }

    /// The same, for a thread that has published work and then come through a sequentially consistent fence.
    #[inline]
    pub(crate) fn wake_one_after_fence(&self) {
        if self.must_wake() {
            self.wake_sleepers(1);
        }
    }

    /// Wakes this worker if it sleeps. Called after work was published that it alone may do.
    pub(crate) fn wake(&self, worker: usize) {
        // Pairs with the fence in `sleep`.
        fence(SeqCst);
        self.wake_sleeper(&self.sleepers[worker]);
    }

    /// Wakes every sleeping worker.
    pub(crate) fn wake_all(&self) {
        fence(SeqCst);
        self.wake_sleepers(usize::MAX);
    }

    #[cold]
    fn wake_sleepers(&self, mut count: usize) {
        for sleeper in &self.sleepers {
            if count == 0 {
                return;
            }
            count -= usize::from(self.wake_sleeper(sleeper));
        }
    }

    /// Wakes the worker, if it sleeps. Returns whether it did.
    fn wake_sleeper(&self, sleeper: &Sleeper) -> bool {
        // AcqRel: the woken worker sees the work that it was woken for.
        let asleep = sleeper.asleep.load(Relaxed) && sleeper.asleep.swap(false, AcqRel);
        if asleep {
            self.idle.fetch_sub(SLEEPER, Relaxed);
            if let Some(thread) = sleeper.thread.get() {
                thread.unpark();
            }
        }
        asleep
    }
}
