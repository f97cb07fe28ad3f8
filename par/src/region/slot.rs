//! The slot of one parallel region: claimed, opened, joined, left, closed.
//!
//! One word holds the whole state, so every transition is one atomic operation:
//!
//! | bits | name | meaning |
//! |---|---|---|
//! | 0 | CLAIMED | an opener owns the slot |
//! | 1 | PARKED | the opener sleeps until the last participant leaves |
//! | 8..24 | ACTIVE | the number of participants inside, the opener not counted |
//! | 24..40 | TICKETS | how many more threads may join; the region is open while there are any |
//!
//! 1. *Claim*: 0 → CLAIMED. One thread wins, and is the opener.
//! 2. *Open*: the opener writes the body and then stores the number of tickets (Release).
//! 3. *Join*: a thread takes a ticket and adds 1 to ACTIVE, in one compare-exchange (Acquire). Then it reads
//!    the body. If the slot was closed and opened again since the thread saw it open, the thread joins the
//!    *later* region, which is harmless, because it reads the body after the join.
//! 4. *Shut*: any participant that finds no more work removes the tickets that are left.
//! 5. *Leave*: a participant subtracts 1 from ACTIVE (Release). The last one wakes the opener if PARKED is
//!    set. It copies the opener's handle *before* it leaves, because afterwards the slot may belong to
//!    another region.
//! 6. *Close*: the opener removes the tickets. From here on ACTIVE only falls. The opener spins, yields and
//!    then parks until ACTIVE is 0 (Acquire), and stores 0: the slot is free.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `body` | the opener, while CLAIMED is set and ACTIVE and TICKETS are 0 | participants, between join and leave |
//! | `opener` | the opener, while PARKED is not set | the last participant, if it sees PARKED before it leaves |
//!
//! The opener cannot leave before ACTIVE is 0, so everything that the body borrows outlives its readers. Loom
//! checks this in `models.rs` (`a_joiner_is_out_before_close_returns`, `two_joiners_and_one_ticket`,
//! `a_reused_slot_shows_the_new_body`). The count of participants that guards a frame is what rayon calls a
//! `CountLatch` and OpenMP the join barrier of a region.

use crate::{
    patience::Patience,
    sync::{Thread, UnsafeCell, atomic::AtomicU64, atomic::Ordering::*, thread},
};

const CLAIMED: u64 = 1;
const PARKED: u64 = 2;
const ACTIVE_ONE: u64 = 1 << 8;
const ACTIVE: u64 = 0xffff << 8;
const TICKET_ONE: u64 = 1 << 24;
const TICKETS: u64 = 0xffff << 24;

/// The largest number of threads that can join one region.
pub(crate) const MAX_TICKETS: usize = 0xffff;

/// A slot for regions whose body is a `B`.
#[derive(Debug)]
pub(crate) struct Slot<B> {
    state: AtomicU64,
    /// Written by the opener while no participant can read it.
    body: UnsafeCell<Option<B>>,
    /// The thread to wake; valid while PARKED is set.
    opener: UnsafeCell<Option<Thread>>,
}

// SAFETY: `body` and `opener` are reached only as the state word allows (module documentation): the one
// thread that has CLAIMED the slot writes them while no other thread is inside, and threads inside read them.
unsafe impl<B: Send + Sync> Sync for Slot<B> {}

