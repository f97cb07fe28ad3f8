//! The part of an index space that one call of a kernel works on.

use anabranch_grid::{Chunk, GridBox, Points};
use anabranch_par::scratch::{self, Scope};
use std::ops::Range;

/// The part of the index space of a task that one call of its kernel works on.
#[derive(Clone, Copy, Debug)]
pub struct Tile<const K: usize> {
    chunk: Chunk<K>,
    replay: u64,
}

impl<const K: usize> Tile<K> {
    pub(crate) fn new(chunk: Chunk<K>) -> Self {
        Self { chunk, replay: 0 }
    }

    /// The same tile in a replay of this number.
    #[inline]
    pub(crate) fn in_replay(self, replay: u64) -> Self {
        Self { replay, ..self }
    }

    /// The number of the [replay](crate::Sequence::replay), from 0. It is 0 for a task that is not replayed.
    pub fn replay(&self) -> u64 {
        self.replay
    }

    /// The points of this tile.
    #[inline]
    pub fn range(&self) -> GridBox<K> {
        self.chunk.range
    }

    /// The whole index space of the task.
    pub fn global(&self) -> GridBox<K> {
        self.chunk.global
    }

    /// The points of this tile one by one, in row-major order, as indices.
    ///
    /// Write `tile.points().for_each(…)`, or a loop over [`rows`](Tile::<2>::rows) with a loop over
    /// [`cols`](Tile::<2>::cols) inside, where speed matters: the compiler then moves the checks of `view[p]`
    /// out of the inner loop and uses vector instructions, if the regions are boxes or those of
    /// `neighborhood(…).along_axes()`. In a `for` loop over points of more than one dimension it does not,
    /// because it sees no inner loop. Nor does it if the loop calls a function that is not inlined: mark
    /// functions that access elements `#[inline(always)]`.
    #[inline]
    pub fn points(&self) -> impl Iterator<Item = [usize; K]> + use<K> {
        let points: Points<K> = self.chunk.range.points();
        points.map(|p| p.0)
    }

    /// The coordinates of this tile along one dimension.
    ///
    /// # Panics
    /// If the index space has no such dimension.
    #[inline]
    pub fn along(&self, dim: usize) -> Range<usize> {
        self.chunk.range.min()[dim]..self.chunk.range.max()[dim]
    }

    /// Opens a scope on the scratch memory of the thread that works on this tile.
    ///
    /// No slice of this memory outlives the scope. The memory stays with the thread, and the next tile uses
    /// it again.
    pub fn scratch<R>(&self, f: impl for<'s> FnOnce(&mut Scope<'s>) -> R) -> R {
        scratch::scope(f)
    }
}

impl Tile<2> {
    /// The row indices of this tile.
    #[inline]
    pub fn rows(&self) -> Range<usize> {
        self.along(0)
    }

    /// The column indices of this tile.
    #[inline]
    pub fn cols(&self) -> Range<usize> {
        self.along(1)
    }
}
