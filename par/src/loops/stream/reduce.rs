//! Reductions of streams. Batches of a fixed size are the leaves of a tree, as in the reductions of loops: the same one as of
//! a loop with chunks of that size. Neighbours are combined as soon as both have come, so that few parts wait at a time,
//! however long the stream is.

use super::{Step, Stream};
use crate::loops::LoopError;
use parking_lot::Mutex;
use std::{cell::Cell, collections::BTreeMap, convert::Infallible};

/// How many items are folded before they are combined, where nothing else is said. Always the same: the tree depends on it.
const LEAF: usize = 64;

/// A tree whose leaves come in any order. Nobody knows how many there will be.
struct Tree<A> {
    /// Parts that wait for their neighbours: height and value, by the number of the first leaf.
    parts: Mutex<BTreeMap<usize, (u32, A)>>,
}

impl<A> Tree<A> {
    /// Puts a leaf in, and combines what is complete. `at` is told where what is combined meets.
    fn add(&self, leaf: usize, value: A, combine: &impl Fn(A, A) -> A, at: impl Fn(usize)) {
        let (mut start, mut value) = (leaf, value);
        for height in 0.. {
            let sibling = start ^ (1 << height);
            let mut parts = self.parts.lock();
            if parts.get(&sibling).is_none_or(|(complete, _)| *complete != height) {
                parts.insert(start, (height, value));
                return;
            }
            let (_, other) = parts.remove(&sibling).expect("found just now");
            drop(parts);
            at(start.max(sibling));
            value = if sibling < start { combine(other, value) } else { combine(value, other) };
            start = start.min(sibling);
        }
    }

    /// Combines what is left when all leaves have come: parts that become smaller from left to right.
    fn finish(self, combine: &impl Fn(A, A) -> A) -> Option<A> {
        let parts = self.parts.into_inner().into_values().map(|(_, value)| value);
        parts.rev().reduce(|right, left| combine(left, right))
    }
}

/// `op` where there may be nothing yet.
fn optional<T>(op: &impl Fn(T, T) -> T) -> impl Fn(Option<T>, Option<T>) -> Option<T> + '_ {
    |a, b| match (a, b) {
        (Some(a), Some(b)) => Some(op(a, b)),
        (a, b) => a.or(b),
    }
}

impl<I, Q> Stream<'_, I, Q>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item>,
{
    /// Combines all items with `op`, which must be associative: the result for neighbours may take the place of both. `None`
    /// where there are no items. The result is the same on any number of threads, bit for bit.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
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
        let combine = optional(&op);
        self.fold(|| None, |sum, item| combine(sum, Some(item)), &combine)
    }

    /// Folds the items of each batch into an accumulator, and combines these. Every accumulator begins with `identity()`,
    /// which may enter the result any number of times, so it must change nothing: `combine(identity(), a)` is `a`.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let text = "to be or not to be";
    /// let longest = text.split(' ').par_stream().fold(|| 0, |most, word| most.max(word.len()), usize::max);
    /// assert_eq!(longest, 3);
    /// ```
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    pub fn fold<A, N, F, C>(self, identity: N, fold: F, combine: C) -> A
    where
        A: Send,
        N: Fn() -> A + Sync,
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
    pub fn try_fold<A, E, N, F, C>(self, identity: N, fold: F, combine: C) -> Result<A, LoopError<E>>
    where
        A: Send,
        E: Send,
        N: Fn() -> A + Sync,
        F: Fn(A, Q::Out) -> Result<A, E> + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        let size = self.settings.chunk_size().unwrap_or(LEAF);
        let tree = Tree { parts: Mutex::default() };
        let body = |batch: super::drive::Batch<'_, '_, I::Item, Q>| {
            let (leaf, at): (usize, &Cell<usize>) = (batch.first() / size, batch.at);
            let mut sum = Some(identity());
            batch.try_each(|item| {
                sum = Some(fold(sum.take().expect("there before each item"), item)?);
                Ok(())
            })?;
            let sum = sum.expect("there after each item");
            tree.add(leaf, sum, &combine, |leaf| at.set(leaf * size));
            Ok(())
        };
        self.drive_by(Some(size), body, None)?;
        Ok(tree.finish(&combine).unwrap_or_else(identity))
    }
}

impl<I, Q, T, E> Stream<'_, I, Q>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item, Out = Result<T, E>>,
    T: Send,
    E: Send,
{
    /// Combines all results with `op`, if none is an error.
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_reduce<F: Fn(T, T) -> T + Sync>(self, op: F) -> Result<Option<T>, LoopError<E>> {
        let combine = optional(&op);
        self.try_fold(|| None, |sum, item: Result<T, E>| Ok(combine(sum, Some(item?))), &combine)
    }
}
