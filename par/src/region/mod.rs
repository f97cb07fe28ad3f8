//! A parallel region: one data-parallel loop in flight.
//!
//! 1. The opener describes the region in a [`Plan`] and a [`RegionBody`]. The body lives in the opener's
//!    frame.
//! 2. It claims one of the pool's slots ([`slots`]), lays the units out in the counters of that slot
//!    ([`claims`]), opens the slot, shows it to idle workers and wakes one of them.
//! 3. The opener takes part. It can finish the region alone, so a region inside a region cannot deadlock.
//! 4. A worker that finds the slot joins ([`helper`]) and claims units until none is left. Then it shuts the
//!    slot, hides it and leaves.
//! 5. When the opener finds no unit, it closes the slot and waits until every participant has left. Meanwhile
//!    it runs nothing else: no code of another region or job runs on a thread that is inside a region.
//!
//! Nothing is allocated. The states of a slot are described in [`slot`].
//!
//! If no slot is free, the opener runs the region alone. If the units may be tiny, or the loop was short
//! before ([`history`]), it begins alone and opens the slot only if the work that is left is long enough to
//! share. That is more work if it has to wake a worker ([`waking`]).

mod body;
pub(crate) mod claims;
pub(crate) mod helper;
mod history;
pub(crate) mod slot;
pub(crate) mod slots;
#[cfg(all(test, not(loom)))]
mod tests;
mod waking;

pub(crate) use body::RegionBody;

use crate::{
    ThreadPool,
    context::Context,
    current::{self, Entered, Participant, own_block},
    denormals::{control::is_flushing, flush_denormals},
    jobs::deferred::RunDeferred,
    thread_pool::state::PoolState,
};
use body::ErasedBody;
use claims::{Claimer, Counters, Measuring, Partition, Stopwatch, WORTH_SHARING, WORTH_WAKING};
use history::{Advice, DEPTHS, Key};
use std::{
    cell::{Cell, OnceCell},
    thread,
    time::Duration,
};

/// How often a region that needs a slot looks for a free one.
const SLOT_INTERVAL: Duration = Duration::from_millis(1);

/// How a region is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The largest number of participants, the opener included.
    pub(crate) participants: usize,
    /// The number of items that the units consist of; 0 if it is not known.
    pub(crate) items: usize,
    /// The units, and how participants claim them.
    pub(crate) partition: Partition,
    /// Whether the opener may begin alone, to see whether the region is worth opening.
    pub(crate) may_begin_alone: bool,
    /// How many units an opener that is alone takes at a time.
    pub(crate) most: usize,
    /// Whether denormal numbers are flushed. They are flushed anyway if the opener is in that mode.
    pub(crate) flush: bool,
}

/// Opens a region, takes part, and returns when all participants have left. It must not be called in a
/// process that was forked after the pool was built.
#[inline]
pub(crate) fn run<B: RegionBody>(pool: &PoolState, plan: &Plan, body: &B) {
    let participants = plan.participants.clamp(1, pool.threads());
    if participants == 1 || plan.partition.is_one_run() {
        let opening = Opening::new(pool, plan, body, participants);
        opening.participate(&mut Claimer::alone(plan.partition, plan.most));
    } else if let Some(stopwatch) = pool.stopwatch
        && plan.may_begin_alone
        && plan.partition.may_begin_alone()
    {
        run_by_history(pool, stopwatch, plan, body, participants);
    } else {
        Opening::new(pool, plan, body, participants).share(pool, plan, None, || ());
    }
}

