//! Reductions of streams.
//!
//! Batches of a fixed size are the leaves of a tree. It has the shape of the tree of a loop over a source
//! with chunks of that size. Neighbours are combined as soon as both are there, so only few partial results
//! are kept, however long the stream is.

use super::{Stream, batch::StreamBatch};
use crate::{LoopError, Step, loops::producer::Batch};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The number of items in a leaf, if the program does not choose it. It is fixed, because the shape of the
/// tree follows from it.
const LEAF: usize = 64;

impl<I, Q> Stream<'_, I, Q>
where
    I: Iterator<Item: Send> + Send,
    Q: Step<I::Item>,
{
    /// Folds each batch, and combines neighbours.
    pub(super) fn fold_batches<A, E, N, F, C>(
        self,
        identity: N,
        fold: F,
        combine: C,
    ) -> Result<A, LoopError<E>>
    where
        A: Send,
        E: Send,
        N: Fn() -> A + Sync,
        F: Fn(A, Q::Out) -> Result<A, E> + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        let size = self.settings.chunk_size().unwrap_or(LEAF);
        let tree = Tree { parts: Mutex::default() };
        self.run_batches(Some(size), None, |batch: StreamBatch<'_, '_, I::Item, Q>| {
            let (leaf, at) = (batch.items().start / size, batch.at());
            let mut sum = Some(identity());
            batch.try_for_each(|item| {
                sum = Some(fold(sum.take().expect("there before each item"), item)?);
                Ok(())
            })?;
            let sum = sum.expect("there after each item");
            tree.add(leaf, sum, &combine, |leaf| at.set(leaf * size));
            Ok(())
        })?;
        Ok(tree.finish(&combine).unwrap_or_else(identity))
    }
}

/// A tree of an unknown number of leaves, which arrive in any order.
struct Tree<A> {
    /// The parts that wait for their neighbours: height and value, by the number of the first leaf.
    parts: Mutex<BTreeMap<usize, (u32, A)>>,
}

impl<A> Tree<A> {
    /// Adds a leaf, and combines the parts that are complete. Before each call of `combine` it calls `at`
    /// with the first leaf of the right operand.
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

    /// Combines the parts that remain when all leaves are there: they become smaller from left to right.
    fn finish(self, combine: &impl Fn(A, A) -> A) -> Option<A> {
        let parts = self.parts.into_inner().into_values().map(|(_, value)| value);
        parts.rev().reduce(|right, left| combine(left, right))
    }
}
