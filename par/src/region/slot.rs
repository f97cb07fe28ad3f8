//! The place where one parallel region is open: claimed, opened, joined, left, closed.
//!
//! One word holds the whole state, so that every transition is one atomic operation:
//!
//! ```text
//! bit 0       CLAIMED  an opener owns the slot
//! bit 1       PARKED   the opener sleeps until the last participant leaves
//! bits 8..24  ACTIVE   participants inside, the opener not counted
//! bits 24..40 SEATS    how many more may join: the region is open while there are any
//! ```
//!
//! The body of the region is written while the slot is claimed and has no seats yet, and read only by threads that have
//! joined: the opener cannot leave before ACTIVE is 0, so everything that the body borrows outlives its readers.
//! Joining a *later* region than the one that was seen open is harmless: the body is read after the join.

use crate::sync::{Thread, UnsafeCell, atomic::AtomicU64, atomic::Ordering::*, pause, thread};

const CLAIMED: u64 = 1;
const PARKED: u64 = 2;
const ACTIVE_ONE: u64 = 1 << 8;
const ACTIVE: u64 = 0xffff << 8;
const SEAT_ONE: u64 = 1 << 24;
const SEATS: u64 = 0xffff << 24;

/// The largest number of threads that can join one region.
pub(crate) const MAX_SEATS: usize = 0xffff;

/// How often the opener looks for the last participant before it gives up its processor, and then before it parks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    spins: usize,
    yields: usize,
}

impl Patience {
    /// One look and then to sleep: a model goes through every interleaving, and must end.
    #[cfg(all(test, loom))]
    pub(crate) const MODEL: Self = Self { spins: 1, yields: 0 };

    pub(crate) const ADAPTIVE: Self = Self { spins: 200, yields: 200 };
    /// Just as long as a participant that is about to leave needs.
    pub(crate) const SHORT: Self = Self { spins: 50, yields: 0 };
    /// Never sleeps.
    pub(crate) const ENDLESS: Self = Self { spins: 200, yields: usize::MAX };
}

/// A slot for regions whose body is a `B`.
#[derive(Debug)]
pub(crate) struct Slot<B> {
    state: AtomicU64,
    /// Written by the opener while nobody can read it.
    body: UnsafeCell<Option<B>>,
    /// The thread to wake; valid while PARKED is set.
    opener: UnsafeCell<Option<Thread>>,
}

// SAFETY: `body` and `opener` are reached only as the state word allows (module documentation): written by the one
// thread that has CLAIMED the slot while no other thread is inside, read by threads inside.
unsafe impl<B: Send + Sync> Sync for Slot<B> {}

impl<B: Copy> Slot<B> {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU64::new(0), body: UnsafeCell::new(None), opener: UnsafeCell::new(None) }
    }

    /// Takes the slot for a new region, if it is free.
    pub(crate) fn try_claim(&self) -> bool {
        // Acquire: the previous opener's last reads of the slot happen before our writes.
        self.state.load(Relaxed) == 0 && self.state.compare_exchange(0, CLAIMED, Acquire, Relaxed).is_ok()
    }

    /// Opens the claimed slot: up to `seats` threads may join and read `body`.
    pub(crate) fn open(&self, body: B, seats: usize) {
        debug_assert!(self.state.load(Relaxed) == CLAIMED && seats <= MAX_SEATS);
        // SAFETY: the slot is claimed by this thread and not open: no other thread reads `body`.
        self.body.with_mut(|b| unsafe { *b = Some(body) });
        // Release: whoever joins sees the body and everything that it borrows.
        self.state.store(CLAIMED | (seats as u64 * SEAT_ONE), Release);
    }

    /// Whether a thread could join now (a hint).
    pub(crate) fn joinable(&self) -> bool {
        self.state.load(Relaxed) & SEATS != 0
    }

    /// Joins the open region. `None` where there is none, or no seat left.
    pub(crate) fn join(&self) -> Option<Seat<'_, B>> {
        let mut state = self.state.load(Relaxed);
        loop {
            if state & SEATS == 0 {
                return None;
            }
            // Acquire: pairs with the Release in `open`.
            match self.state.compare_exchange_weak(state, state + ACTIVE_ONE - SEAT_ONE, Acquire, Relaxed) {
                Ok(_) => return Some(Seat { slot: self, left: (state & SEATS) / SEAT_ONE }),
                Err(now) => state = now,
            }
        }
    }

    /// Lets nobody else join. Any participant may call this when it finds no more work.
    pub(crate) fn shut(&self) {
        if self.state.load(Relaxed) & SEATS != 0 {
            self.state.fetch_and(!SEATS, Relaxed);
        }
    }

    /// Shuts the region, if it was opened, and waits for those inside; then the slot is free. For the opener alone.
    pub(crate) fn close(&self, patience: Patience) {
        // A joiner's compare-exchange fails once the seats are gone, so ACTIVE only falls from here on.
        let mut state = self.state.fetch_and(!SEATS, Acquire);
        let mut turns: usize = 0;
        while state & ACTIVE != 0 {
            turns = turns.saturating_add(1);
            if turns <= patience.spins {
                pause();
            } else if turns - patience.spins <= patience.yields {
                // Threads that are not ours (input/output, the program's own) may want this processor.
                thread::yield_now();
            } else {
                self.park_until_empty();
            }
            // Acquire: pairs with the Release of each leaving participant.
            state = self.state.load(Acquire);
        }
        self.state.store(0, Release);
    }

    #[cold]
    fn park_until_empty(&self) {
        // SAFETY: participants read `opener` only after they have seen PARKED, which is set below.
        self.opener.with_mut(|o| unsafe { *o = Some(thread::current()) });
        // Release: the handle is visible to whoever sees PARKED.
        let mut state = self.state.fetch_or(PARKED, AcqRel);
        while state & ACTIVE != 0 {
            thread::park();
            state = self.state.load(Acquire);
        }
    }
}

/// A participant's place in a region that it has joined; leaves when dropped.
#[derive(Debug)]
pub(crate) struct Seat<'a, B: Copy> {
    slot: &'a Slot<B>,
    /// How many seats there were before this one was taken.
    left: u64,
}

impl<B: Copy> Seat<'_, B> {
    /// How many seats were left when this one was taken, itself included: no two participants of a region have the same.
    pub(crate) fn left(&self) -> usize {
        self.left as usize
    }

    /// The body of the region.
    pub(crate) fn body(&self) -> B {
        // SAFETY: this thread is inside (ACTIVE counts it), so the opener does not write until it leaves.
        self.slot.body.with(|b| unsafe { (*b).expect("an open region has a body") })
    }
}

impl<B: Copy> Drop for Seat<'_, B> {
    fn drop(&mut self) {
        let slot = self.slot;
        // Acquire, here and below: pairs with the Release that sets PARKED, for the opener's handle.
        let mut state = slot.state.load(Acquire);
        loop {
            // The handle is cloned before leaving: afterwards the opener may go on and reuse the slot.
            let last = state & ACTIVE == ACTIVE_ONE;
            let opener = if last && state & PARKED != 0 {
                // SAFETY: PARKED is set and this thread is inside: the opener has written the handle and waits.
                slot.opener.with(|o| unsafe { (*o).clone() })
            } else {
                None
            };
            // Release: what this participant did is visible to the opener that sees it gone.
            match slot.state.compare_exchange_weak(state, state - ACTIVE_ONE, AcqRel, Acquire) {
                Ok(_) => {
                    if let Some(thread) = opener {
                        thread.unpark();
                    }
                    return;
                }
                Err(now) => state = now,
            }
        }
    }
}
