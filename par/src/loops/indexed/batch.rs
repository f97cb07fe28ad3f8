//! A batch of items of a source.

use crate::{
    Source, Step,
    loops::{
        control::{Position, Surroundings},
        error::AtItem,
        producer::Batch,
    },
};
use std::{ops::Range, sync::atomic::Ordering::*};

/// How many items are done between two looks whether an earlier one has failed.
const BLOCK: usize = 16;

/// Consecutive items that a participant has claimed: the right to do each of them, once.
pub(in crate::loops) struct SourceBatch<'r, 's, S: Source, Q: Step<S::Item> + 's> {
    source: &'s S,
    items: Range<usize>,
    surroundings: Surroundings<'r, 's, S::Item, Q>,
}

impl<'r, 's, S: Source, Q: Step<S::Item>> SourceBatch<'r, 's, S, Q> {
    #[inline]
    pub(super) fn new(
        source: &'s S,
        items: Range<usize>,
        surroundings: Surroundings<'r, 's, S::Item, Q>,
    ) -> Self {
        Self { source, items, surroundings }
    }

    /// Splits off the items before item `end`.
    #[inline]
    pub(super) fn split_off(&mut self, end: usize) -> SourceBatch<'_, 's, S, Q> {
        let end = end.clamp(self.items.start, self.items.end);
        let items = self.items.start..end;
        self.items.start = end;
        let Surroundings { step, ref mut scratch, at, failed } = self.surroundings;
        at.set(items.start);
        SourceBatch { source: self.source, items, surroundings: Surroundings { step, scratch, at, failed } }
    }

    /// Folds the items in `L` lanes, item k in lane k % L, which the compiler turns into vector instructions.
    #[inline]
    pub(super) fn fold_lanes<A: Copy, const L: usize>(self, start: A, f: impl Fn(A, Q::Out) -> A) -> [A; L] {
        let Self { source, items, surroundings: Surroundings { step, scratch, at, .. } } = self;
        let mut lanes = [start; L];
        let mut position = Position { at, item: items.start };
        let first = items.start;
        for row in rows(source, items) {
            let mut cursor = source.cursor(row.start);
            // Whole blocks begin with lane 0.
            let blocks = row.end.min((row.start - first).next_multiple_of(L) + first);
            let rest = row.end - (row.end - blocks) % L;
            // Macros, because both change the same variables.
            macro_rules! fold {
                ($items:expr) => {
                    for item in $items {
                        position.item = item;
                        // SAFETY: the item is in the source, and only this batch has it.
                        let value = unsafe { source.next(&mut cursor) };
                        let lane = &mut lanes[(item - first) % L];
                        *lane = f(*lane, step.apply(scratch, value));
                    }
                };
            }
            macro_rules! fold_blocks {
                ($unit:literal) => {
                    for block in (blocks..rest).step_by(L) {
                        let values: [Q::Out; L] = std::array::from_fn(|k| {
                            position.item = block + k;
                            // SAFETY: the item is in the source, and only this batch has it.
                            let value = unsafe { source.step::<$unit>(&mut cursor) };
                            step.apply(scratch, value)
                        });
                        for (lane, value) in lanes.iter_mut().zip(values) {
                            *lane = f(*lane, value);
                        }
                    }
                };
            }
            fold!(row.start..blocks);
            if source.is_unit(&cursor) {
                fold_blocks!(true);
            } else {
                fold_blocks!(false);
            }
            fold!(rest..row.end);
        }
        lanes
    }
}

impl<'s, S: Source, Q: Step<S::Item>> Batch for SourceBatch<'_, 's, S, Q> {
    type Out = Q::Out;

    #[inline]
    fn items(&self) -> Range<usize> {
        self.items.clone()
    }

    #[inline]
    fn for_each(self, mut f: impl FnMut(Q::Out)) {
        let Self { source, items, surroundings: Surroundings { step, scratch, at, .. } } = self;
        let mut position = Position { at, item: items.start };
        for row in rows(source, items) {
            let mut cursor = source.cursor(row.start);
            for item in row {
                position.item = item;
                // SAFETY: the item is in the source, and only this batch has it.
                let value = unsafe { source.next(&mut cursor) };
                f(step.apply(scratch, value));
            }
        }
    }

    /// Stops early where an item before the batch has failed, because a batch may be long.
    #[inline]
    fn try_for_each<E>(self, mut f: impl FnMut(Q::Out) -> Result<(), E>) -> Result<(), AtItem<E>> {
        let Self { source, items, surroundings: Surroundings { step, scratch, at, failed } } = self;
        let mut position = Position { at, item: items.start };
        for row in rows(source, items) {
            let mut cursor = source.cursor(row.start);
            let mut begin = row.start;
            // Relaxed: a late look only costs work.
            while begin < row.end && failed.load(Relaxed) >= begin {
                let block = begin..begin + BLOCK.min(row.end - begin);
                begin = block.end;
                for item in block {
                    position.item = item;
                    // SAFETY: the item is in the source, and only this batch has it.
                    let value = unsafe { source.next(&mut cursor) };
                    f(step.apply(scratch, value)).map_err(|error| (item, error))?;
                }
            }
        }
        Ok(())
    }
}

/// `items`, row by row: see [`Source::row_end`].
#[inline]
fn rows<S: Source>(source: &S, items: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = items.start;
    std::iter::from_fn(move || {
        let row = start..source.row_end(start).min(items.end);
        start = row.end;
        (!row.is_empty()).then_some(row)
    })
}
