//! How a loop is run: its items go through the participants of a region, chunk by chunk; what fails is kept by its number.

use super::{
    LoopError, Source, Step,
    watch::{Cut, Meter, ParticipantStatistics, Watch},
};
use crate::{
    Consecutive, Panic,
    current::participant,
    panic::discard,
    region::{self, Crew, Plan, claims::Claimer},
    thread_pool::Shared,
};
use parking_lot::Mutex;
use std::{
    any::Any,
    cell::Cell,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering::*},
    time::Instant,
};

/// How many items are done between two looks whether an earlier one has failed.
const BLOCK: usize = 16;

/// An error with the number of its item.
pub(super) type At<E> = (usize, E);

/// A loop as its participants see it.
pub(super) struct Drive<'l, S, Q, B, E> {
    pub(super) source: &'l S,
    pub(super) step: &'l Q,
    /// What units are made of.
    pub(super) split: Consecutive,
    /// What is done with the items of a run of units.
    pub(super) body: B,
    pub(super) oversight: Oversight<'l, E>,
}

impl<S, Q, B, E> Drive<'_, S, Q, B, E>
where
    S: Source,
    Q: Step<S::Item>,
    B: Fn(Range<usize>, Run<'_, '_, S, Q>) -> Result<(), At<E>> + Sync,
    E: Send,
{
    /// Runs the loop. Everything that has begun has ended when this returns.
    #[inline]
    pub(super) fn run(self, pool: &Shared, plan: &Plan) -> Result<(), LoopError<E>> {
        pool.check_fork().map_err(LoopError::Forked)?;
        region::run(pool, plan, &self);
        self.oversight.into_result(Some(self.source.len()))
    }

    fn work(&self, claimer: &mut Claimer<'_>, at: &Cell<usize>, tally: &mut Option<Tally>) {
        let mut scratch = None;
        loop {
            self.oversight.look();
            let Some(units) = claimer.claim(self.oversight.control.limit(&self.split)) else { return };
            let items = self.split.span(&units);
            at.set(items.start);
            let count = items.len();
            let scratch = begun(self.step, &mut scratch, tally);
            if let Some(tally) = tally {
                tally.count(count);
            }
            let failed = &self.oversight.control.failed;
            let run = Run { source: self.source, step: self.step, scratch, at, failed, items };
            match (self.body)(units, run) {
                Ok(()) => self.oversight.done(count),
                Err((item, error)) => self.oversight.record(item, Fault::Error(error)),
            }
        }
    }
}

impl<S, Q, B, E> Crew for Drive<'_, S, Q, B, E>
where
    S: Source,
    Q: Step<S::Item>,
    B: Fn(Range<usize>, Run<'_, '_, S, Q>) -> Result<(), At<E>> + Sync,
    E: Send,
{
    fn participate(&self, mut claimer: Claimer<'_>) {
        self.oversight.participate(|at, tally| self.work(&mut claimer, at, tally));
    }
}

/// The participant's scratch, which it makes before its first item.
#[inline]
pub(super) fn begun<'m, 's, In, Q: Step<In>>(
    step: &'s Q,
    scratch: &'m mut Option<Q::Scratch<'s>>,
    tally: &mut Option<Tally>,
) -> &'m mut Q::Scratch<'s> {
    match scratch {
        Some(scratch) => scratch,
        none => {
            let made = none.insert(step.begin());
            if let Some(tally) = tally {
                tally.0.scratch_initialisations += usize::from(step.is_fresh(made));
            }
            made
        }
    }
}

/// What is kept of a loop while it runs, wherever its items come from: what fails, what cuts it short, how far it is.
pub(super) struct Oversight<'l, E> {
    watch: &'l Watch<'l>,
    control: Control<E>,
    meter: Option<Meter>,
    /// Called when something has failed or the loop is cut short: runs that others wait for may never come.
    interrupted: Option<&'l (dyn Fn() + Sync)>,
}

impl<'l, E> Oversight<'l, E> {
    pub(super) fn new(
        watch: &'l Watch<'l>,
        meter: Option<Meter>,
        interrupted: Option<&'l (dyn Fn() + Sync)>,
    ) -> Self {
        if let Some(statistics) = watch.statistics {
            statistics.clear();
        }
        Self { watch, control: Control::new(), meter, interrupted }
    }

