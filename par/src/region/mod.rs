//! A parallel region: one data-parallel loop in flight.

pub(crate) mod claims;
pub(crate) mod slot;

pub use claims::Schedule;

use crate::{
    current::{self, Participant},
    denormals::{flush_denormals, is_flushing},
    thread_pool::{Busy, Claimed, ThreadPool, discard},
};
use claims::Deal;
use parking_lot::Mutex;
use std::{
    any::Any,
    cell::Cell,
    fmt,
    marker::PhantomData,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering::*},
};

/// A parallel loop over the items `0..items`, about to be run: see [`ThreadPool::region`].
///
/// The calling thread takes part and can finish the region alone, so a region inside a region cannot deadlock.
/// While it waits for others to finish *their* last items it does nothing else: no code of another region or job
/// ever runs on a thread that is inside a region. Nothing is allocated.
///
/// ```
/// use anabranch_par::ThreadPool;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// let pool = ThreadPool::new(4)?;
/// let sum = AtomicUsize::new(0);
/// pool.region(1000).grain(10).run(|i| {
///     sum.fetch_add(i, Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// # Ok::<(), anabranch_par::PoolError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a region does nothing until it is run"]
pub struct Region<'p> {
    pool: &'p ThreadPool,
    items: usize,
    participants: usize,
    schedule: Schedule,
    grain: usize,
    flush: bool,
}

impl<'p> Region<'p> {
    pub(crate) fn new(pool: &'p ThreadPool, items: usize) -> Self {
        // More could not be counted; nor could they ever be run.
        assert!(items <= isize::MAX as usize, "a region of {items} items: at most isize::MAX");
        Self { pool, items, participants: pool.threads(), schedule: Schedule::Cursor, grain: 1, flush: false }
    }

    /// At most this many threads take part, the caller included (all of the pool by default; at least 1).
    pub fn participants(mut self, participants: usize) -> Self {
        self.participants = participants.clamp(1, self.pool.threads());
        self
    }

    /// How the items are dealt out ([`Schedule::Cursor`] by default).
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// How many consecutive items a participant takes at a time (1 by default, and at least).
    pub fn grain(mut self, grain: usize) -> Self {
        self.grain = grain.max(1);
        self
    }

    /// Treats denormal floating-point numbers as zero on every participant while it works in this region, and
    /// restores each thread's mode afterwards: see [`flush_denormals`](crate::flush_denormals()). A region that is opened
    /// by a thread in that mode has it anyway: results must not depend on who takes part.
    pub fn flush_denormals(mut self, flush: bool) -> Self {
        self.flush = flush;
        self
    }

    /// Calls `body` once for every item and returns when all calls have returned.
    ///
    /// # Panics
    /// If a call panics, items after it are skipped, and the panic of the *lowest* such item comes out here once every
    /// participant has left, with the item's index in front of its message. In a process that was forked after the pool
    /// was built (see [`ThreadPool`]), every form of this panics.
    pub fn run(self, body: impl Fn(usize) + Sync) {
        self.run_with(|| (), |(), item| body(item));
    }

    /// Like [`run`](Self::run), with scratch: each participant calls `init` at most once (more only after a panic) and
    /// hands the result to `body` with every item that it works on.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_with<S>(self, init: impl Fn() -> S + Sync, body: impl Fn(&mut S, usize) + Sync) {
        if let Err(panic) = self.try_run_with(init, body) {
            panic.resume();
        }
    }

    /// Like [`run`](Self::run), with the panic as a value.
    ///
    /// # Errors
    /// The panic of the lowest item that panicked.
    pub fn try_run(self, body: impl Fn(usize) + Sync) -> Result<(), RegionPanic> {
        self.try_run_with(|| (), |(), item| body(item))
    }

    /// Like [`run_with`](Self::run_with), with the panic as a value.
    ///
    /// # Errors
    /// The panic of the lowest item that panicked.
    pub fn try_run_with<S>(
        self,
        init: impl Fn() -> S + Sync,
        body: impl Fn(&mut S, usize) + Sync,
    ) -> Result<(), RegionPanic> {
        self.pool.shared().expect_not_forked();
        let _busy = Busy::enter(self.pool.shared());
        let opener = Participant { index: 0, count: self.participants as u32 };
        let _entered = current::enter(self.pool.shared(), opener);
        let flush = self.flush || is_flushing();
        let work = Work { init, body, faults: Faults::default(), flush, _scratch: PhantomData };
        let alone = self.participants == 1 || self.items <= self.grain;
        let claimed = if alone { None } else { self.pool.shared().claim() };
        match claimed {
            Some(claimed) => self.run_in(claimed, &work),
            None => {
                let mut all = (self.items > 0).then_some(0..self.items);
                work.participate(|| all.take());
            }
        }
        work.faults.into_result()
    }

    fn run_in<S, I, F>(&self, claimed: Claimed<'_>, work: &Work<S, I, F>)
    where
        I: Fn() -> S + Sync,
        F: Fn(&mut S, usize) + Sync,
    {
        let deal = claimed.claims().deal(self.items, self.schedule, self.participants, self.grain);
        claimed.open(Body::new(work, deal, self.participants), self.participants - 1);
        work.participate(claimed.claims().of(deal, self.pool.shared().home()));
        // Here, or where something unwinds: everyone is out before the caller's frame, where `work` lives, is gone.
        drop(claimed);
    }
}

