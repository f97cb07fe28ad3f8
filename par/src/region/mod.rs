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
use claims::{Claimer, Counters, Partition};
use std::cell::OnceCell;

/// What the participants of a region do. It lives in the frame of the thread that opens the region.
///
/// Panics must not leave `participate`: they would reach threads that have nothing to do with them.
pub(crate) trait Crew: Sync {
    /// Takes part until there is nothing left to take.
    fn participate(&self, claimer: Claimer<'_>);
}

/// How a region is to be run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// At most this many threads, the caller included.
    pub(crate) participants: usize,
    /// What is dealt out to them.
    pub(crate) partition: Partition,
    /// Whether the caller may begin alone, to see whether it is worth asking others.
    pub(crate) probe: bool,
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
    if participants == 1 || plan.partition.is_one_run() {
        opening.participate(|| Claimer::alone(plan.partition, plan.most));
    } else if plan.probe && plan.partition.is_probed() {
        let open = |rest| opening.open(pool.claim()?, rest);
        opening.participate(|| Claimer::probing(plan.partition, pool.home(), &open));
    } else {
        let counters = pool.claim().and_then(|claimed| opening.open(claimed, plan.partition));
        opening.participate(|| match counters {
            Some(counters) => Claimer::new(plan.partition, counters, pool.home()),
            None => Claimer::alone(plan.partition, plan.most),
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
    let counters = opening.open(claimed, plan.partition).expect("it was claimed just now");
    opening.participate(|| Claimer::new(plan.partition, counters, pool.home()));
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
    fn open(&self, claimed: Claimed<'r>, partition: Partition) -> Option<&'r Counters> {
        let counters = claimed.counters();
        counters.lay_out(&partition);
        claimed.open(
            Body::new(self.crew, partition, self.flush, self.participants, self.held),
            self.participants - 1,
        );
        self.claimed.set(claimed).ok()?;
        Some(counters)
    }

    #[inline]
    fn participate<'t>(&self, claimer: impl FnOnce() -> Claimer<'t>) {
        in_mode(self.flush, || self.crew.participate(claimer()));
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
    enter: unsafe fn(*const (), Claimer<'_>),
    partition: Partition,
    participants: u32,
    flush: bool,
    held: Held,
}

// SAFETY: `crew` points to a `Crew`, which is `Sync`.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

impl Body {
    fn new<C: Crew>(crew: &C, partition: Partition, flush: bool, participants: usize, held: Held) -> Self {
        unsafe fn enter<C: Crew>(crew: *const (), claimer: Claimer<'_>) {
            // SAFETY: the caller of `enter` vouches for the pointer, and `Body::new` for its type.
            unsafe { &*crew.cast::<C>() }.participate(claimer);
        }
        Self {
            crew: std::ptr::from_ref(crew).cast(),
            enter: enter::<C>,
            partition,
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
    pub(crate) fn surplus(&self, counters: &Counters) -> bool {
        counters.has_unclaimed(&self.partition)
    }

    /// Takes part until no unit is left to take.
    ///
    /// # Safety
    /// The region must still be open or the calling thread counted as inside.
    pub(crate) unsafe fn participate(self, counters: &Counters, home: usize) {
        // SAFETY: the opener keeps the crew alive until every participant has left.
        in_mode(self.flush, || unsafe {
            (self.enter)(self.crew, Claimer::new(self.partition, counters, home))
        });
    }
}
