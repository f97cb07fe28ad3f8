//! Loops over iterators, whose length is not known.
//!
//! 1. A participant that is free locks the [shared iterator](job) and takes a batch of items. Then it works
//!    on them without the lock.
//! 2. Items are numbered in the order in which the iterator gives them. So results are in that order, and of
//!    several failures the one of the first item is reported.
//! 3. The leaves of reductions are batches of a fixed size ([`fold`]).
//! 4. When the iterator ends or panics, an item has failed or the loop is interrupted, nothing more is taken.

mod batch;
mod fold;
mod job;

use super::{
    Loop, LoopError, Number, Producer,
    consumers::reduce::optional,
    control::hooks::OnInterrupt,
    number::NumberRef,
    producer::{Batch, Consumer},
    sealed::Sealed,
    step::{Identity, Step},
};
use parking_lot::Mutex;
use std::convert::Infallible;

/// Makes parallel loops of iterators.
pub trait IntoStream: Iterator + Send + Sized
where
    Self::Item: Send,
{
    /// A parallel loop over the items of this iterator. One thread at a time calls the iterator; expensive
    /// work belongs behind it, in [`map`](Loop::map).
    ///
    /// Loops over numbers, slices and arrays are faster: see [`IntoParallel`](crate::IntoParallel).
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let text = "one\ntwo\nthree";
    /// let lengths: Vec<usize> = text.lines().par_stream().map(str::len).collect();
    /// assert_eq!(lengths, [3, 3, 5]);
    /// // The iterator may be endless.
    /// let square = (0_u64..).map(|i| i * i).par_stream().find(|i| *i > 1000);
    /// assert_eq!(square, Some(1024));
    /// ```
    fn par_stream<'a>(self) -> Stream<'a, Self> {
        Loop::new(SharedIter(self))
    }
}

impl<I: Iterator<Item: Send> + Send> IntoStream for I {}

/// A parallel loop over an iterator that has not run yet: over the items of `I`, with the step `Q`.
///
/// [`par_stream`](IntoStream::par_stream) makes it. It has the methods of every [`Loop`] that do not need the
/// number of items. No more items are taken from the iterator after an item has failed or was found. If the
/// iterator itself panics, that counts as a panic of the item that it should have given. The iterator may run
/// loops of its own.
///
/// ```
/// use anabranch_par::{LoopError, prelude::*};
///
/// let words = "3 4 five 6".split(' ');
/// let result = words.par_stream().map(|word| word.parse::<u32>()).try_collect();
/// assert_eq!(result.unwrap_err().to_string(), "item 2: invalid digit found in string");
/// ```
pub type Stream<'a, I, Q = Identity> = Loop<'a, SharedIter<I>, Q>;

/// An iterator that participants take turns to call: the producer of a [`Stream`].
#[derive(Clone, Copy, Debug)]
pub struct SharedIter<I>(I);

impl<I> Sealed for SharedIter<I> {}

impl<I: Iterator<Item: Send> + Send> Producer for SharedIter<I> {
    type Item = I::Item;

    fn run<Q, R, C>(
        work: Stream<'_, I, Q>,
        consumer: &C,
        on_interrupt: OnInterrupt<'_>,
    ) -> Result<(), LoopError<C::Error>>
    where
        Q: Step<I::Item, Out = R>,
        C: Consumer<R>,
    {
        let batch_size = work.settings.chunk_size();
        work.run_batches(batch_size, on_interrupt, |batch| consumer.consume(batch))
    }

    fn collect<Q, R>(work: Stream<'_, I, Q>) -> Vec<R>
    where
        Q: Step<I::Item, Out = R>,
        R: Send,
    {
        let result = work.map(Ok::<_, Infallible>).try_collect();
        result.unwrap_or_else(|error| error.resume())
    }

    fn try_collect<Q, T, E>(work: Stream<'_, I, Q>) -> Result<Vec<T>, LoopError<E>>
    where
        Q: Step<I::Item, Out = Result<T, E>>,
        T: Send,
        E: Send,
    {
        // The results of each batch, with the number of its first item, in the order in which they arrive.
        let batches: Mutex<Vec<(usize, Vec<T>)>> = Mutex::default();
        let batch_size = work.settings.chunk_size();
        work.run_batches(batch_size, None, |batch| {
            let items = batch.items();
            let mut results = Vec::with_capacity(items.len());
            batch.try_for_each(|result| result.map(|value| results.push(value)))?;
            batches.lock().push((items.start, results));
            Ok(())
        })?;
        let mut batches = batches.into_inner();
        batches.sort_unstable_by_key(|(first, _)| *first);
        let mut all = Vec::with_capacity(batches.iter().map(|(_, results)| results.len()).sum());
        all.extend(batches.into_iter().flat_map(|(_, results)| results));
        Ok(all)
    }

    fn try_fold<Q, R, A, E, N, F, C>(
        work: Stream<'_, I, Q>,
        identity: N,
        fold: F,
        combine: C,
    ) -> Result<A, LoopError<E>>
    where
        Q: Step<I::Item, Out = R>,
        A: Send,
        E: Send,
        N: Fn() -> A + Sync,
        F: Fn(A, R) -> Result<A, E> + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        work.fold_batches(identity, fold, combine)
    }

    fn fold_numbers<Q, R, N, F>(work: Stream<'_, I, Q>, identity: N, op: F) -> Option<N>
    where
        Q: Step<I::Item, Out = R>,
        R: NumberRef<Number = N>,
        N: Number,
        F: Fn(N, N) -> N + Copy + Sync,
    {
        let add = |sum: Option<N>, item: R| Some(op(sum.unwrap_or(identity), item.number()));
        work.fold(|| None, add, optional(&op))
    }
}
