//! The control of a running loop, whatever kind of producer it has: failures, interruptions, progress and
//! statistics.
//!
//! 1. Each participant calls [`LoopControl::participate`], which runs its work and catches panics. After a
//!    panic the participant goes on, so that the items before the one that panicked are still done.
//! 2. Before each batch a participant calls [`check`](LoopControl::check): a cancelled token or a deadline
//!    that has passed stops the loop.
//! 3. A failure is recorded with the number of its item; the one with the smallest number stays. From then on
//!    no batch begins that lies behind it. Batches before it are still done, so the reported failure does not
//!    depend on the schedule.
//! 4. When all participants have left, [`into_result`](LoopControl::into_result) gives the outcome.

pub(super) mod hooks;
pub(super) mod progress;
pub(super) mod statistics;

use self::{
    hooks::{Hooks, Interruption, OnInterrupt},
    progress::ProgressMeter,
    statistics::Tally,
};
use super::{LoopError, error::AtItem, step::Step};
use crate::{Consecutive, Panic, panic::discard};
use parking_lot::Mutex;
use std::{
    any::Any,
    cell::Cell,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering::*},
};

pub(in crate::loops) struct LoopControl<'l, E> {
    hooks: &'l Hooks<'l>,
    meter: Option<ProgressMeter>,
    on_interrupt: OnInterrupt<'l>,
    /// No item from this one on needs to be done: it has failed, or it is what a search looked for.
    stop: AtomicUsize,
    /// The first item that has failed. Batches behind it need not even be finished. (An interrupted loop
    /// finishes its batches, because it counts the items that are done.)
    failed: AtomicUsize,
    first_failure: Mutex<Option<AtItem<Failure<E>>>>,
    interruption: Mutex<Option<Interruption>>,
}

pub(in crate::loops) enum Failure<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

impl<'l, E> LoopControl<'l, E> {
    /// For a loop over `items` items.
    pub(in crate::loops) fn new(hooks: &'l Hooks<'l>, items: usize, on_interrupt: OnInterrupt<'l>) -> Self {
        if let Some(statistics) = hooks.statistics {
            statistics.clear();
        }
        Self {
            hooks,
            meter: hooks.need_short_batches().then(|| ProgressMeter::new(items)),
            on_interrupt,
            stop: AtomicUsize::new(usize::MAX),
            failed: AtomicUsize::new(usize::MAX),
            first_failure: Mutex::new(None),
            interruption: Mutex::new(None),
        }
    }

    /// Takes part: calls `work` until it returns without a panic.
    #[inline]
    pub(in crate::loops) fn participate<'s, In, Q: Step<In>>(
        &self,
        step: &'s Q,
        mut work: impl FnMut(&mut Participation<'_, 's, In, Q, E>),
    ) {
        let at = Cell::new(0);
        let mut tally = self.hooks.statistics.map(|_| Tally::new());
        // Scratch is made inside: a panic drops it.
        while let Err(payload) = catch_unwind(AssertUnwindSafe(|| {
            work(&mut Participation { control: self, step, scratch: None, at: &at, tally: &mut tally });
        })) {
            self.record(at.get(), Failure::Panic(payload));
        }
        if let (Some(tally), Some(statistics)) = (tally, self.hooks.statistics) {
            statistics.add(tally.finish());
        }
    }

    /// Stops the loop if its token is cancelled or its deadline has passed.
    #[inline]
    pub(in crate::loops) fn check(&self) {
        if let Some(interruption) = self.hooks.interruption() {
            self.interrupt(interruption);
        }
    }

    #[cold]
    fn interrupt(&self, interruption: Interruption) {
        self.interruption.lock().get_or_insert(interruption);
        self.stop.store(0, Relaxed);
        self.call_on_interrupt();
    }

    /// No chunk of `split` from this one on needs to begin.
    #[inline]
    pub(in crate::loops) fn limit(&self, split: &Consecutive) -> usize {
        match self.stop.load(Relaxed) {
            usize::MAX => usize::MAX,
            item => split.limit(item),
        }
    }

    /// Whether items behind those that have begun need not begin.
    pub(in crate::loops) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed) != usize::MAX
    }

    /// Records the failure of an item. The failure of the first item stays.
    #[cold]
    pub(in crate::loops) fn record(&self, item: usize, failure: Failure<E>) {
        let mut first = self.first_failure.lock();
        let dropped = if first.as_ref().is_none_or(|(at, _)| item < *at) {
            self.stop.fetch_min(item, Relaxed);
            self.failed.fetch_min(item, Relaxed);
            first.replace((item, failure)).map(|(_, former)| former)
        } else {
            Some(failure)
        };
        drop(first);
        match dropped {
            Some(Failure::Panic(payload)) => discard(payload),
            // The destructor of an error is the program's code and may panic.
            error => {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(error))).map_err(discard);
            }
        }
        self.call_on_interrupt();
    }

    fn call_on_interrupt(&self) {
        if let Some(on_interrupt) = self.on_interrupt {
            on_interrupt();
        }
    }

    /// The outcome of the loop. `items` is the number of its items, if that is known.
    pub(in crate::loops) fn into_result(self, items: Option<usize>) -> Result<(), LoopError<E>> {
        let done = self.meter.as_ref().map_or(0, ProgressMeter::done);
        match (self.first_failure.into_inner(), self.interruption.into_inner()) {
            (Some((index, Failure::Error(error))), _) => Err(LoopError::Item { index, error }),
            (Some((index, Failure::Panic(payload))), _) => {
                Err(LoopError::Panic(Panic::of_item(index, payload)))
            }
            // The interruption came when everything was done.
            (None, Some(_)) if Some(done) == items => Ok(()),
            (None, Some(Interruption::Cancelled)) => Err(LoopError::Cancelled { done, items }),
            (None, Some(Interruption::DeadlineExceeded)) => Err(LoopError::DeadlineExceeded { done, items }),
            (None, None) => Ok(()),
        }
    }
}

