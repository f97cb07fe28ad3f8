//! Reductions. Their shape is a tree that depends on the length and the chunk size alone: items are folded one after the
//! other in leaves, and neighbouring leaves are combined pairwise. So the bits of the result do not depend on threads
//! or schedules, also where the operator does not commute, or is not quite associative, like the addition of floats.

use super::{Loop, LoopError, Source, Step, output::Output};
use crate::{Consecutive, Panic, current, join};
use parking_lot::Mutex;
use std::{
    convert::Infallible,
    mem::forget,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering::*},
};

/// Where `op` panicked: the first leaf of what it was to combine on its right side.
struct Place<'p> {
    panicked: &'p AtomicUsize,
    leaf: usize,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.panicked.fetch_min(self.leaf, Relaxed);
    }
}

/// Combines neighbours, then neighbours of those, and so on. `first` is the number of the first of these leaves.
fn tree<T: Send>(
    values: &mut [Option<T>],
    first: usize,
    op: &(impl Fn(T, T) -> T + Sync),
    panicked: &AtomicUsize,
    alone: bool,
) -> Option<T> {
    match values {
        [] => None,
        [one] => one.take(),
        _ => {
            let half = values.len().next_power_of_two() / 2;
            let (left, right) = values.split_at_mut(half);
            let leaf = first + half;
            let mut left = || tree(left, first, op, panicked, alone);
            let mut right = || tree(right, leaf, op, panicked, alone);
            let (left, right) = if alone { (left(), right()) } else { join(left, right) };
            match (left, right) {
                (Some(left), Some(right)) => {
                    let place = Place { panicked, leaf };
                    let both = op(left, right);
                    forget(place);
                    Some(both)
                }
                (left, right) => left.or(right),
            }
        }
    }
}

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q> {
    /// Combines all items with `op`, which must be associative: the result for neighbours may take the place of both. `None`
    /// where there are no items.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let longest = ["a", "ccc", "bb"].par().map(|s| s.len()).reduce(usize::max);
    /// assert_eq!(longest, Some(3));
    /// let text = (0..5).par().map(|i| i.to_string()).reduce(|a, b| a + &b);
    /// assert_eq!(text.unwrap(), "01234"); // in order
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each). A panic of `op` counts as one of the item that it was called for.
    pub fn reduce<F>(self, op: F) -> Option<Q::Out>
    where
        Q::Out: Send,
        F: Fn(Q::Out, Q::Out) -> Q::Out + Sync,
    {
        let fold = |sum: Option<Q::Out>, item| {
            Some(match sum {
                Some(sum) => op(sum, item),
                None => item,
            })
        };
        let combine = |a: Option<Q::Out>, b: Option<Q::Out>| match (a, b) {
            (Some(a), Some(b)) => Some(op(a, b)),
            (a, b) => a.or(b),
        };
        self.fold(|| None, fold, combine)
    }

    /// Like [`reduce`](Self::reduce), beginning with `initial`, which enters the result exactly once, on the left, on any
    /// number of threads.
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
            Some(sum) => settings.in_mode(|| op(initial, sum)),
            None => initial,
        }
    }

    /// Folds the items of each chunk into an accumulator, and combines these. Every accumulator begins with `identity()`,
    /// which may enter the result any number of times, so it must change nothing: `combine(identity(), a)` is `a`.
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
        let result = self.try_fold(&identity, |sum, item| Ok::<_, Infallible>(fold(sum, item)), combine);
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
        if self.settings.unordered {
            return self.fold_unordered(identity, fold, combine);
        }
        let split = self.leaves();
        let mut leaves: Vec<Option<A>> = Vec::new();
        let output = Output::behind(&mut leaves, split.chunks());
        self.drive_by(split, |units, mut run| {
            // SAFETY: runs are disjoint, and so are their units.
            let mut writer = unsafe { output.writer(units.clone()) };
            for unit in units {
                let part = run.split_off(split.chunk(unit).end);
                let mut sum = Some(identity());
                part.try_each(|_, item| {
                    sum = Some(fold(sum.take().expect("there before each item"), item)?);
                    Ok(())
                })?;
                writer.push(sum);
            }
            Ok(())
        })?;
        output.finish();
        // SAFETY: all of them are written.
        unsafe { leaves.set_len(split.chunks()) };
        Ok(self.combine(&split, &mut leaves, &combine, false)?.unwrap_or_else(identity))
    }

    /// Combines the leaves, on the pool that the loop runs on or on the calling thread alone.
    pub(super) fn combine<A: Send, E>(
        &self,
        split: &Consecutive,
        leaves: &mut [Option<A>],
        op: &(impl Fn(A, A) -> A + Sync),
        alone: bool,
    ) -> Result<Option<A>, LoopError<E>> {
        let panicked = AtomicUsize::new(usize::MAX);
        let combined = catch_unwind(AssertUnwindSafe(|| {
            self.with_pool(|pool| {
                let _installed = current::install(pool);
                self.settings.in_mode(|| tree(leaves, 0, op, &panicked, alone || self.settings.is_serial()))
            })
        }));
        combined.map_err(|payload| {
            let leaf = panicked.into_inner();
            LoopError::Panic(Panic::of_item(split.chunk(leaf).start, payload))
        })
    }

    /// An accumulator for each run, combined as they come.
    fn fold_unordered<A, E, I, F, C>(self, identity: I, fold: F, combine: C) -> Result<A, LoopError<E>>
    where
        A: Send,
        E: Send,
        I: Fn() -> A + Sync,
        F: Fn(A, Q::Out) -> Result<A, E> + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        let total = Mutex::new(None);
        self.drive(|_, run| {
            let mut sum = Some(identity());
            run.try_each(|_, item| {
                sum = Some(fold(sum.take().expect("there before each item"), item)?);
                Ok(())
            })?;
            let mut mine = sum.expect("there after each item");
            loop {
                let mut total = total.lock();
                let Some(others) = total.take() else {
                    *total = Some(mine);
                    break;
                };
                // Not under the lock: it may take long.
                drop(total);
                mine = combine(others, mine);
            }
            Ok(())
        })?;
        Ok(total.into_inner().unwrap_or_else(identity))
    }
}

impl<S, Q, T, E> Loop<'_, S, Q>
where
    S: Source,
    Q: Step<S::Item, Out = Result<T, E>>,
    T: Send,
    E: Send,
{
    /// Combines all results with `op`, if none is an error.
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_reduce<F: Fn(T, T) -> T + Sync>(self, op: F) -> Result<Option<T>, LoopError<E>> {
        let fold = |sum: Option<T>, item: Result<T, E>| {
            item.map(|item| {
                Some(match sum {
                    Some(sum) => op(sum, item),
                    None => item,
                })
            })
        };
        let combine = |a: Option<T>, b: Option<T>| match (a, b) {
            (Some(a), Some(b)) => Some(op(a, b)),
            (a, b) => a.or(b),
        };
        self.try_fold(|| None, fold, combine)
    }
}
