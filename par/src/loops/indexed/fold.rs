//! Reductions of sources: leaves in an array, combined in a tree when all of them are there.

use crate::{
    Consecutive, Loop, LoopError, Panic, Source, Step, current, join,
    loops::{output::Output, producer::Batch},
};
use parking_lot::Mutex;
use std::{
    mem::forget,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering::*},
};

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q> {
    /// Folds each leaf, and combines neighbours.
    pub(super) fn fold_in_tree<A, E, I, F, C>(
        self,
        identity: I,
        fold: F,
        combine: C,
    ) -> Result<A, LoopError<E>>
    where
        A: Send,
        E: Send,
        I: Fn() -> A + Sync,
        F: Fn(A, Q::Out) -> Result<A, E> + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        let split = self.settings.leaves(self.len());
        let mut leaves: Vec<Option<A>> = Vec::new();
        let output = Output::behind(&mut leaves, split.chunks());
        self.run_chunks(split, None, |chunks, mut batch| {
            // SAFETY: batches are disjoint, and so are their chunks.
            let mut writer = unsafe { output.writer(chunks.clone()) };
            for chunk in chunks {
                let leaf = batch.split_off(split.chunk(chunk).end);
                let mut sum = Some(identity());
                leaf.try_for_each(|item| {
                    sum = Some(fold(sum.take().expect("there before each item"), item)?);
                    Ok(())
                })?;
                writer.push(sum);
            }
            Ok(())
        })?;
        output.finish();
        // SAFETY: every leaf was written.
        unsafe { leaves.set_len(split.chunks()) };
        Ok(self.combine(&split, &mut leaves, &combine, false)?.unwrap_or_else(identity))
    }

    /// Combines the leaves on the loop's pool, or on the calling thread if it is `alone`.
    pub(super) fn combine<A: Send, E>(
        &self,
        split: &Consecutive,
        leaves: &mut [Option<A>],
        op: &(impl Fn(A, A) -> A + Sync),
        alone: bool,
    ) -> Result<Option<A>, LoopError<E>> {
        let panicked = AtomicUsize::new(usize::MAX);
        let combined = catch_unwind(AssertUnwindSafe(|| {
            self.settings.with_pool(|pool| {
                let _installed = current::install(pool);
                let alone = alone || self.settings.is_serial();
                self.settings.in_denormal_mode(|| tree(leaves, 0, op, &panicked, alone))
            })
        }));
        combined.map_err(|payload| {
            let leaf = panicked.into_inner();
            LoopError::Panic(Panic::of_item(split.chunk(leaf).start, payload))
        })
    }

    /// Folds each batch, and combines the results as they arrive.
    pub(super) fn fold_unordered<A, E, I, F, C>(
        self,
        identity: I,
        fold: F,
        combine: C,
    ) -> Result<A, LoopError<E>>
    where
        A: Send,
        E: Send,
        I: Fn() -> A + Sync,
        F: Fn(A, Q::Out) -> Result<A, E> + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        let total = Mutex::new(None);
        self.run_chunks(self.split(), None, |_, batch| {
            let mut sum = Some(identity());
            batch.try_for_each(|item| {
                sum = Some(fold(sum.take().expect("there before each item"), item)?);
                Ok(())
            })?;
            let mut mine = sum.expect("there after each item");
            loop {
                let mut total = total.lock();
                let Some(former) = total.take() else {
                    *total = Some(mine);
                    break;
                };
                // Combining may take long, so the lock is released first.
                drop(total);
                mine = combine(former, mine);
            }
            Ok(())
        })?;
        Ok(total.into_inner().unwrap_or_else(identity))
    }
}

/// Records where `op` panicked: the first leaf of its right operand.
struct Place<'p> {
    panicked: &'p AtomicUsize,
    leaf: usize,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.panicked.fetch_min(self.leaf, Relaxed);
    }
}

/// Combines neighbours, then neighbours of those, and so on. `first` is the number of the first of these
/// leaves.
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
