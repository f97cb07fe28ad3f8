//! Index spaces, and the kinds of tasks by how often they run.

use anabranch_grid::{Extent, GridBox};
use std::ops::Range;

/// An index space, as [`over`](super::NewTask::over) takes it: an extent (`[rows, cols]`), a range or a box.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index space",
    label = "not an index space",
    note = "an index space is an extent such as `[rows, cols]`, of up to three dimensions, a range such as `0..n`, or a `GridBox`"
)]
pub trait IndexSpace<const K: usize> {
    /// The points of the index space.
    fn index_space(self) -> GridBox<K>;
}

impl<const K: usize> IndexSpace<K> for [usize; K] {
    fn index_space(self) -> GridBox<K> {
        GridBox::full(self)
    }
}

impl<const K: usize> IndexSpace<K> for Extent<K> {
    fn index_space(self) -> GridBox<K> {
        GridBox::full(self)
    }
}

impl<const K: usize> IndexSpace<K> for GridBox<K> {
    fn index_space(self) -> GridBox<K> {
        self
    }
}

impl IndexSpace<1> for Range<usize> {
    fn index_space(self) -> GridBox<1> {
        GridBox::new(self.start, self.end)
    }
}

/// A task over an index space: a kernel, or a host task with a part for each node.
#[derive(Debug)]
pub struct Over;

/// A host task that runs once on every node.
#[derive(Debug)]
pub struct Collective;

/// A batch: a host task for each point of an index space.
#[derive(Debug)]
pub struct Each;

/// A host task that runs once.
#[derive(Debug)]
pub struct Once;
