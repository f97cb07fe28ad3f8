//! The interface between producers, which hand out the items of a loop, and consumers, which use the results.
//!
//! A [`Producer`] decides how participants get items: in [batches](Batch), each of which belongs to one
//! participant. A [`Consumer`] is a method such as `for_each` or `find`: it says what happens to the results
//! of one batch. Both are generic, so the compiler sees one plain loop for each pair of them.

use super::{
    Loop, LoopError, Number, control::hooks::OnInterrupt, error::AtItem, number::NumberRef, sealed::Sealed,
    step::Step,
};
use std::ops::Range;

/// The origin of a loop's items: any [`Source`](crate::Source), or an iterator that participants share.
///
/// Only this crate implements it.
pub trait Producer: Sealed + Sized {
    /// The type of the items.
    type Item;

    /// Runs `work`: `consumer` gets all items, batch by batch. When this returns, everything that began has
    /// ended.
    #[doc(hidden)]
    fn run<Q, R, C>(
        work: Loop<'_, Self, Q>,
        consumer: &C,
        on_interrupt: OnInterrupt<'_>,
    ) -> Result<(), LoopError<C::Error>>
    where
        Q: Step<Self::Item, Out = R>,
        C: Consumer<R>;

    /// The results, in the order of the items.
    #[doc(hidden)]
    fn collect<Q, R>(work: Loop<'_, Self, Q>) -> Vec<R>
    where
        Q: Step<Self::Item, Out = R>,
        R: Send;

    /// The results in the order of the items, if none is an error.
    #[doc(hidden)]
    fn try_collect<Q, T, E>(work: Loop<'_, Self, Q>) -> Result<Vec<T>, LoopError<E>>
    where
        Q: Step<Self::Item, Out = Result<T, E>>,
        T: Send,
        E: Send;

    /// Folds parts of the items, whose bounds do not depend on the number of threads, and combines the
    /// results in a tree.
    #[doc(hidden)]
    fn try_fold<Q, R, A, E, I, F, C>(
        work: Loop<'_, Self, Q>,
        identity: I,
        fold: F,
        combine: C,
    ) -> Result<A, LoopError<E>>
    where
        Q: Step<Self::Item, Out = R>,
        A: Send,
        E: Send,
        I: Fn() -> A + Sync,
        F: Fn(A, R) -> Result<A, E> + Sync,
        C: Fn(A, A) -> A + Sync;

    /// Combines numbers with `op`. `None` where there are no items.
    #[doc(hidden)]
    fn fold_numbers<Q, R, N, F>(work: Loop<'_, Self, Q>, identity: N, op: F) -> Option<N>
    where
        Q: Step<Self::Item, Out = R>,
        R: NumberRef<Number = N>,
        N: Number,
        F: Fn(N, N) -> N + Copy + Sync;
}

/// Consecutive items that one participant has claimed. It gives the result of the loop's step for each of
/// them.
pub trait Batch: Sized {
    /// The type of the results.
    type Out;

    /// The numbers of its items.
    fn items(&self) -> Range<usize>;

    /// Calls `f` with the result for each item, in order.
    fn for_each(self, f: impl FnMut(Self::Out));

    /// Calls `f` with the result for each item, in order, until one call returns an error. A batch may stop
    /// early where an item before it has failed.
    fn try_for_each<E>(self, f: impl FnMut(Self::Out) -> Result<(), E>) -> Result<(), AtItem<E>>;
}

/// The end of a loop: uses results of type `T`, batch by batch, on several threads at the same time.
pub trait Consumer<T>: Sync {
    /// The error that ends the loop.
    type Error: Send;

    /// Uses the results of one batch.
    fn consume(&self, batch: impl Batch<Out = T>) -> Result<(), AtItem<Self::Error>>;
}
