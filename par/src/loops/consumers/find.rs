//! Loops that end when something is found.

use crate::loops::{
    Loop, LoopError, Producer,
    error::AtItem,
    producer::{Batch, Consumer},
    step::Step,
};

impl<S: Producer, Q: Step<S::Item>> Loop<'_, S, Q>
where
    Q::Out: Send,
{
    /// Finds the first item in the order of the loop for which `f` is true. Items after it are skipped if
    /// they have not begun, and nothing more is taken from an iterator.
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
        found(self.try_for_each(|item| if f(&item) { Err(item) } else { Ok(()) })).map(|(_, item)| item)
    }

    /// Like [`find`](Self::find), for tests of an item that can fail, and for searches that can be cancelled
    /// or have a deadline.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let words = ["1", "20", "300", "many"];
    /// let large = |word: &&str| word.parse::<u32>().map(|n| n > 100);
    /// assert_eq!(words.par().copied().try_find(large)?, Some("300"));
    /// let error = words[3..].par().copied().try_find(large).unwrap_err();
    /// assert_eq!(error.to_string(), "item 0: invalid digit found in string");
    /// # Ok::<(), anabranch_par::LoopError<std::num::ParseIntError>>(())
    /// ```
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each), if an item before the match fails or the loop ends before it
    /// is found.
    pub fn try_find<E, F>(self, f: F) -> Result<Option<Q::Out>, LoopError<E>>
    where
        E: Send,
        F: Fn(&Q::Out) -> Result<bool, E> + Sync,
    {
        let test = |item| match f(&item) {
            Ok(false) => Ok(()),
            Ok(true) => Err(Ok(item)),
            Err(error) => Err(Err(error)),
        };
        match self.try_for_each(test) {
            Ok(()) => Ok(None),
            Err(LoopError::Item { error: Ok(item), .. }) => Ok(Some(item)),
            Err(LoopError::Item { index, error: Err(error) }) => Err(LoopError::Item { index, error }),
            Err(other) => Err(other.without_item()),
        }
    }

    /// Finds the number of the first item for which `f` is true. Items after it are skipped as by
    /// [`find`](Self::find).
    ///
    /// # Panics
    /// If an item before it panics.
    pub fn position<F: Fn(Q::Out) -> bool + Sync>(self, f: F) -> Option<usize> {
        found(self.try_for_each(|item| if f(item) { Err(()) } else { Ok(()) })).map(|(index, ())| index)
    }

    /// Whether `f` is true for any item. No further item begins once one is found.
    ///
    /// # Panics
    /// If an item panics before one is found.
    pub fn any<F: Fn(Q::Out) -> bool + Sync>(self, f: F) -> bool {
        found(S::run(self, &Any(f), None)).is_some()
    }

    /// Whether `f` is true for all items. No further item begins once one is found for which it is false.
    ///
    /// # Panics
    /// If an item panics before one is found.
    pub fn all<F: Fn(Q::Out) -> bool + Sync>(self, f: F) -> bool {
        !self.any(|item| !f(item))
    }
}

struct Any<F>(F);

impl<T, F: Fn(T) -> bool + Sync> Consumer<T> for Any<F> {
    type Error = ();

    #[inline]
    fn consume(&self, batch: impl Batch<Out = T>) -> Result<(), AtItem<()>> {
        let found = batch.try_for_each(|item| if (self.0)(item) { Err(()) } else { Ok(()) });
        // Any match will do, so the loop stops as if item 0 had matched.
        found.map_err(|(_, ())| (0, ()))
    }
}

/// The match of a search, with its number. Panics with the panic of an item before it.
fn found<T>(result: Result<(), LoopError<T>>) -> Option<(usize, T)> {
    match result {
        Ok(()) => None,
        Err(LoopError::Item { index, error }) => Some((index, error)),
        Err(other) => other.without_item().resume(),
    }
}