/// What a joining thread needs: the work, with its types erased, and how items are claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    work: *const (),
    enter: unsafe fn(*const (), &mut dyn FnMut() -> Option<Range<usize>>),
    pub(crate) deal: Deal,
    participants: u32,
}

// SAFETY: `work` points to a `Work` whose fields are `Sync` closures and synchronised state.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

impl Body {
    fn new<S, I, F>(work: &Work<S, I, F>, deal: Deal, participants: usize) -> Self
    where
        I: Fn() -> S + Sync,
        F: Fn(&mut S, usize) + Sync,
    {
        unsafe fn enter<S, I: Fn() -> S + Sync, F: Fn(&mut S, usize) + Sync>(
            work: *const (),
            claim: &mut dyn FnMut() -> Option<Range<usize>>,
        ) {
            // SAFETY: the caller of `enter` vouches for the pointer, and `Body::new` for its type.
            let work = unsafe { &*work.cast::<Work<S, I, F>>() };
            work.participate(claim);
        }
        Self {
            work: std::ptr::from_ref(work).cast(),
            enter: enter::<S, I, F>,
            deal,
            participants: participants as u32,
        }
    }

    /// Who joins with so many seats left; the opener is number 0.
    pub(crate) fn participant(&self, seats_left: usize) -> Participant {
        Participant { index: self.participants - seats_left as u32, count: self.participants }
    }

    /// Takes part until no item is left to claim.
    ///
    /// # Safety
    /// The region must still be open or the calling thread counted as inside.
    pub(crate) unsafe fn participate(self, mut claim: impl FnMut() -> Option<Range<usize>>) {
        // SAFETY: the opener keeps the work alive until every participant has left.
        unsafe { (self.enter)(self.work, &mut claim) }
    }
}

/// One region's closures and its faults; lives in the frame of the thread that opened the region.
struct Work<S, I, F> {
    init: I,
    body: F,
    faults: Faults,
    flush: bool,
    _scratch: PhantomData<fn() -> S>,
}

impl<S, I: Fn() -> S + Sync, F: Fn(&mut S, usize) + Sync> Work<S, I, F> {
    fn participate(&self, claim: impl FnMut() -> Option<Range<usize>>) {
        if self.flush {
            flush_denormals(|| self.run_all(claim));
        } else {
            self.run_all(claim);
        }
    }

    fn run_all(&self, mut claim: impl FnMut() -> Option<Range<usize>>) {
        let current = Cell::new(0);
        let left = Cell::new(0..0);
        // After a panic the loop goes on, so that items before the one that panicked are still run: which panic is
        // reported must not depend on the schedule.
        while let Err(payload) =
            catch_unwind(AssertUnwindSafe(|| self.run_items(&mut claim, &current, &left)))
        {
            self.faults.record(current.get(), payload);
        }
    }

    fn run_items(
        &self,
        claim: &mut impl FnMut() -> Option<Range<usize>>,
        current: &Cell<usize>,
        left: &Cell<Range<usize>>,
    ) {
        let mut scratch = None;
        loop {
            let range = match left.take() {
                rest if !rest.is_empty() => rest,
                _ => match claim() {
                    Some(range) => range,
                    None => return,
                },
            };
            let end = range.end;
            for item in range {
                if item >= self.faults.stop.load(Relaxed) {
                    break;
                }
                current.set(item);
                left.set(item + 1..end);
                (self.body)(scratch.get_or_insert_with(&self.init), item);
            }
            left.set(0..0);
        }
    }
}

/// The panics of one region.
struct Faults {
    /// Items from this one on are skipped: the lowest that has panicked.
    stop: AtomicUsize,
    first: Mutex<Option<RegionPanic>>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { stop: AtomicUsize::new(usize::MAX), first: Mutex::new(None) }
    }
}

impl Faults {
    #[cold]
    fn record(&self, index: usize, payload: Box<dyn Any + Send>) {
        let mut first = self.first.lock();
        let dropped = if first.as_ref().is_none_or(|f| index < f.index) {
            self.stop.fetch_min(index, Relaxed);
            first.replace(RegionPanic { index, payload }).map(|former| former.payload)
        } else {
            Some(payload)
        };
        drop(first);
        dropped.into_iter().for_each(discard);
    }

    fn into_result(self) -> Result<(), RegionPanic> {
        self.first.into_inner().map_or(Ok(()), Err)
    }
}

/// A panic in the body of a region, brought to the thread that opened it.
pub struct RegionPanic {
    index: usize,
    payload: Box<dyn Any + Send>,
}

impl RegionPanic {
    /// The item whose body panicked; the lowest, if several did.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The panic's message, if it has one.
    pub fn message(&self) -> Option<&str> {
        let payload = &*self.payload;
        payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
    }

    /// What the panic carried.
    pub fn into_payload(self) -> Box<dyn Any + Send> {
        self.payload
    }

    /// Panics again, on this thread: with the index and the message, or with the payload where that is no message.
    pub fn resume(self) -> ! {
        match self.message() {
            Some(_) => resume_unwind(Box::new(self.to_string())),
            None => resume_unwind(self.payload),
        }
    }
}

impl fmt::Display for RegionPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {} panicked: {}", self.index, self.message().unwrap_or("(no message)"))
    }
}

impl fmt::Debug for RegionPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegionPanic").field("index", &self.index).field("message", &self.message()).finish()
    }
}

impl std::error::Error for RegionPanic {}