/// Runs a region that its opener may begin alone, by what it remembers of it.
#[inline]
fn run_by_history<B: RegionBody>(
    pool: &PoolState,
    mut stopwatch: Stopwatch,
    plan: &Plan,
    body: &B,
    participants: usize,
) {
    // To move it takes as long as a short loop, so it is made here.
    let opening = Opening::new(pool, plan, body, participants);
    let partition = plan.partition;
    let key = Key::of::<B>(plan.items);
    let must_wake = !pool.shares_short_loops && pool.sleep.must_wake();
    let depth = current::depth() as usize - 1;
    let advice = match pool.shares_short_loops {
        true => Advice::Share,
        false => history::advice(key, must_wake, depth),
    };
    let awake = pool.idle.lasts();
    let advice = match advice {
        Advice::LetSleep if waking::is_due(&stopwatch, awake) => Advice::Share,
        advice => advice,
    };
    let was_short = matches!(advice, Advice::Alone | Advice::MeasureAlone | Advice::LetSleep);
    // Of other loops the first units say too little about the whole, so the limit for workers that are awake
    // holds.
    let worth = if must_wake && was_short { WORTH_WAKING } else { WORTH_SHARING };
    let told = Cell::new(None);
    let tell = |time| told.set(Some(time));
    // How many threads may have done what the stopwatch has measured.
    let mut shared_by = 0;
    if was_short || advice == Advice::Probe && partition.is_probed() {
        let open = |rest| opening.open(Claimed::new(pool)?, rest);
        let mut measuring = Measuring::probing(stopwatch, &open, was_short, worth, &tell);
        let look = move |now| history::look(key, depth, now, &stopwatch);
        let begin = move |now| history::begin(depth, now, &stopwatch);
        if advice == Advice::Alone {
            measuring.look_first(&look);
        } else if advice == Advice::MeasureAlone && depth < DEPTHS {
            measuring.say_begin(&begin);
        }
        let mut claimer = Claimer::probing(partition, &mut measuring);
        if advice == Advice::LetSleep {
            stopwatch.start();
            opening.participate(&mut claimer);
            stopwatch.lap();
            waking::note(&stopwatch, awake, opening.is_open());
        } else {
            opening.participate(&mut claimer);
            if advice == Advice::MeasureAlone && depth < DEPTHS {
                history::end(depth, Stopwatch::now());
            }
        }
    } else if matches!(advice, Advice::Measure | Advice::Probe) {
        let mut measuring = Measuring::sharing(stopwatch, &tell);
        // To wake a thread may take longer than the loop.
        opening.share(pool, plan, Some(&mut measuring), || _ = stopwatch.start());
        // The other participants may have the longer units.
        drop(opening);
        stopwatch.lap();
        told.set(Some(told.get().unwrap_or(0).max(stopwatch.total())));
        shared_by = plan.participants.min(partition.units()) as u64;
    } else {
        opening.share(pool, plan, None, || ());
    }
    if let Some(time) = told.get()
        && advice != Advice::Share
    {
        history::record(key, time, stopwatch.total() * shared_by);
    }
}

impl ThreadPool {
    /// Calls `f` on the calling thread alone, as the opener of a loop of one item for at most this many
    /// threads: what such a loop does, without the cost of a loop.
    ///
    /// ```
    /// use anabranch_par::{ThreadPool, participant};
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let me = pool.run_one(usize::MAX, || participant().unwrap());
    /// assert_eq!((me.index(), me.count()), (0, 2));
    /// # Ok::<(), anabranch_par::PoolError>(())
    /// ```
    #[inline]
    pub fn run_one<R>(&self, threads: usize, f: impl FnOnce() -> R) -> R {
        let count = threads.clamp(1, self.threads()) as u32;
        let _deferred = RunDeferred::on_drop();
        let _entered = current::enter(self.state(), Participant { index: 0, count });
        f()
    }
}

/// Runs a region whose participants wait for each other: waits for a free slot instead of running it alone.
pub(crate) fn run_shared<B: RegionBody>(pool: &PoolState, plan: &Plan, body: &B) {
    let mut patience = pool.patience;
    let claimed = loop {
        if let Some(claimed) = Claimed::new(pool) {
            break claimed;
        }
        // All slots are taken. That is so rare that no thread says when it frees one.
        if !patience.pause() {
            thread::sleep(SLOT_INTERVAL);
        }
    };
    let opening = Opening::new(pool, plan, body, plan.participants);
    let counters = opening.open(claimed, plan.partition).expect("a region is opened once");
    opening.participate(&mut Claimer::new(plan.partition, counters, own_block(pool)));
}

