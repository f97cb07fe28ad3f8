//! How a stream runs: participants take batches of items from the iterator until it ends.

use super::{SharedIter, Stream, batch::StreamBatch};
use crate::{
    LoopError, Step,
    loops::{
        control::{Failure, LoopControl, hooks::OnInterrupt},
        error::AtItem,
    },
    region::{
        self, RegionBody,
        claims::{AdaptiveBatch, Claimer},
    },
};
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The most items that a participant takes at a time, where the number is measured.
const MAX_BATCH: usize = 1024;

impl<I, Q> Stream<'_, I, Q>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item>,
{
    /// Runs the stream: `body` gets all items, in batches of `batch_size` items if a number is given.
    pub(super) fn run_batches<E, B>(
        self,
        batch_size: Option<usize>,
        on_interrupt: OnInterrupt<'_>,
        body: B,
    ) -> Result<(), LoopError<E>>
    where
        E: Send,
        B: Fn(StreamBatch<'_, '_, I::Item, Q>) -> Result<(), AtItem<E>> + Sync,
    {
        let Self { source: SharedIter(items), step, settings } = self;
        let job = StreamJob {
            iter: Mutex::new(NumberedIter { items, next: 0, ended: false }),
            step: &step,
            batch_size,
            body,
            control: settings.control(usize::MAX, on_interrupt),
        };
        settings.with_pool(|pool| {
            pool.check_fork().map_err(LoopError::Forked)?;
            region::run(pool, &settings.stream_plan(pool), &job);
            Ok(())
        })?;
        job.control.into_result(None)
    }
}

/// A running stream, as its participants see it.
struct StreamJob<'l, I, Q, B, E> {
    iter: Mutex<NumberedIter<I>>,
    step: &'l Q,
    /// The number of items in a batch, unless it is measured.
    batch_size: Option<usize>,
    /// The work on the items of a batch.
    body: B,
    control: LoopControl<'l, E>,
}

struct NumberedIter<I> {
    items: I,
    /// The number of the next item.
    next: usize,
    ended: bool,
}

impl<I, Q, B, E> StreamJob<'_, I, Q, B, E>
where
    I: Iterator,
{
    /// Drops the rest of the last batch and takes up to `most` items. Returns the number of the first one, if
    /// there is one.
    fn take(&self, batch: &mut VecDeque<I::Item>, most: usize) -> Option<usize> {
        batch.clear();
        let mut iter = self.iter.lock();
        // All items that were taken come before the next one. So the next one need not be done if one of them
        // has failed.
        if iter.ended || self.control.is_stopped() {
            return None;
        }
        let first = iter.next;
        let NumberedIter { items, next, ended } = &mut *iter;
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
            drop(iter);
            self.control.record(item, Failure::Panic(payload));
        }
        (!batch.is_empty()).then_some(first)
    }
}

impl<I, Q, B, E> RegionBody for StreamJob<'_, I, Q, B, E>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item>,
    B: Fn(StreamBatch<'_, '_, I::Item, Q>) -> Result<(), AtItem<E>> + Sync,
    E: Send,
{
    fn participate(&self, _: &mut Claimer<'_>) {
        // Outside of the code that may panic: after a panic `take` drops the rest of the batch, when the
        // panic has been caught.
        let (mut items, mut adaptive) = (VecDeque::new(), AdaptiveBatch::new());
        self.control.participate(self.step, |participation| {
            loop {
                self.control.check();
                let most = self.batch_size.unwrap_or_else(|| adaptive.next(MAX_BATCH));
                let Some(first) = self.take(&mut items, most) else { return };
                participation.run_batch(first..first + items.len(), |surroundings| {
                    (self.body)(StreamBatch::new(first, &mut items, surroundings))
                });
            }
        });
    }
}
