//! How a loop fails.

use crate::{Forked, Panic};
use std::{convert::Infallible, error::Error, fmt};

/// Why a loop was not done.
///
/// Everything that had begun has ended before it is returned. Where several items failed, it is the one that comes first
/// in the loop, on any number of threads and under any schedule: items before it have all been done (unless the loop was
/// cancelled as well, or its deadline had passed).
#[non_exhaustive]
pub enum LoopError<E> {
    /// The closure returned an error.
    Item {
        /// The number of the item.
        index: usize,
        /// The error.
        error: E,
    },
    /// The closure panicked.
    Panic(Panic),
    /// The [token](crate::Loop::cancel_with) was cancelled before all items had begun.
    Cancelled {
        /// How many items were done.
        done: usize,
        /// Of how many, if that is known: it is not for a [`Stream`](crate::Stream).
        items: Option<usize>,
    },
    /// The [deadline](crate::Loop::deadline) passed before all items had begun.
    DeadlineExceeded {
        /// How many items were done.
        done: usize,
        /// Of how many, if that is known: it is not for a [`Stream`](crate::Stream).
        items: Option<usize>,
    },
    /// This process was forked after the pool was built: its threads are not here.
    Forked(Forked),
}

impl<E> LoopError<E> {
    /// The number of the item that failed, if one did.
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Item { index, .. } => Some(*index),
            Self::Panic(panic) => panic.index(),
            Self::Cancelled { .. } | Self::DeadlineExceeded { .. } | Self::Forked(_) => None,
        }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> LoopError<E> {
    /// The same as an error like others, also where the item's error is none: a `String`, a `&str`, or a
    /// `Box<dyn Error + Send + Sync>` itself. What caused the item's error is kept. (`?` does it by itself where the
    /// item's error is one.)
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

/// An error that is in a box already. A box is no error itself.
struct Boxed(Box<dyn Error + Send + Sync>);

impl fmt::Display for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for Boxed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl<E> LoopError<E> {
    /// The same with another type of error, for what is known not to be an item's error.
    pub(crate) fn without_item<F>(self) -> LoopError<F> {
        match self {
            Self::Item { .. } => unreachable!("an item's error is handled by the caller"),
            Self::Panic(panic) => LoopError::Panic(panic),
            Self::Cancelled { done, items } => LoopError::Cancelled { done, items },
            Self::DeadlineExceeded { done, items } => LoopError::DeadlineExceeded { done, items },
            Self::Forked(forked) => LoopError::Forked(forked),
        }
    }
}

impl LoopError<Infallible> {
    /// For loops whose closures return no errors: goes on with the panic.
    pub(crate) fn resume(self) -> ! {
        match self {
            Self::Item { error, .. } => match error {},
            Self::Panic(panic) => panic.resume(),
            Self::Forked(forked) => panic!("{forked}"),
            cut_short => panic!("{cut_short}; a `try_` form of the loop returns this as an error"),
        }
    }
}

/// So many, of so many if that is known.
struct Share(usize, Option<usize>);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(done, Some(items)) => write!(f, "{done} of {items}"),
            Self(done, None) => write!(f, "{done}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for LoopError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item { index, error } => write!(f, "item {index}: {error}"),
            Self::Panic(panic) => panic.fmt(f),
            Self::Cancelled { done, items } => {
                write!(f, "the loop was cancelled when {} items were done", Share(*done, *items))
            }
            Self::DeadlineExceeded { done, items } => {
                write!(f, "the loop's deadline passed when {} items were done", Share(*done, *items))
            }
            Self::Forked(forked) => forked.fmt(f),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for LoopError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item { index, error } => {
                f.debug_struct("Item").field("index", index).field("error", error).finish()
            }
            Self::Panic(panic) => f.debug_tuple("Panic").field(panic).finish(),
            Self::Cancelled { done, items } => {
                f.debug_struct("Cancelled").field("done", done).field("items", items).finish()
            }
            Self::DeadlineExceeded { done, items } => {
                f.debug_struct("DeadlineExceeded").field("done", done).field("items", items).finish()
            }
            Self::Forked(forked) => f.debug_tuple("Forked").field(forked).finish(),
        }
    }
}

impl<E: Error + 'static> Error for LoopError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Item { error, .. } => Some(error),
            Self::Panic(panic) => Some(panic),
            Self::Forked(forked) => Some(forked),
            Self::Cancelled { .. } | Self::DeadlineExceeded { .. } => None,
        }
    }
}