impl<B: Copy> Slot<B> {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU64::new(0), body: UnsafeCell::new(None), opener: UnsafeCell::new(None) }
    }

    /// Claims the slot for a new region, if it is free.
    pub(crate) fn try_claim(&self) -> bool {
        // Acquire: the accesses of the former region to the slot happen before our writes.
        self.state.load(Relaxed) == 0 && self.state.compare_exchange(0, CLAIMED, Acquire, Relaxed).is_ok()
    }

    /// Opens the claimed slot: up to `tickets` threads may join and read `body`.
    pub(crate) fn open(&self, body: B, tickets: usize) {
        debug_assert!(self.state.load(Relaxed) == CLAIMED && tickets <= MAX_TICKETS);
        // SAFETY: the slot is claimed by this thread and not open: no other thread reads `body`.
        self.body.with_mut(|b| unsafe { *b = Some(body) });
        // Release: a thread that joins sees the body and everything that it borrows.
        self.state.store(CLAIMED | (tickets as u64 * TICKET_ONE), Release);
    }

    /// Whether a thread could join now (a hint).
    pub(crate) fn is_joinable(&self) -> bool {
        self.state.load(Relaxed) & TICKETS != 0
    }

    /// Joins the open region. `None` if there is none, or no ticket is left.
    pub(crate) fn join(&self) -> Option<Joined<'_, B>> {
        let mut state = self.state.load(Relaxed);
        loop {
            if state & TICKETS == 0 {
                return None;
            }
            // Acquire: pairs with the Release in `open`.
            match self.state.compare_exchange_weak(state, state + ACTIVE_ONE - TICKET_ONE, Acquire, Relaxed) {
                Ok(_) => return Some(Joined { slot: self, ticket: (state & TICKETS) / TICKET_ONE }),
                Err(now) => state = now,
            }
        }
    }

    /// Lets no further thread join. Any participant may call this when it finds no more work.
    pub(crate) fn shut(&self) {
        if self.state.load(Relaxed) & TICKETS != 0 {
            self.state.fetch_and(!TICKETS, Relaxed);
        }
    }

    /// Shuts the region, if it was opened, and waits for the participants inside; then the slot is free. Only
    /// the opener calls this.
    #[inline]
    pub(crate) fn close(&self, patience: &Patience) {
        // A joiner's compare-exchange fails once the tickets are gone, so ACTIVE only falls from here on.
        if self.state.fetch_and(!TICKETS, Acquire) & ACTIVE != 0 {
            self.wait_until_empty(*patience);
        }
        self.state.store(0, Release);
    }

    fn wait_until_empty(&self, mut patience: Patience) {
        while patience.pause() {
            // Acquire: pairs with the Release of each leaving participant.
            if self.state.load(Acquire) & ACTIVE == 0 {
                return;
            }
        }
        self.park_until_empty();
    }

    #[cold]
    fn park_until_empty(&self) {
        // SAFETY: participants read `opener` only after they have seen PARKED, which is set below.
        self.opener.with_mut(|o| unsafe { *o = Some(thread::current()) });
        // Release: a thread that sees PARKED sees the handle.
        let mut state = self.state.fetch_or(PARKED, AcqRel);
        while state & ACTIVE != 0 {
            thread::park();
            state = self.state.load(Acquire);
        }
    }
}

/// A region that the calling thread has joined. Dropping it leaves the region.
#[derive(Debug)]
pub(crate) struct Joined<'a, B: Copy> {
    slot: &'a Slot<B>,
    ticket: u64,
}

impl<B: Copy> Joined<'_, B> {
    /// The number of the ticket, counted down to 1. No two participants of a region have the same one.
    pub(crate) fn ticket(&self) -> usize {
        self.ticket as usize
    }

    /// The body of the region.
    pub(crate) fn body(&self) -> B {
        // SAFETY: this thread is inside (ACTIVE counts it), so the opener does not write until it leaves.
        self.slot.body.with(|b| unsafe { (*b).expect("an open region has a body") })
    }
}

impl<B: Copy> Drop for Joined<'_, B> {
    fn drop(&mut self) {
        let slot = self.slot;
        // Acquire, here and below: pairs with the Release that sets PARKED, so that the handle can be read.
        let mut state = slot.state.load(Acquire);
        loop {
            // Cloned before leaving: afterwards the opener may go on and reuse the slot.
            let last = state & ACTIVE == ACTIVE_ONE;
            let opener = if last && state & PARKED != 0 {
                // SAFETY: PARKED is set and this thread is inside: the opener has written the handle and
                // waits.
                slot.opener.with(|o| unsafe { (*o).clone() })
            } else {
                None
            };
            // Release: the opener that sees this participant gone sees what it did.
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