    /// Takes part: calls `work` until it returns without a panic. `work` leaves the number of the item that it is at.
    #[inline]
    pub(super) fn participate(&self, mut work: impl FnMut(&Cell<usize>, &mut Option<Tally>)) {
        let at = Cell::new(0);
        let mut tally = self.watch.statistics.map(|_| Tally::new());
        // After a panic the participant goes on, so that items before the one that panicked are still run: which panic is
        // reported must not depend on the schedule.
        while let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(&at, &mut tally))) {
            self.record(at.get(), Fault::Panic(payload));
        }
        if let (Some(tally), Some(statistics)) = (tally, self.watch.statistics) {
            statistics.enter(tally.finish());
        }
    }

    /// Looks whether the loop is to be cut short.
    #[inline]
    pub(super) fn look(&self) {
        if let Some(cut) = self.watch.cut() {
            self.control.cut(cut);
            self.interrupt();
        }
    }

    /// Whether no further item is to be begun that comes behind all that have been.
    pub(super) fn is_stopped(&self) -> bool {
        self.control.stop.load(Relaxed) != usize::MAX
    }

    /// So many more items are done.
    #[inline]
    pub(super) fn done(&self, items: usize) {
        if let Some(meter) = &self.meter {
            meter.add(items, self.watch.progress);
        }
    }

    #[cold]
    pub(super) fn record(&self, item: usize, fault: Fault<E>) {
        self.control.record(item, fault);
        self.interrupt();
    }

    fn interrupt(&self) {
        if let Some(interrupted) = self.interrupted {
            interrupted();
        }
    }

    /// How the loop went. `items`: of how many, if that is known.
    pub(super) fn into_result(self, items: Option<usize>) -> Result<(), LoopError<E>> {
        let done = self.meter.as_ref().map_or(0, |meter| meter.done.load(Relaxed));
        self.control.into_result(done, items)
    }
}

/// What one participant has done so far.
pub(super) struct Tally(ParticipantStatistics, Instant);

impl Tally {
    fn new() -> Self {
        let index = participant().map_or(0, |p| p.index());
        let nothing = ParticipantStatistics {
            index,
            chunks: 0,
            items: 0,
            scratch_initialisations: 0,
            time: std::time::Duration::ZERO,
        };
        Self(nothing, Instant::now())
    }

    /// One more chunk, of so many items.
    #[inline]
    pub(super) fn count(&mut self, items: usize) {
        self.0.chunks += 1;
        self.0.items += items;
    }

    fn finish(self) -> ParticipantStatistics {
        ParticipantStatistics { time: self.1.elapsed(), ..self.0 }
    }
}

/// Consecutive items that a participant has taken: the right to do each of them, once.
pub(super) struct Run<'r, 's, S: Source, Q: Step<S::Item> + 's> {
    source: &'s S,
    step: &'s Q,
    scratch: &'r mut Q::Scratch<'s>,
    /// Where the number of the item in work is left when something panics.
    at: &'r Cell<usize>,
    /// The first item so far that failed.
    failed: &'r AtomicUsize,
    items: Range<usize>,
}

/// Where a run is; tells it when dropped, which the compiler can leave out where nothing panics.
pub(super) struct Position<'r> {
    pub(super) at: &'r Cell<usize>,
    pub(super) item: usize,
}

impl Drop for Position<'_> {
    fn drop(&mut self) {
        self.at.set(self.item);
    }
}

