//! Loops that end when something is found.

use super::{Loop, LoopError, Source, Step};

/// What a search ends with: nothing found, or the panic that came before it.
pub(super) fn found<T>(result: Result<(), LoopError<T>>) -> Option<(usize, T)> {
    match result {
        Ok(()) => None,
        Err(LoopError::Item { index, error }) => Some((index, error)),
        Err(other) => other.without_item().resume(),
    }
}

/// What the search does after it has looked at `item`: goes on, or ends with what is found or with an error.
pub(super) fn looked<T, E>(at: Result<bool, E>, item: T) -> Result<(), Result<T, E>> {
    match at {
        Ok(false) => Ok(()),
        Ok(true) => Err(Ok(item)),
        Err(error) => Err(Err(error)),
    }
}

/// What a search that can fail ends with.
pub(super) fn try_found<T, E>(
    result: Result<(), LoopError<Result<T, E>>>,
) -> Result<Option<T>, LoopError<E>> {
    match result {
        Ok(()) => Ok(None),
        Err(LoopError::Item { error: Ok(item), .. }) => Ok(Some(item)),
        Err(LoopError::Item { index, error: Err(error) }) => Err(LoopError::Item { index, error }),
        Err(other) => Err(other.without_item()),
    }
}

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q>
where
    Q::Out: Send,
{
    /// The first item (not the one that happens to be found first) for which `f` is true. Items after it are skipped where
    /// they have not begun.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// assert_eq!((0..1000).par().find(|i| i * i > 5000), Some(71));
    /// ```
    ///
    /// # Panics
    /// If an item before it panics.
    pub fn find<F: Fn(&Q::Out) -> bool + Sync>(self, f: F) -> Option<Q::Out> {
        found(self.drive(|_, run| run.try_each(|_, item| if f(&item) { Err(item) } else { Ok(()) })))
            .map(|(_, item)| item)
    }

    /// Like [`find`](Self::find), where looking at an item can fail, and for searches that are cancelled or have a deadline.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let words = ["1", "20", "300", "many"];
    /// let large = |word: &&str| word.parse::<u32>().map(|n| n > 100);
    /// assert_eq!(words.par().map(|word| *word).try_find(large)?, Some("300"));
    /// let error = words[3..].par().map(|word| *word).try_find(large).unwrap_err();
    /// assert_eq!(error.to_string(), "item 0: invalid digit found in string");
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
        try_found(self.drive(|_, run| run.try_each(|_, item| looked(f(&item), item))))
    }

    /// The number of the first item for which `f` is true.
    ///
    /// # Panics
    /// If an item before it panics.
    pub fn position<F: Fn(Q::Out) -> bool + Sync>(self, f: F) -> Option<usize> {
        found(self.drive(|_, run| run.try_each(|_, item| if f(item) { Err(()) } else { Ok(()) })))
            .map(|(index, ())| index)
    }

    /// Whether `f` is true for any item. No further item is begun once one is found.
    ///
    /// # Panics
    /// If an item panics before one is found.
    pub fn any<F: Fn(Q::Out) -> bool + Sync>(self, f: F) -> bool {
        // As if it were the very first item: then nothing else is worth doing.
        let first = |(_, ())| (0, ());
        let search = |item| if f(item) { Err(()) } else { Ok(()) };
        found(self.drive(|_, run| run.try_each(|_, item| search(item)).map_err(first))).is_some()
    }

    /// Whether `f` is true for all items. No further item is begun once one is found for which it is not.
    ///
    /// # Panics
    /// If an item panics before one is found.
    pub fn all<F: Fn(Q::Out) -> bool + Sync>(self, f: F) -> bool {
        !self.any(|item| !f(item))
    }
}
