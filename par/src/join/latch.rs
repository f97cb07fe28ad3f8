//! The latch of a half that was stolen: how the thief publishes the outcome, and wakes the owner.
//!
//! | state | set by | meaning |
//! |---|---|---|
//! | PENDING | the owner, when it offers the half | there is no outcome |
//! | PARKED | the owner, before it parks | its handle is in the latch |
//! | `Long`, `Short`, `Returned` | the thread that took the half | the [`Outcome`] |
//!
//! The latch is in the owner's stack frame, and that frame is gone as soon as the owner has seen the outcome.
//! So [`set`](Latch::set) copies the owner's handle first, and does not touch the latch after its last
//! compare-exchange.

use crate::sync::{
    Thread, UnsafeCell,
    atomic::{AtomicU32, Ordering::*, fence},
    thread,
};

const PENDING: u32 = 0;
/// The owner has written its handle, and may sleep.
const PARKED: u32 = 1;

/// The outcome of a half that another thread took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Outcome {
    /// It was run, and was long enough to be worth stealing.
    Long = 2,
    /// It was run, in less time than stealing it takes.
    Short = 3,
    /// It was not run: the owner must run it.
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

    /// The outcome, if there is one yet. The owner calls this.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        // Acquire: pairs with the Release in `set`, so that the result can be read.
        Outcome::of(self.state.load(Acquire))
    }

    /// From now on [`set`](Self::set) and [`wake_owner`](Self::wake_owner) wake the owner. The owner calls
    /// this, looks once more for the event that it waits for, and parks.
    #[cold]
    pub(crate) fn announce(&self) {
        if self.state.load(Relaxed) == PENDING {
            // SAFETY: a thread reads the handle only after it has seen PARKED, which only this thread sets,
            // below.
            self.owner.with_mut(|o| unsafe { *o = Some(thread::current()) });
            // Release: a thread that sees PARKED sees the handle. If it fails, there is an outcome.
            let _ = self.state.compare_exchange(PENDING, PARKED, Release, Relaxed);
        }
        // Pairs with the fence between an offer and `wake_owner`: either the owner sees the offer, or it is
        // woken.
        fence(SeqCst);
    }

    /// Wakes the owner, if it sleeps, for an offer that it may take. The thread that took the half calls
    /// this, before it sets the outcome and after a sequentially consistent fence.
    pub(crate) fn wake_owner(&self) {
        // Acquire: pairs with the Release that sets PARKED, so that the handle can be read.
        if self.state.load(Acquire) == PARKED {
            // SAFETY: the owner wrote its handle before it set PARKED, and does not write it again.
            self.owner.with(|o| unsafe { (*o).iter().for_each(Thread::unpark) });
        }
    }

    /// Publishes the outcome and wakes the owner. The thread that took the half calls this, once.
    ///
    /// # Safety
    /// `this` must be alive until the owner sees the outcome.
    pub(crate) unsafe fn set(this: *const Self, outcome: Outcome) {
        // SAFETY: there is no outcome yet, so the owner keeps the latch alive.
        let (state, owner) = unsafe { (&raw const (*this).state, &raw const (*this).owner) };
        // SAFETY: as above. Acquire: so that the handle can be read, if the owner has parked.
        let mut now = unsafe { (*state).load(Acquire) };
        loop {
            let sleeper = match now {
                // SAFETY: the owner wrote its handle before it set PARKED, and waits.
                PARKED => unsafe { (*owner).with(|o| (*o).clone()) },
                _ => None,
            };
            // Release: the owner that sees the outcome sees the result.
            // SAFETY: as above. If this succeeds, the latch is not touched any more.
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
