//! The methods that run a stream: for each item, into a vector, into a closure in order, until something is found.

use super::{ScratchStream, Step, Stream};
use crate::{
    loops::{
        LoopError,
        find::{found, looked, try_found},
        in_order::{Stage, failed},
    },
    scratch::worker_local::Provide,
};
use parking_lot::Mutex;
use std::convert::Infallible;

impl<I, Q> Stream<'_, I, Q>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item>,
{
    /// Calls `f` with each item, and returns when all calls have returned.
    ///
    /// # Panics
    /// If a call panics, or the iterator itself, nothing more is taken from the iterator, and the panic of the *first* item
    /// that panics comes out here once every participant has left, with the item's number in front of its message.
    pub fn for_each<F: Fn(Q::Out) + Sync>(self, f: F) {
        let result = self.drive::<Infallible, _>(|batch| {
            batch.each(&f);
            Ok(())
        });
        result.unwrap_or_else(|error| error.resume());
    }

    /// The same for calls that can fail: items before the one that fails are done, nothing more is taken from the iterator,
    /// and everything that has begun has ended before the error is returned.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let result = (0..).par_stream().try_for_each(|i| if i < 500 { Ok(()) } else { Err("too many") });
    /// assert_eq!(result.unwrap_err().to_string(), "item 500: too many");
    /// ```
    ///
    /// # Errors
    /// The error or panic of the first item that fails; or that the loop was cut short.
    pub fn try_for_each<E: Send, F>(self, f: F) -> Result<(), LoopError<E>>
    where
        F: Fn(Q::Out) -> Result<(), E> + Sync,
    {
        self.drive(|batch| batch.try_each(&f))
    }
}

impl<I, P> ScratchStream<'_, I, P>
where
    I: Iterator<Item: Send> + Send,
    P: Provide,
{
    /// Calls `f` with the participant's scratch and each item.
    ///
    /// # Panics
    /// As [`Stream::for_each`].
    pub fn for_each<F: Fn(&mut P::Value, I::Item) + Sync>(self, f: F) {
        self.map(f).for_each(|()| ());
    }

    /// The same for calls that can fail.
    ///
    /// # Errors
    /// As [`Stream::try_for_each`].
    pub fn try_for_each<E: Send, F>(self, f: F) -> Result<(), LoopError<E>>
    where
        F: Fn(&mut P::Value, I::Item) -> Result<(), E> + Sync,
    {
        self.map(f).try_for_each(|result| result)
    }
}

/// Batches of results, each with the number of its first item, in whatever order they come.
struct Batches<T>(Mutex<Vec<(usize, Vec<T>)>>);

impl<T> Batches<T> {
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn add(&self, first: usize, results: Vec<T>) {
        self.0.lock().push((first, results));
    }

    fn in_order(self) -> Vec<T> {
        let mut batches = self.0.into_inner();
        batches.sort_unstable_by_key(|(first, _)| *first);
        let mut all = Vec::with_capacity(batches.iter().map(|(_, results)| results.len()).sum());
        all.extend(batches.into_iter().flat_map(|(_, results)| results));
        all
    }
}

impl<I, Q> Stream<'_, I, Q>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item, Out: Send>,
{
    /// The results, in the order of the items.
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn collect(self) -> Vec<Q::Out> {
        let batches = Batches::new();
        let done = self.drive::<Infallible, _>(|batch| {
            let first = batch.first();
            let mut results = Vec::with_capacity(batch.len());
            batch.each(|result| results.push(result));
            batches.add(first, results);
            Ok(())
        });
        done.unwrap_or_else(|error| error.resume());
        batches.in_order()
    }

