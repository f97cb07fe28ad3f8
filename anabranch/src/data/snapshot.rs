//! Snapshots: copies of a buffer, or of a box of it, at one point of the stream of tasks.

use super::{
    element::{Element, Rank, Shape},
    view::{ReadView, line_starts},
};
use anabranch_grid::{Extent, GridBox, RegionShape};
use ndarray::Array;
use std::ops::Index;

/// The contents of a buffer, or of a box of it, at one point of the stream of tasks: the result of a
/// [fence](crate::Runtime::fence) or a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<T, const D: usize> {
    range: GridBox<D>,
    /// The extent of the range, or of the whole buffer if that has no element: an empty box does not know its
    /// extent.
    extent: Extent<D>,
    elements: Vec<T>,
}

impl<T: Element, const D: usize> Snapshot<T, D> {
    /// Copies the elements that the view of a box shows.
    pub(crate) fn of(view: &ReadView<T, D, impl RegionShape<D>>) -> Self {
        let range = view.region().bounding_box();
        let extent = if view.extent().is_empty() { view.extent() } else { range.extent() };
        Self { range, extent, elements: copy_box(view, &range) }
    }

    /// The part of the buffer that was copied.
    pub fn range(&self) -> GridBox<D> {
        self.range
    }

    /// The number of elements along each dimension.
    pub fn extent(&self) -> Extent<D> {
        self.extent
    }

    /// The elements in row-major order.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// The elements in row-major order.
    pub fn into_vec(self) -> Vec<T> {
        self.elements
    }

    /// The elements as an `ndarray` array; its index `[0, …]` is the first point of [`range`](Self::range).
    pub fn into_array(self) -> Array<T, <Rank as Shape<D>>::Dim>
    where
        Rank: Shape<D>,
    {
        let shape = Rank::shape(self.extent.0);
        Array::from_shape_vec(shape, self.elements).expect("as many elements as the box has points")
    }
}

/// Indexed by the coordinates of the buffer, also if the snapshot is a part of it.
impl<T, const D: usize> Index<[usize; D]> for Snapshot<T, D> {
    type Output = T;

    /// # Panics
    /// If the point is not in the snapshot.
    fn index(&self, point: [usize; D]) -> &T {
        assert!(self.range.contains_point(point), "{point:?} is not in the snapshot of {}", self.range);
        let extent = self.range.extent();
        let index = (0..D).fold(0, |index, d| index * extent[d] + point[d] - self.range.min()[d]);
        &self.elements[index]
    }
}

/// Copies the elements of a box, row by row.
fn copy_box<T: Element, const D: usize>(
    view: &ReadView<T, D, impl RegionShape<D>>,
    range: &GridBox<D>,
) -> Vec<T> {
    if let Some(elements) = view.as_slice() {
        return elements.to_vec();
    }
    let mut elements = Vec::with_capacity(range.len());
    for start in line_starts(range) {
        elements.extend_from_slice(view.run(start.0));
    }
    elements
}
