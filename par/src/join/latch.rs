//! How the thread that took a half of a join tells its owner what became of it.
//!
//! The latch lies in the owner's stack frame, and that frame is gone as soon as the owner has seen the outcome. So
//! [`set`](Latch::set) takes what it needs for waking the owner first, and touches the latch no more afterwards.

use crate::sync::{
    Thread, UnsafeCell,
    atomic::{AtomicU32, Ordering::*, fence},
    thread,
};

const PENDING: u32 = 0;
/// The owner has left its handle, and may sleep.
const PARKED: u32 = 1;

/// What became of a half that another thread took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Outcome {
    /// It was run, and was worth the trouble.
    Long = 2,
    /// It was run, in less time than it takes to hand it over.
    Short = 3,
    /// It was not run: the owner has to.
    Returned = 4,
}

#[derive(Debug)]
pub(crate) struct Latch {
    state: AtomicU32,
    /// The thread to wake; valid while the state is PARKED.
    owner: UnsafeCell<Option<Thread>>,
}

impl Latch {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU32::new(PENDING), owner: UnsafeCell::new(None) }
    }

    /// The outcome, if there is one yet. For the owner.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        // Acquire: pairs with the Release in `set`, for what was done before.
        Outcome::of(self.state.load(Acquire))
    }

    /// From now on the owner is woken by [`set`](Self::set) and [`nudge`](Self::nudge). It looks once more for whatever it waits
    /// for, and parks. For the owner.
    #[cold]
    pub(crate) fn announce(&self) {
        if self.state.load(Relaxed) == PENDING {
            // SAFETY: the handle is read only by who has seen PARKED, which is set below and by this thread alone.
            self.owner.with_mut(|o| unsafe { *o = Some(thread::current()) });
            // Release: the handle is visible to whoever sees PARKED. Where it fails there is an outcome.
            let _ = self.state.compare_exchange(PENDING, PARKED, Release, Relaxed);
        }
        // Pairs with the fence between an offer and a nudge: either the offer is seen, or the nudge comes.
        fence(SeqCst);
    }

    /// Wakes the owner, if it sleeps: there is something else for it. By the thread that took the half, before it sets the outcome
    /// and after a sequentially consistent fence.
    pub(crate) fn nudge(&self) {
        // Acquire: for the handle.
        if self.state.load(Acquire) == PARKED {
            // SAFETY: the owner has written its handle before it set PARKED, and does not write it again.
            self.owner.with(|o| unsafe { (*o).iter().for_each(Thread::unpark) });
        }
    }

    /// Publishes the outcome and wakes the owner. Once only, by the thread that took the half.
    ///
    /// # Safety
    /// `this` must be alive until the owner sees the outcome.
    pub(crate) unsafe fn set(this: *const Self, outcome: Outcome) {
        // SAFETY: there is no outcome yet, so the owner keeps the latch alive.
        let (state, owner) = unsafe { (&raw const (*this).state, &raw const (*this).owner) };
        // SAFETY: as above. Acquire: for the handle, where the owner has parked.
        let mut now = unsafe { (*state).load(Acquire) };
        loop {
            let sleeper = match now {
                // SAFETY: the owner has written its handle before it set PARKED, and waits.
                PARKED => unsafe { (*owner).with(|o| (*o).clone()) },
                _ => None,
            };
            // Release: what was done before is visible to the owner that sees the outcome.
            // SAFETY: as above; where this succeeds, nothing of the latch is touched any more.
            match unsafe { (*state).compare_exchange(now, outcome as u32, Release, Acquire) } {
                Ok(_) => return sleeper.into_iter().for_each(|thread| thread.unpark()),
                Err(changed) => now = changed,
            }
        }
    }
}

impl Outcome {
    fn of(state: u32) -> Option<Self> {
        [Self::Long, Self::Short, Self::Returned].into_iter().find(|o| *o as u32 == state)
    }
}
