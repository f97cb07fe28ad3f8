//! The number of jobs of a scope that have not ended, and the opener that waits for them.
//!
//! Jobs are counted twice: when they are spawned, and when they have ended. So threads that spawn jobs and
//! threads that run them write to different cache lines. All jobs have ended when the two counts are equal.
//! The opener loads `ended` first: a job that spawns another one does so before it ends, so no job is missed.
//!
//! Bit 0 of `ended` is PARKED (the opener sleeps), the rest is the count. While the opener sleeps, the last
//! job to end copies the opener's handle *before* it counts itself, because afterwards the scope may be gone.
//! rayon's `CountLatch` does the same.

use crate::{
    patience::Patience,
    sync::{
        Thread,
        atomic::{AtomicBool, AtomicUsize, Ordering::*, fence},
        thread,
    },
};
use crossbeam_utils::CachePadded;

const PARKED: usize = 1;
const ONE: usize = 2;

#[derive(Debug)]
pub(super) struct Pending {
    spawned: CachePadded<Spawned>,
    ended: CachePadded<AtomicUsize>,
    opener: Thread,
}

/// What a thread that spawns a job uses.
#[derive(Debug)]
struct Spawned {
    count: AtomicUsize,
    /// Whether the opener sleeps or is about to. The same as PARKED; threads that spawn jobs read this one.
    opener_sleeps: AtomicBool,
}

impl Pending {
    /// The opener calls this.
    pub(super) fn new() -> Self {
        let spawned = Spawned { count: AtomicUsize::new(0), opener_sleeps: AtomicBool::new(false) };
        Self { spawned: spawned.into(), ended: AtomicUsize::new(0).into(), opener: thread::current() }
    }

    /// Adds a job. Returns its number. The opener calls this, or a job that is counted itself.
    pub(super) fn add(&self) -> usize {
        self.spawned.count.fetch_add(1, Relaxed)
    }

    /// Counts a job that has ended. `self` may be gone when this returns.
    pub(super) fn finish(&self) {
        let mut state = self.ended.load(Relaxed);
        loop {
            let opener = if state & PARKED == 0 { None } else { self.opener_after(state) };
            // Release: the job happens before the opener goes on. So do jobs that ended earlier, because a
            // read-modify-write continues their release sequences.
            match self.ended.compare_exchange_weak(state, state + ONE, Release, Relaxed) {
                Ok(_) => {
                    if let Some(opener) = opener {
                        opener.unpark();
                    }
                    return;
                }
                Err(now) => state = now,
            }
        }
    }

    /// The opener, which sleeps, if only the job of the calling thread has not ended in this state.
    #[cold]
    fn opener_after(&self, state: usize) -> Option<Thread> {
        // Acquire, also for the load that `state` comes from: the jobs that have ended, and the opener before
        // it set PARKED, have spawned before.
        fence(Acquire);
        (state / ONE + 1 == self.spawned.count.load(Relaxed)).then(|| self.opener.clone())
    }

    /// Whether all jobs have ended, if `state` was loaded with Acquire from `ended`: that pairs with the
    /// Release of each job that has ended.
    fn have_all_ended(&self, state: usize) -> bool {
        state / ONE == self.spawned.count.load(Relaxed)
    }

    /// Waits until all jobs have ended (`true`) or there is `more()` that the opener could run itself
    /// (`false`). The opener calls this.
    pub(super) fn wait(&self, mut patience: Patience, more: impl Fn() -> bool) -> bool {
        loop {
            if self.have_all_ended(self.ended.load(Acquire)) {
                return true;
            }
            if more() {
                return false;
            }
            if !patience.pause() {
                self.park(&more);
            }
        }
    }

    #[cold]
    fn park(&self, more: &impl Fn() -> bool) {
        self.spawned.opener_sleeps.store(true, Relaxed);
        // Release: the thread of the last job sees what the opener has spawned.
        let mut state = self.ended.fetch_or(PARKED, AcqRel);
        // Pairs with the fence before `wake_opener`: either `more` sees the job that was added, or the thread
        // that adds it sees that the opener sleeps.
        fence(SeqCst);
        while !self.have_all_ended(state) && !more() {
            thread::park();
            state = self.ended.load(Acquire);
        }
        self.ended.fetch_and(!PARKED, Relaxed);
        self.spawned.opener_sleeps.store(false, Relaxed);
    }

    /// Wakes the opener, if it sleeps, for a job that it could run. Called after the job was added where
    /// `more` looks, and after a sequentially consistent fence.
    pub(super) fn wake_opener(&self) {
        if self.spawned.opener_sleeps.load(Relaxed) {
            self.opener.unpark();
        }
    }
}