    /// Calls `sink` with all results in the order of the items, one at a time, while later ones are still being made. Who is
    /// too far ahead waits: however long the stream is, few results are in memory at a time.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let mut text = String::new();
    /// "a b c".split(' ').par_stream().map(str::to_uppercase).in_order(|letter| text += &letter);
    /// assert_eq!(text, "ABC");
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each). A panic of `sink` counts as one of the item that it was called with.
    pub fn in_order<F: FnMut(Q::Out) + Send>(self, mut sink: F) {
        let result = self.try_in_order(|item| {
            sink(item);
            Ok::<_, Infallible>(())
        });
        result.unwrap_or_else(|error| error.resume());
    }

    /// The same for a `sink` that can fail; it is not called again after an error.
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_in_order<E: Send, F>(self, sink: F) -> Result<(), LoopError<E>>
    where
        F: FnMut(Q::Out) -> Result<(), E> + Send,
    {
        let (stage, batch) = (Stage::new(sink), self.settings.chunk_size());
        let body = |batch: super::drive::Batch<'_, '_, I::Item, Q>| {
            let first = batch.first();
            let mut results = Vec::with_capacity(batch.len());
            batch.each(|result| results.push(result));
            stage.put(first, results)
        };
        self.drive_by(batch, body, Some(&|| stage.interrupt())).map_err(failed)
    }

    /// The first item (not the one that happens to be found first) for which `f` is true. Nothing more is taken from the
    /// iterator then.
    ///
    /// # Panics
    /// If an item before it panics.
    pub fn find<F: Fn(&Q::Out) -> bool + Sync>(self, f: F) -> Option<Q::Out> {
        found(self.drive(|batch| batch.try_each(|item| if f(&item) { Err(item) } else { Ok(()) })))
            .map(|(_, item)| item)
    }

    /// Like [`find`](Self::find), where looking at an item can fail, and for searches that are cancelled or have a deadline.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let words = "1 20 300 many".split(' ');
    /// let large = words.par_stream().try_find(|word| word.parse::<u32>().map(|n| n > 100))?;
    /// assert_eq!(large, Some("300"));
    /// # Ok::<(), anabranch_par::LoopError<std::num::ParseIntError>>(())
    /// ```
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each), if an item before the one that is looked for fails; or if the loop was cut short
    /// before it was found.
    pub fn try_find<E, F>(self, f: F) -> Result<Option<Q::Out>, LoopError<E>>
    where
        E: Send,
        F: Fn(&Q::Out) -> Result<bool, E> + Sync,
    {
        try_found(self.drive(|batch| batch.try_each(|item| looked(f(&item), item))))
    }

    /// The number of the first item for which `f` is true. Nothing more is taken from the iterator then.
    ///
    /// # Panics
    /// If an item before it panics.
    pub fn position<F: Fn(Q::Out) -> bool + Sync>(self, f: F) -> Option<usize> {
        found(self.drive(|batch| batch.try_each(|item| if f(item) { Err(()) } else { Ok(()) })))
            .map(|(index, ())| index)
    }

    /// Whether `f` is true for any item. Nothing more is taken from the iterator once one is found.
    ///
    /// # Panics
    /// If an item panics before one is found.
    pub fn any<F: Fn(Q::Out) -> bool + Sync>(self, f: F) -> bool {
        // As if it were the very first item: then nothing else is worth doing.
        let first = |(_, ())| (0, ());
        let search = |item| if f(item) { Err(()) } else { Ok(()) };
        found(self.drive(|batch| batch.try_each(search).map_err(first))).is_some()
    }

    /// Whether `f` is true for all items. Nothing more is taken from the iterator once one is found for which it is not.
    ///
    /// # Panics
    /// If an item panics before one is found.
    pub fn all<F: Fn(Q::Out) -> bool + Sync>(self, f: F) -> bool {
        !self.any(|item| !f(item))
    }
}

impl<I, Q, T, E> Stream<'_, I, Q>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item, Out = Result<T, E>>,
    T: Send,
    E: Send,
{
    /// The results in the order of the items, if none is an error.
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_collect(self) -> Result<Vec<T>, LoopError<E>> {
        let batches = Batches::new();
        self.drive(|batch| {
            let first = batch.first();
            let mut results = Vec::with_capacity(batch.len());
            batch.try_each(|result| result.map(|value| results.push(value)))?;
            batches.add(first, results);
            Ok(())
        })?;
        Ok(batches.in_order())
    }
}
