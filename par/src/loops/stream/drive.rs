//! How a stream is run: participants take batches of items from the iterator until it ends.

use super::{Step, Stream};
use crate::{
    loops::{
        LoopError,
        drive::{At, Fault, Oversight, Position, Tally, begun},
    },
    region::{
        self, Crew,
        claims::{AdaptiveBatch, Claimer},
    },
};
use parking_lot::Mutex;
use std::{
    cell::Cell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// How many items are taken at a time at most, where their number is measured.
const MOST: usize = 1024;

impl<I, Q> Stream<'_, I, Q>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item>,
{
    /// Runs the stream: `body` gets all items, batch by batch.
    pub(super) fn drive<E, B>(self, body: B) -> Result<(), LoopError<E>>
    where
        E: Send,
        B: Fn(Batch<'_, '_, I::Item, Q>) -> Result<(), At<E>> + Sync,
    {
        let batch = self.settings.chunk_size();
        self.drive_by(batch, body, None)
    }

    /// The same, with batches of `batch` items if a number is given; `interrupted` is called when batches that have not come
    /// by now may never come.
    pub(super) fn drive_by<E, B>(
        self,
        batch: Option<usize>,
        body: B,
        interrupted: Option<&(dyn Fn() + Sync)>,
    ) -> Result<(), LoopError<E>>
    where
        E: Send,
        B: Fn(Batch<'_, '_, I::Item, Q>) -> Result<(), At<E>> + Sync,
    {
        let Self { items, step, settings } = self;
        let flow = Flow {
            tap: Mutex::new(Tap { items, next: 0, ended: false }),
            step: &step,
            batch,
            body,
            oversight: settings.oversight(usize::MAX, interrupted),
        };
        settings.with_pool(|pool| {
            pool.check_fork().map_err(LoopError::Forked)?;
            region::run(pool, &settings.uncounted_plan(pool), &flow);
            Ok(())
        })?;
        flow.oversight.into_result(None)
    }
}

/// A stream as its participants see it.
struct Flow<'l, I, Q, B, E> {
    tap: Mutex<Tap<I>>,
    step: &'l Q,
    /// The number of items in a batch, unless it is measured.
    batch: Option<usize>,
    /// What is done with the items of a batch.
    body: B,
    oversight: Oversight<'l, E>,
}

/// Where items come from.
struct Tap<I> {
    items: I,
    /// The number of the next one.
    next: usize,
    ended: bool,
}

impl<I, Q, B, E> Flow<'_, I, Q, B, E>
where
    I: Iterator,
    Q: Step<I::Item>,
    B: Fn(Batch<'_, '_, I::Item, Q>) -> Result<(), At<E>>,
{
    /// Takes up to `most` items, in place of what was left of the former batch. The number of the first, if there is one.
    fn take(&self, batch: &mut VecDeque<I::Item>, most: usize) -> Option<usize> {
        batch.clear();
        let mut tap = self.tap.lock();
        // All items that have been taken come before the next one: they need not be done if one of them has failed.
        if tap.ended || self.oversight.is_stopped() {
            return None;
        }
        let first = tap.next;
        let Tap { items, next, ended } = &mut *tap;
        let taken = catch_unwind(AssertUnwindSafe(|| {
            while batch.len() < most {
                let Some(item) = items.next() else {
                    *ended = true;
                    return;
                };
                batch.push_back(item);
                *next += 1;
            }
        }));
        if let Err(payload) = taken {
            *ended = true;
            let item = *next;
            drop(tap);
            self.oversight.record(item, Fault::Panic(payload));
        }
        (!batch.is_empty()).then_some(first)
    }

    fn work(
        &self,
        batch: &mut VecDeque<I::Item>,
        pace: &mut AdaptiveBatch,
        at: &Cell<usize>,
        tally: &mut Option<Tally>,
    ) {
        let mut scratch = None;
        loop {
            self.oversight.look();
            let most = self.batch.unwrap_or_else(|| pace.next(MOST));
            let Some(first) = self.take(batch, most) else { return };
            at.set(first);
            let count = batch.len();
            let scratch = begun(self.step, &mut scratch, tally);
            if let Some(tally) = tally {
                tally.count(count);
            }
            match (self.body)(Batch { items: batch, first, step: self.step, scratch, at }) {
                Ok(()) => self.oversight.done(count),
                Err((item, error)) => self.oversight.record(item, Fault::Error(error)),
            }
        }
    }
}

impl<I, Q, B, E> Crew for Flow<'_, I, Q, B, E>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item>,
    B: Fn(Batch<'_, '_, I::Item, Q>) -> Result<(), At<E>> + Sync,
    E: Send,
{
    fn participate(&self, _: Claimer<'_>) {
        // Outside of what may panic: what is left of a batch then is dropped when the panic has been caught, by `take`.
        let (mut batch, mut pace) = (VecDeque::new(), AdaptiveBatch::new());
        self.oversight.participate(|at, tally| self.work(&mut batch, &mut pace, at, tally));
    }
}

/// Consecutive items that a participant has taken.
pub(super) struct Batch<'r, 's, T, Q: Step<T> + 's> {
    items: &'r mut VecDeque<T>,
    first: usize,
    step: &'s Q,
    scratch: &'r mut Q::Scratch<'s>,
    /// Where the number of the item in work is left when something panics.
    pub(super) at: &'r Cell<usize>,
}

impl<T, Q: Step<T>> Batch<'_, '_, T, Q> {
    /// The number of its first item.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// The number of its items.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Calls `f` with the result for each item, in order, until one is an error.
    #[inline]
    pub(super) fn try_each<E>(self, mut f: impl FnMut(Q::Out) -> Result<(), E>) -> Result<(), At<E>> {
        let mut position = Position { at: self.at, item: self.first };
        // One by one: a panic leaves the others where they are.
        while let Some(item) = self.items.pop_front() {
            f(self.step.apply(self.scratch, item)).map_err(|error| (position.item, error))?;
            position.item += 1;
        }
        Ok(())
    }

    /// Calls `f` with the result for each item, in order.
    #[inline]
    pub(super) fn each(self, mut f: impl FnMut(Q::Out)) {
        let mut position = Position { at: self.at, item: self.first };
        while let Some(item) = self.items.pop_front() {
            f(self.step.apply(self.scratch, item));
            position.item += 1;
        }
    }
}
