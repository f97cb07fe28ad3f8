//! Loops that run for the effects of their closures.

use crate::{
    loops::{
        Loop, LoopError, Producer, ScratchLoop,
        error::AtItem,
        producer::{Batch, Consumer},
        step::Step,
    },
    scratch::provider::Provider,
};
use std::convert::Infallible;

impl<S: Producer, Q: Step<S::Item>> Loop<'_, S, Q> {
    /// Calls `f` with each item, and returns when all calls have returned.
    ///
    /// # Panics
    /// If a call panics, later items are skipped and nothing more is taken from an iterator. When every
    /// participant has left, this panics with the panic of the *first* item that panicked, and with the
    /// item's number in front of its message. A panic of the iterator itself counts as a panic of the item
    /// that it should have given.
    #[inline]
    pub fn for_each<F: Fn(Q::Out) + Sync>(self, f: F) {
        S::run(self, &ForEach(f), None).unwrap_or_else(|error| error.resume());
    }

    /// Calls `f`, which can fail, with each item. After an error, later items are skipped and items before it
    /// are done. Everything that began has ended when the error is returned.
    ///
    /// ```
    /// use anabranch_par::{LoopError, prelude::*};
    ///
    /// let words = ["1", "2", "three", "4", "five"];
    /// let result = words.par().try_for_each(|word| word.parse::<u32>().map(drop));
    /// assert_eq!(result.unwrap_err().to_string(), "item 2: invalid digit found in string");
    ///
    /// let result = (0..).par_stream().try_for_each(|i| if i < 500 { Ok(()) } else { Err("too many") });
    /// assert_eq!(result.unwrap_err().to_string(), "item 500: too many");
    /// ```
    ///
    /// # Errors
    /// The error or panic of the first item that fails; or that the loop was cancelled or its deadline
    /// passed.
    #[inline]
    pub fn try_for_each<E: Send, F>(self, f: F) -> Result<(), LoopError<E>>
    where
        F: Fn(Q::Out) -> Result<(), E> + Sync,
    {
        S::run(self, &TryForEach(f), None)
    }
}

impl<S: Producer, P: Provider> ScratchLoop<'_, S, P> {
    /// Calls `f` with the participant's scratch and each item.
    ///
    /// # Panics
    /// As [`Loop::for_each`].
    #[inline]
    pub fn for_each<F: Fn(&mut P::Value, S::Item) + Sync>(self, f: F) {
        self.map(f).for_each(|()| ());
    }

    /// Calls `f`, which can fail, with the participant's scratch and each item.
    ///
    /// # Errors
    /// As [`Loop::try_for_each`].
    #[inline]
    pub fn try_for_each<E: Send, F>(self, f: F) -> Result<(), LoopError<E>>
    where
        F: Fn(&mut P::Value, S::Item) -> Result<(), E> + Sync,
    {
        self.map(f).try_for_each(|result| result)
    }
}

struct ForEach<F>(F);

impl<T, F: Fn(T) + Sync> Consumer<T> for ForEach<F> {
    type Error = Infallible;

    #[inline]
    fn consume(&self, batch: impl Batch<Out = T>) -> Result<(), AtItem<Infallible>> {
        batch.for_each(&self.0);
        Ok(())
    }
}

struct TryForEach<F>(F);

impl<T, E: Send, F: Fn(T) -> Result<(), E> + Sync> Consumer<T> for TryForEach<F> {
    type Error = E;

    #[inline]
    fn consume(&self, batch: impl Batch<Out = T>) -> Result<(), AtItem<E>> {
        batch.try_for_each(&self.0)
    }
}