impl<'s, S: Source, Q: Step<S::Item>> Run<'_, 's, S, Q> {
    /// The numbers of its items.
    pub(super) fn items(&self) -> Range<usize> {
        self.items.clone()
    }

    /// Takes the items before item `end` off.
    #[inline]
    pub(super) fn split_off(&mut self, end: usize) -> Run<'_, 's, S, Q> {
        let end = end.clamp(self.items.start, self.items.end);
        let items = self.items.start..end;
        self.items.start = end;
        self.at.set(items.start);
        Run { scratch: self.scratch, items, ..*self }
    }

    /// Calls `f` with the result for each item, in order, until one is an error. Leaves off where an item before them has
    /// failed: a run may be long.
    #[inline]
    pub(super) fn try_each<E>(self, mut f: impl FnMut(usize, Q::Out) -> Result<(), E>) -> Result<(), At<E>> {
        let mut position = Position { at: self.at, item: self.items.start };
        for row in rows(self.source, self.items) {
            let mut cursor = self.source.cursor(row.start);
            let mut begin = row.start;
            // Relaxed: it only saves work.
            while begin < row.end && self.failed.load(Relaxed) >= begin {
                let block = begin..begin + BLOCK.min(row.end - begin);
                begin = block.end;
                for item in block {
                    position.item = item;
                    // SAFETY: the item is of the source, and this run's alone.
                    let value = unsafe { self.source.next(&mut cursor) };
                    f(item, self.step.apply(self.scratch, value)).map_err(|error| (item, error))?;
                }
            }
        }
        Ok(())
    }

    /// Calls `f` with the result for each item, in order.
    #[inline]
    pub(super) fn each(self, mut f: impl FnMut(Q::Out)) {
        let mut position = Position { at: self.at, item: self.items.start };
        for row in rows(self.source, self.items) {
            let mut cursor = self.source.cursor(row.start);
            for item in row {
                position.item = item;
                // SAFETY: as above.
                let value = unsafe { self.source.next(&mut cursor) };
                f(self.step.apply(self.scratch, value));
            }
        }
    }

    /// Folds the items in `L` lanes, item k in lane k % L: the compiler makes vectors of them.
    #[inline]
    pub(super) fn lanes<A: Copy, const L: usize>(self, start: A, f: impl Fn(A, Q::Out) -> A) -> [A; L] {
        let mut lanes = [start; L];
        let mut position = Position { at: self.at, item: self.items.start };
        let first = self.items.start;
        for row in rows(self.source, self.items) {
            let mut cursor = self.source.cursor(row.start);
            // Whole blocks begin with lane 0.
            let blocks = row.end.min((row.start - first).next_multiple_of(L) + first);
            let rest = row.end - (row.end - blocks) % L;
            // Macros, because both change the same variables.
            macro_rules! fold {
                ($items:expr) => {
                    for item in $items {
                        position.item = item;
                        // SAFETY: as above.
                        let value = unsafe { self.source.next(&mut cursor) };
                        let lane = &mut lanes[(item - first) % L];
                        *lane = f(*lane, self.step.apply(self.scratch, value));
                    }
                };
            }
            macro_rules! fold_blocks {
                ($unit:literal) => {
                    for block in (blocks..rest).step_by(L) {
                        let values: [Q::Out; L] = std::array::from_fn(|k| {
                            position.item = block + k;
                            // SAFETY: as above.
                            let value = unsafe { self.source.step::<$unit>(&mut cursor) };
                            self.step.apply(self.scratch, value)
                        });
                        for (lane, value) in lanes.iter_mut().zip(values) {
                            *lane = f(*lane, value);
                        }
                    }
                };
            }
            fold!(row.start..blocks);
            if self.source.is_unit(&cursor) {
                fold_blocks!(true);
            } else {
                fold_blocks!(false);
            }
            fold!(rest..row.end);
        }
        lanes
    }
}

/// `items`, row by row: see [`Source::row_end`].
#[inline]
fn rows<S: Source>(source: &S, items: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = items.start;
    std::iter::from_fn(move || {
        let row = start..source.row_end(start).min(items.end);
        start = row.end;
        (!row.is_empty()).then_some(row)
    })
}

pub(super) enum Fault<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

/// What ends a loop early.
struct Control<E> {
    /// Items from this one on need not be done: one has failed, or what was looked for is found.
    stop: AtomicUsize,
    /// The first item that has failed: what is after it need not be finished either. (What is cut short is: those that are
    /// done are counted.)
    failed: AtomicUsize,
    first: Mutex<Option<At<Fault<E>>>>,
    cut: Mutex<Option<Cut>>,
}

impl<E> Control<E> {
    fn new() -> Self {
        let none = || AtomicUsize::new(usize::MAX);
        Self { stop: none(), failed: none(), first: Mutex::new(None), cut: Mutex::new(None) }
    }

    /// Units from this one on need not be begun.
    #[inline]
    fn limit(&self, split: &Consecutive) -> usize {
        match self.stop.load(Relaxed) {
            usize::MAX => usize::MAX,
            item => split.limit(item),
        }
    }

    #[cold]
    fn cut(&self, cut: Cut) {
        self.cut.lock().get_or_insert(cut);
        self.stop.store(0, Relaxed);
    }

    #[cold]
    fn record(&self, item: usize, fault: Fault<E>) {
        let mut first = self.first.lock();
        let dropped = if first.as_ref().is_none_or(|(at, _)| item < *at) {
            self.stop.fetch_min(item, Relaxed);
            self.failed.fetch_min(item, Relaxed);
            first.replace((item, fault)).map(|(_, former)| former)
        } else {
            Some(fault)
        };
        drop(first);
        match dropped {
            Some(Fault::Panic(payload)) => discard(payload),
            // Its destructor is the program's code.
            error => {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(error))).map_err(discard);
            }
        }
    }

    fn into_result(self, done: usize, items: Option<usize>) -> Result<(), LoopError<E>> {
        match (self.first.into_inner(), self.cut.into_inner()) {
            (Some((index, Fault::Error(error))), _) => Err(LoopError::Item { index, error }),
            (Some((index, Fault::Panic(payload))), _) => {
                Err(LoopError::Panic(Panic::of_item(index, payload)))
            }
            // It came when everything was done.
            (None, Some(_)) if Some(done) == items => Ok(()),
            (None, Some(Cut::Cancelled)) => Err(LoopError::Cancelled { done, items }),
            (None, Some(Cut::DeadlineExceeded)) => Err(LoopError::DeadlineExceeded { done, items }),
            (None, None) => Ok(()),
        }
    }
}
