//! How many jobs of a scope have not ended, and the opener that waits for them.
//!
//! Bit 0 of the one word is PARKED (the opener sleeps), the rest is the count. The last job to end takes what it needs to
//! wake the opener *before* it counts itself out: afterwards the scope may be gone.

use crate::sync::{
    Thread,
    atomic::{AtomicUsize, Ordering::*},
    pause, thread,
};

const PARKED: usize = 1;
const ONE: usize = 2;

/// How often the opener looks before it gives up its processor, and then before it parks.
const SPINS: usize = if cfg!(loom) { 1 } else { 200 };
const YIELDS: usize = if cfg!(loom) { 0 } else { 20 };

#[derive(Debug)]
pub(super) struct Pending {
    state: AtomicUsize,
    opener: Thread,
}

impl Pending {
    /// To be called by the opener.
    pub(super) fn new() -> Self {
        Self { state: AtomicUsize::new(0), opener: thread::current() }
    }

    /// One job more. To be called by the opener, or from inside a job that is counted.
    pub(super) fn add(&self) {
        self.state.fetch_add(ONE, Relaxed);
    }

    /// One job less. `self` may be gone when this returns.
    pub(super) fn finish(&self) {
        let mut state = self.state.load(Relaxed);
        loop {
            let opener = (state == ONE | PARKED).then(|| self.opener.clone());
            // Release: what the job did happens before the opener goes on (what other jobs did too: a read-modify-write
            // continues their release sequences).
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

    /// Waits, for the opener, until all jobs have ended (`true`) or there is `more()` that it could do itself.
    pub(super) fn wait(&self, more: impl Fn() -> bool) -> bool {
        let mut turns = 0;
        loop {
            // Acquire: pairs with the Release of each job that has ended.
            if self.state.load(Acquire) & !PARKED == 0 {
                return true;
            }
            if more() {
                return false;
            }
            turns += 1;
            if turns <= SPINS {
                pause();
            } else if turns <= SPINS + YIELDS {
                thread::yield_now();
            } else {
                self.park(&more);
            }
        }
    }

    #[cold]
    fn park(&self, more: &impl Fn() -> bool) {
        let mut state = self.state.fetch_or(PARKED, Relaxed);
        // `more` looks under a lock. Either it sees what was added, or the one who adds it takes the lock after us and sees
        // PARKED.
        while state & !PARKED != 0 && !more() {
            thread::park();
            state = self.state.load(Relaxed);
        }
        self.state.fetch_and(!PARKED, Relaxed);
    }

    /// There is more for the opener to do. To be called after it was published under the lock that `more` takes.
    pub(super) fn nudge(&self) {
        if self.state.load(Relaxed) & PARKED != 0 {
            self.opener.unpark();
        }
    }
}