/// One participant's part in a loop, until it leaves or an item panics.
pub(in crate::loops) struct Participation<'p, 's, In, Q: Step<In> + 's, E> {
    control: &'p LoopControl<'p, E>,
    step: &'s Q,
    /// Made before the first item.
    scratch: Option<Q::Scratch<'s>>,
    /// The number of the item in work, for the case that it panics.
    at: &'p Cell<usize>,
    tally: &'p mut Option<Tally>,
}

/// The surroundings in which a participant works on a batch.
pub(in crate::loops) struct Surroundings<'r, 's, In, Q: Step<In> + 's> {
    pub(in crate::loops) step: &'s Q,
    pub(in crate::loops) scratch: &'r mut Q::Scratch<'s>,
    /// The number of the item in work.
    pub(in crate::loops) at: &'r Cell<usize>,
    /// The first item so far that has failed.
    pub(in crate::loops) failed: &'r AtomicUsize,
}

impl<'s, In, Q: Step<In>, E> Participation<'_, 's, In, Q, E> {
    /// Works on a batch of items, and counts it or records its error.
    #[inline]
    pub(in crate::loops) fn run_batch(
        &mut self,
        items: Range<usize>,
        work: impl FnOnce(Surroundings<'_, 's, In, Q>) -> Result<(), AtItem<E>>,
    ) {
        let Self { control, step, scratch, at, tally } = self;
        let count = items.len();
        at.set(items.start);
        let scratch = match scratch {
            Some(scratch) => scratch,
            none => {
                let made = none.insert(step.init_scratch());
                if let Some(tally) = tally
                    && step.is_fresh(made)
                {
                    tally.add_scratch();
                }
                made
            }
        };
        if let Some(tally) = tally {
            tally.add_chunk(count);
        }
        match work(Surroundings { step, scratch, at, failed: &control.failed }) {
            Ok(()) => {
                if let Some(meter) = &control.meter {
                    meter.add(count, control.hooks.progress);
                }
            }
            Err((item, error)) => control.record(item, Failure::Error(error)),
        }
    }
}

/// The item that a batch is at. It is written back when this is dropped, so where nothing panics the compiler
/// keeps it in a register or leaves it out.
pub(in crate::loops) struct Position<'r> {
    pub(in crate::loops) at: &'r Cell<usize>,
    pub(in crate::loops) item: usize,
}

impl Drop for Position<'_> {
    #[inline]
    fn drop(&mut self) {
        self.at.set(self.item);
    }
}
