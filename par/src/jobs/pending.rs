//! The number of jobs of a scope that have not ended, and the opener that waits for them.
//!
//! Bit 0 of the one word is PARKED (the opener sleeps), the rest is the count. The last job to end copies the
//! opener's handle *before* it subtracts itself, because afterwards the scope may be gone. rayon's
//! `CountLatch` works in the same way.

use crate::{
    patience::Patience,
    sync::{
        Thread,
        atomic::{AtomicUsize, Ordering::*},
        thread,
    },
};

const PARKED: usize = 1;
const ONE: usize = 2;

#[derive(Debug)]
pub(super) struct Pending {
    state: AtomicUsize,
    opener: Thread,
}

impl Pending {
    /// The opener calls this.
    pub(super) fn new() -> Self {
        Self { state: AtomicUsize::new(0), opener: thread::current() }
    }

    /// Adds a job. The opener calls this, or a job that is counted itself.
    pub(super) fn add(&self) {
        self.state.fetch_add(ONE, Relaxed);
    }

    /// Subtracts a job that has ended. `self` may be gone when this returns.
    pub(super) fn finish(&self) {
        let mut state = self.state.load(Relaxed);
        loop {
            let opener = (state == ONE | PARKED).then(|| self.opener.clone());
            // Release: the job happens before the opener goes on. So do jobs that ended earlier, because a
            // read-modify-write continues their release sequences.
            match self.state.compare_exchange_weak(state, state - ONE, Release, Relaxed) {
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

    /// Waits until all jobs have ended (`true`) or there is `more()` that the opener could run itself
    /// (`false`). The opener calls this.
    pub(super) fn wait(&self, mut patience: Patience, more: impl Fn() -> bool) -> bool {
        loop {
            // Acquire: pairs with the Release of each job that has ended.
            if self.state.load(Acquire) & !PARKED == 0 {
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
        let mut state = self.state.fetch_or(PARKED, Relaxed);
        // `more` looks under a lock. Either it sees the job that was added, or the thread that adds the job
        // takes the lock after us and sees PARKED.
        while state & !PARKED != 0 && !more() {
            thread::park();
            state = self.state.load(Relaxed);
        }
        self.state.fetch_and(!PARKED, Relaxed);
    }

    /// Wakes the opener, if it sleeps, for a job that it could run. Called after the job was listed under the
    /// lock that `more` takes.
    pub(super) fn wake_opener(&self) {
        if self.state.load(Relaxed) & PARKED != 0 {
            self.opener.unpark();
        }
    }
}
