//! Loops for the sake of what their closures do.

use super::{Loop, LoopError, ScratchLoop, Source, Step};
use crate::scratch::worker_local::Provide;
use std::convert::Infallible;

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q> {
    /// Calls `f` with each item, and returns when all calls have returned.
    ///
    /// # Panics
    /// If a call panics, later items are skipped, and the panic of the *first* item that panics comes out here once every
    /// participant has left, with the item's number in front of its message.
    #[inline]
    pub fn for_each<F: Fn(Q::Out) + Sync>(self, f: F) {
        let result = self.drive::<Infallible, _>(|_, run| {
            run.each(&f);
            Ok(())
        });
        result.unwrap_or_else(|error| error.resume());
    }

    /// The same for calls that can fail: later items are skipped, items before it are done, and everything that has begun
    /// has ended before the error is returned.
    ///
    /// ```
    /// use anabranch_par::{LoopError, prelude::*};
    ///
    /// let words = ["1", "2", "three", "4", "five"];
    /// let result = words.par().try_for_each(|word| word.parse::<u32>().map(drop));
    /// assert_eq!(result.unwrap_err().to_string(), "item 2: invalid digit found in string");
    /// ```
    ///
    /// # Errors
    /// The error or panic of the first item that fails; or that the loop was cut short.
    #[inline]
    pub fn try_for_each<E: Send, F>(self, f: F) -> Result<(), LoopError<E>>
    where
        F: Fn(Q::Out) -> Result<(), E> + Sync,
    {
        self.drive(|_, run| run.try_each(|_, item| f(item)))
    }
}

impl<S: Source, P: Provide> ScratchLoop<'_, S, P> {
    /// Calls `f` with the participant's scratch and each item.
    ///
    /// # Panics
    /// As [`Loop::for_each`].
    #[inline]
    pub fn for_each<F: Fn(&mut P::Value, S::Item) + Sync>(self, f: F) {
        self.map(f).for_each(|()| ());
    }

    /// The same for calls that can fail.
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
