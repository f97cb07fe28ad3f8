//! Reductions.
//!
//! Their shape is a tree that depends on the number of items and the chunk size alone: items are folded one
//! after the other in leaves, and neighbouring leaves are combined pairwise. So the bits of the result do not
//! depend on threads or schedules, not even for operators that do not commute, or that are not quite
//! associative, such as the addition of floats.

use crate::loops::{Loop, LoopError, Producer, step::Step};
use std::convert::Infallible;

impl<S: Producer, Q: Step<S::Item>> Loop<'_, S, Q> {
    /// Combines all items with `op`, which must be associative: the result for neighbours may take the place
    /// of both. `None` if there are no items. The result is the same on any number of threads, bit for bit.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let longest = ["a", "ccc", "bb"].par().map(|s| s.len()).reduce(usize::max);
    /// assert_eq!(longest, Some(3));
    /// let words = "in the order of the text".split(' ');
    /// let text = words.par_stream().map(str::to_owned).reduce(|a, b| a + "-" + &b);
    /// assert_eq!(text.unwrap(), "in-the-order-of-the-text");
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each). A panic of `op` counts as one of the item that it was called for.
    pub fn reduce<F>(self, op: F) -> Option<Q::Out>
    where
        Q::Out: Send,
        F: Fn(Q::Out, Q::Out) -> Q::Out + Sync,
    {
        self.fold(|| None, |sum, item| Some(append(sum, item, &op)), optional(&op))
    }

    /// Like [`reduce`](Self::reduce), beginning with `initial`. It enters the result exactly once, on the
    /// left, on any number of threads.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    pub fn reduce_from<F>(self, initial: Q::Out, op: F) -> Q::Out
    where
        Q::Out: Send,
        F: Fn(Q::Out, Q::Out) -> Q::Out + Sync,
    {
        let settings = self.settings;
        match self.reduce(&op) {
            Some(sum) => settings.in_denormal_mode(|| op(initial, sum)),
            None => initial,
        }
    }

    /// Combines all results with `op`, if none is an error.
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_reduce<T, E, F>(self, op: F) -> Result<Option<T>, LoopError<E>>
    where
        Q: Step<S::Item, Out = Result<T, E>>,
        T: Send,
        E: Send,
        F: Fn(T, T) -> T + Sync,
    {
        self.try_fold(|| None, |sum, item: Result<T, E>| Ok(Some(append(sum, item?, &op))), optional(&op))
    }

    /// Folds the items of each leaf (of each batch, for a stream) into an accumulator, and combines the
    /// accumulators. Each begins with `identity()`, which may enter the result any number of times, so it
    /// must change nothing: `combine(identity(), a)` is `a`.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let histogram = (0..1000_u32).par().fold(
    ///     || [0; 10],
    ///     |mut counts, i| {
    ///         counts[i as usize % 10] += 1;
    ///         counts
    ///     },
    ///     |a, b| std::array::from_fn(|k| a[k] + b[k]),
    /// );
    /// assert_eq!(histogram, [100; 10]);
    /// ```
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    pub fn fold<A, I, F, C>(self, identity: I, fold: F, combine: C) -> A
    where
        A: Send,
        I: Fn() -> A + Sync,
        F: Fn(A, Q::Out) -> A + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        let result = self.try_fold(identity, |sum, item| Ok::<_, Infallible>(fold(sum, item)), combine);
        result.unwrap_or_else(|error| error.resume())
    }

    /// Like [`fold`](Self::fold), for folds that can fail.
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_fold<A, E, I, F, C>(self, identity: I, fold: F, combine: C) -> Result<A, LoopError<E>>
    where
        A: Send,
        E: Send,
        I: Fn() -> A + Sync,
        F: Fn(A, Q::Out) -> Result<A, E> + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        S::try_fold(self, identity, fold, combine)
    }
}

/// Appends an item to the items that `sum` stands for, if there are any.
#[inline]
fn append<T>(sum: Option<T>, item: T, op: &impl Fn(T, T) -> T) -> T {
    match sum {
        Some(sum) => op(sum, item),
        None => item,
    }
}

/// `op` for operands that may be missing.
pub(in crate::loops) fn optional<T>(
    op: &impl Fn(T, T) -> T,
) -> impl Fn(Option<T>, Option<T>) -> Option<T> + '_ {
    |a, b| match (a, b) {
        (Some(a), Some(b)) => Some(op(a, b)),
        (a, b) => a.or(b),
    }
}