/// A region from its opener's side. When it is dropped, at the end or by unwinding, it waits until every
/// participant has left: before the opener's frame, where the body lives, is gone.
struct Opening<'r, B> {
    // The first field, because it must be dropped before anything that participants use.
    claimed: OnceCell<Claimed<'r>>,
    body: &'r B,
    participants: usize,
    flush: bool,
    /// The context of the opener when it began. Values that it takes inside (its scratch, for example) it
    /// gives back before it waits.
    context: Context,
    _entered: Entered<'r>,
    _deferred: RunDeferred,
}

impl<'r, B: RegionBody> Opening<'r, B> {
    #[inline]
    fn new(pool: &'r PoolState, plan: &Plan, body: &'r B, participants: usize) -> Self {
        debug_assert!(pool.check_fork().is_ok());
        let deferred = RunDeferred::on_drop();
        let opener = Participant { index: 0, count: participants as u32 };
        Self {
            claimed: OnceCell::new(),
            body,
            participants,
            flush: plan.flush,
            context: Context::capture(),
            _entered: current::enter(pool, opener),
            _deferred: deferred,
        }
    }

    /// Opens the claimed slot for all participants. Returns the counters that units are claimed from.
    #[inline]
    fn open(&self, claimed: Claimed<'r>, partition: Partition) -> Option<&'r Counters> {
        let counters = claimed.counters();
        counters.lay_out(&partition);
        // Results must not depend on which threads take part.
        let flush = self.flush || is_flushing();
        claimed.open(
            ErasedBody::new(self.body, partition, self.participants, flush, self.context),
            self.participants - 1,
        );
        self.claimed.set(claimed).ok()?;
        Some(counters)
    }

    /// Whether the region is open for other threads.
    fn is_open(&self) -> bool {
        self.claimed.get().is_some()
    }

    /// Opens a slot, if one is free, calls `opened` and takes part.
    #[inline]
    fn share<'t>(
        &self,
        pool: &'r PoolState,
        plan: &Plan,
        measuring: Option<&'t mut Measuring<'t>>,
        opened: impl FnOnce(),
    ) where
        'r: 't,
    {
        let counters = Claimed::new(pool).and_then(|claimed| self.open(claimed, plan.partition));
        opened();
        let mut claimer = match counters {
            Some(counters) => Claimer::new(plan.partition, counters, own_block(pool)),
            None => Claimer::alone(plan.partition, plan.most),
        };
        if let Some(measuring) = measuring
            && counters.is_some()
        {
            claimer.measure(measuring);
        }
        self.participate(&mut claimer);
    }

    #[inline]
    fn participate(&self, claimer: &mut Claimer<'_>) {
        flushed(self.flush, || self.body.participate(claimer));
    }
}

#[inline]
fn flushed(flush: bool, f: impl FnOnce()) {
    if flush { flush_denormals(f) } else { f() }
}

/// A claimed slot, and the region that is opened there. Dropping it closes the region and waits until every
/// participant has left.
#[derive(Debug)]
struct Claimed<'p> {
    pool: &'p PoolState,
    slot: usize,
}

impl<'p> Claimed<'p> {
    fn new(pool: &'p PoolState) -> Option<Self> {
        Some(Self { pool, slot: pool.regions.claim()? })
    }

    fn counters(&self) -> &'p Counters {
        &self.pool.regions.get(self.slot).counters
    }

    /// Opens the region for up to `tickets` threads beside the caller.
    fn open(&self, body: ErasedBody, tickets: usize) {
        self.pool.regions.get(self.slot).slot.open(body, tickets);
        self.pool.regions.show(self.slot);
        self.pool.sleep.wake_one();
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.pool.check_fork() {
            // The process was forked inside the region. The participants are in the parent, and their results
            // are lost here.
            assert!(thread::panicking(), "{error}");
            return;
        }
        self.pool.regions.hide(self.slot);
        self.pool.regions.get(self.slot).slot.close(&self.pool.patience);
    }
}
