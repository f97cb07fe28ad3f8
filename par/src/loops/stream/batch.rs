//! A batch of items of a stream.

use crate::{
    Step,
    loops::{
        control::{Position, Surroundings},
        error::AtItem,
        producer::Batch,
    },
};
use std::{cell::Cell, collections::VecDeque, ops::Range};

/// Consecutive items that a participant has taken from the iterator.
pub(super) struct StreamBatch<'r, 's, T, Q: Step<T> + 's> {
    first: usize,
    items: &'r mut VecDeque<T>,
    surroundings: Surroundings<'r, 's, T, Q>,
}

impl<'r, 's, T, Q: Step<T>> StreamBatch<'r, 's, T, Q> {
    #[inline]
    pub(super) fn new(
        first: usize,
        items: &'r mut VecDeque<T>,
        surroundings: Surroundings<'r, 's, T, Q>,
    ) -> Self {
        Self { first, items, surroundings }
    }

    /// The number of the item in work.
    pub(super) fn at(&self) -> &'r Cell<usize> {
        self.surroundings.at
    }
}

impl<T, Q: Step<T>> Batch for StreamBatch<'_, '_, T, Q> {
    type Out = Q::Out;

    fn items(&self) -> Range<usize> {
        self.first..self.first + self.items.len()
    }

    #[inline]
    fn for_each(self, mut f: impl FnMut(Q::Out)) {
        let Surroundings { step, scratch, at, .. } = self.surroundings;
        let mut position = Position { at, item: self.first };
        // One by one: after a panic the remaining items stay in the queue.
        while let Some(item) = self.items.pop_front() {
            f(step.apply(scratch, item));
            position.item += 1;
        }
    }

    #[inline]
    fn try_for_each<E>(self, mut f: impl FnMut(Q::Out) -> Result<(), E>) -> Result<(), AtItem<E>> {
        let Surroundings { step, scratch, at, .. } = self.surroundings;
        let mut position = Position { at, item: self.first };
        while let Some(item) = self.items.pop_front() {
            f(step.apply(scratch, item)).map_err(|error| (position.item, error))?;
            position.item += 1;
        }
        Ok(())
    }
}
