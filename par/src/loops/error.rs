//! Errors of loops.

use crate::{Forked, Panic};
use std::{convert::Infallible, error::Error, fmt};

/// An error with the number of the item that it belongs to.
pub type AtItem<E> = (usize, E);

/// Why a loop did not finish.
///
/// Everything that began has ended before it is returned. If several items failed, it is the error of the
/// first one in the order of the loop, on any number of threads and under any schedule. All items before that
/// one have been done, unless the loop was cancelled as well or its deadline passed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LoopError<E> {
    /// The closure returned an error.
    #[error("item {index}: {error}")]
    Item {
        /// The number of the item.
        index: usize,
        /// The error.
        #[source]
        error: E,
    },
    /// The closure panicked.
    #[error("{0}")]
    Panic(#[source] Panic),
    /// The [token](crate::Loop::cancel_with) was cancelled before all items had begun.
    #[error("the loop was cancelled when {} items were done", share(*.done, *.items))]
    Cancelled {
        /// The number of items that were done.
        done: usize,
        /// The number of all items. `None` for a [`Stream`](crate::Stream), which does not know it.
        items: Option<usize>,
    },
    /// The [deadline](crate::Loop::deadline) passed before all items had begun.
    #[error("the loop's deadline passed when {} items were done", share(*.done, *.items))]
    DeadlineExceeded {
        /// The number of items that were done.
        done: usize,
        /// The number of all items. `None` for a [`Stream`](crate::Stream), which does not know it.
        items: Option<usize>,
    },
    /// This process was forked after the pool was built, so it does not have the pool's threads.
    #[error("{0}")]
    Forked(#[source] Forked),
}

/// Prints the message like `Display`, for `unwrap` and `main`. The error of an item need not have a message
/// of its own.
impl<E: fmt::Debug> fmt::Debug for LoopError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other: LoopError<Infallible> = match self {
            Self::Item { index, error } => return write!(f, "item {index}: {error:?}"),
            Self::Panic(panic) => return fmt::Display::fmt(panic, f),
            Self::Cancelled { done, items } => LoopError::Cancelled { done: *done, items: *items },
            Self::DeadlineExceeded { done, items } => {
                LoopError::DeadlineExceeded { done: *done, items: *items }
            }
            Self::Forked(forked) => return fmt::Display::fmt(forked, f),
        };
        fmt::Display::fmt(&other, f)
    }
}

/// The number of items that are done, of all items if their number is known.
fn share(done: usize, items: Option<usize>) -> String {
    match items {
        Some(items) => format!("{done} of {items}"),
        None => done.to_string(),
    }
}

impl<E> LoopError<E> {
    /// The number of the item that failed, if an item failed.
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Item { index, .. } => Some(*index),
            Self::Panic(panic) => panic.index(),
            Self::Cancelled { .. } | Self::DeadlineExceeded { .. } | Self::Forked(_) => None,
        }
    }

    /// The same error for another type of item errors. The caller has handled the errors of items.
    pub(crate) fn without_item<F>(self) -> LoopError<F> {
        match self {
            Self::Item { .. } => unreachable!("the caller handles the errors of items"),
            Self::Panic(panic) => LoopError::Panic(panic),
            Self::Cancelled { done, items } => LoopError::Cancelled { done, items },
            Self::DeadlineExceeded { done, items } => LoopError::DeadlineExceeded { done, items },
            Self::Forked(forked) => LoopError::Forked(forked),
        }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> LoopError<E> {
    /// Converts it into an ordinary error, also if the item's error does not implement [`Error`]: a `String`,
    /// a `&str`, or a `Box<dyn Error + Send + Sync>`. It keeps the source of the item's error. (If the item's
    /// error does implement `Error`, `?` converts it.)
    ///
    /// ```
    /// use anabranch_par::{LoopError, prelude::*};
    ///
    /// fn check(field: &[f64]) -> Result<(), Box<dyn std::error::Error>> {
    ///     let each = |x: &f64| if x.is_finite() { Ok(()) } else { Err(format!("the value is {x}")) };
    ///     field.par().try_for_each(each).map_err(LoopError::into_error)?;
    ///     Ok(())
    /// }
    /// assert_eq!(check(&[1.0, f64::NAN]).unwrap_err().to_string(), "item 1: the value is NaN");
    /// ```
    pub fn into_error(self) -> impl Error + Send + Sync + 'static {
        match self {
            Self::Item { index, error } => LoopError::Item { index, error: Boxed(error.into()) },
            other => other.without_item(),
        }
    }
}

/// An error in a box. The box itself does not implement [`Error`].
#[derive(thiserror::Error)]
#[error(transparent)]
struct Boxed(Box<dyn Error + Send + Sync>);

impl fmt::Debug for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl LoopError<Infallible> {
    /// Panics: with the panic of an item, or with a message. For loops whose closures return no errors.
    pub(crate) fn resume(self) -> ! {
        match self {
            Self::Item { error, .. } => match error {},
            Self::Panic(panic) => panic.resume(),
            Self::Forked(forked) => panic!("{forked}"),
            interrupted => panic!("{interrupted}; a `try_` form of the loop returns this as an error"),
        }
    }
}
