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
