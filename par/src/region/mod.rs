//! A parallel region: one data-parallel loop in flight.
//!
//! The thread that opens a region takes part and can finish it alone, so a region inside a region cannot deadlock. While
//! it waits for others to finish *their* last items it does nothing else: no code of another region or job ever runs on a
//! thread that is inside a region. Nothing is allocated.

pub(crate) mod claims;
pub(crate) mod slot;

use crate::{
    current::{self, Entered, EnteredFor, Held, Participant},
    denormals::{flush_denormals, is_flushing},
    thread_pool::{Busy, Claimed, Shared},
};
use claims::{Cursors, Deal, Taker};
use std::cell::OnceCell;

/// What the participants of a region do. It lives in the frame of the thread that opens the region.
///
/// Panics must not leave `participate`: they would reach threads that have nothing to do with them.
pub(crate) trait Crew: Sync {
    /// Takes part until there is nothing left to take.
    fn participate(&self, taker: Taker<'_>);
}

/// How a region is to be run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// At most this many threads, the caller included.
    pub(crate) participants: usize,
    /// What is dealt out to them.
    pub(crate) deal: Deal,
    /// Whether the caller may begin alone, to see whether it is worth asking others.
    pub(crate) tentative: bool,
    /// Where the caller is alone: how many units it takes at a time.
    pub(crate) most: usize,
    /// Whether denormal numbers are flushed. They are anyway where the caller is in that mode: results must not depend on
    /// who takes part.
    pub(crate) flush: bool,
}

/// Opens a region, takes part, and returns when all participants have left. In a process that was forked after the pool was
/// built this must not be called.
#[inline]
pub(crate) fn run<C: Crew>(pool: &Shared, plan: &Plan, crew: &C) {
    let participants = plan.participants.clamp(1, pool.threads());
    let opening = Opening::new(pool, plan, crew, participants);
    if participants == 1 || plan.deal.is_one_run() {
        opening.participate(|| Taker::alone(plan.deal, plan.most));
    } else if plan.tentative && plan.deal.is_tentative() {
        let open = |rest| opening.open(pool.claim()?, rest);
        opening.participate(|| Taker::tentative(plan.deal, pool.home(), &open));
    } else {
        let cursors = pool.claim().and_then(|claimed| opening.open(claimed, plan.deal));
        opening.participate(|| match cursors {
            Some(cursors) => Taker::new(plan.deal, cursors, pool.home()),
            None => Taker::alone(plan.deal, plan.most),
        });
    }
}

/// The same for a crew whose participants wait for each other: it is never run by the caller alone.
pub(crate) fn run_shared<C: Crew>(pool: &Shared, plan: &Plan, crew: &C) {
    let claimed = loop {
        match pool.claim() {
            Some(claimed) => break claimed,
            // So many regions are open; some will end.
            None => std::thread::yield_now(),
        }
    };
    let opening = Opening::new(pool, plan, crew, plan.participants);
    let cursors = opening.open(claimed, plan.deal).expect("it was claimed just now");
    opening.participate(|| Taker::new(plan.deal, cursors, pool.home()));
}

/// A region from its opener's side. When it is dropped, here or where something unwinds, everyone is out: before the
/// caller's frame, where the crew lives, is gone.
struct Opening<'r, C> {
    // The first field: it is dropped before what those inside may use.
    claimed: OnceCell<Claimed<'r>>,
    crew: &'r C,
    participants: usize,
    flush: bool,
    /// What the caller held when it began: what it takes for itself in here (its scratch, say) it gives back before it waits.
    held: Held,
    _entered: Entered<'r>,
    _busy: Busy,
}

impl<'r, C: Crew> Opening<'r, C> {
    #[inline]
    fn new(pool: &'r Shared, plan: &Plan, crew: &'r C, participants: usize) -> Self {
        debug_assert!(pool.check_fork().is_ok());
        let busy = Busy::enter();
        let opener = Participant { index: 0, count: participants as u32 };
        Self {
            claimed: OnceCell::new(),
            crew,
            participants,
            flush: plan.flush || is_flushing(),
            held: current::held(),
            _entered: current::enter(pool, opener),
            _busy: busy,
        }
    }

    /// Opens the region for all participants, and says where its units are taken from.
    #[inline]
    fn open(&self, claimed: Claimed<'r>, deal: Deal) -> Option<&'r Cursors> {
        let cursors = claimed.cursors();
        cursors.lay_out(&deal);
        claimed.open(
            Body::new(self.crew, deal, self.flush, self.participants, self.held),
            self.participants - 1,
        );
        self.claimed.set(claimed).ok()?;
        Some(cursors)
    }

    #[inline]
    fn participate<'t>(&self, taker: impl FnOnce() -> Taker<'t>) {
        in_mode(self.flush, || self.crew.participate(taker()));
    }
}

#[inline]
fn in_mode(flush: bool, f: impl FnOnce()) {
    if flush { flush_denormals(f) } else { f() }
}

/// What a joining thread needs: the crew, with its type erased, and how units are dealt out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    crew: *const (),
    enter: unsafe fn(*const (), Taker<'_>),
    deal: Deal,
    participants: u32,
    flush: bool,
    held: Held,
}

// SAFETY: `crew` points to a `Crew`, which is `Sync`.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

impl Body {
    fn new<C: Crew>(crew: &C, deal: Deal, flush: bool, participants: usize, held: Held) -> Self {
        unsafe fn enter<C: Crew>(crew: *const (), taker: Taker<'_>) {
            // SAFETY: the caller of `enter` vouches for the pointer, and `Body::new` for its type.
            unsafe { &*crew.cast::<C>() }.participate(taker);
        }
        Self {
            crew: std::ptr::from_ref(crew).cast(),
            enter: enter::<C>,
            deal,
            participants: participants as u32,
            flush,
            held,
        }
    }

    /// A thread goes inside that has joined with so many seats left; the opener is number 0.
    pub(crate) fn enter<'p>(&self, pool: &'p Shared, seats_left: usize) -> EnteredFor<'p> {
        let index = self.participants - seats_left as u32;
        current::enter_for(pool, Participant { index, count: self.participants }, self.held)
    }

    /// Whether a unit is left that nobody has taken (a hint).
    pub(crate) fn surplus(&self, cursors: &Cursors) -> bool {
        cursors.surplus(&self.deal)
    }

    /// Takes part until no unit is left to take.
    ///
    /// # Safety
    /// The region must still be open or the calling thread counted as inside.
    pub(crate) unsafe fn participate(self, cursors: &Cursors, home: usize) {
        // SAFETY: the opener keeps the crew alive until every participant has left.
        in_mode(self.flush, || unsafe { (self.enter)(self.crew, Taker::new(self.deal, cursors, home)) });
    }
}
