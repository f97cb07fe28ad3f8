//! Views of regions that a task reads.

use super::{
    super::{
        bound::BoundBuffer,
        element::{Element, Rank, Shape},
    },
    raw::Raw,
};
use crate::label::Label;
use anabranch_grid::{Extent, OneBox, Region, RegionShape};
use ndarray::{ArrayView, ShapeBuilder};
use std::{fmt, ops::Index, ptr};

/// A region that a task declared to [read](crate::interface::TaskBuilder::read), as its kernel sees it.
///
/// Indices are those of the buffer. Access to a point outside the declared region ends the task with an error
/// that names the buffer, the point and the region.
///
/// `S` is the [shape](anabranch_grid::RangeMapper::Shape) that the range mapper promises. A function for
/// views of all shapes is generic. Mark it `#[inline(always)]`, so that the compiler sees the loop and the
/// accesses together (see [`Tile::points`](crate::Tile::points)):
///
/// ```
/// use anabranch::prelude::*;
///
/// #[inline(always)]
/// fn neighbors<S: RegionShape<2>>(u: &ReadView<f64, 2, S>, [y, x]: [usize; 2]) -> f64 {
///     u[[y - 1, x]] + u[[y + 1, x]] + u[[y, x - 1]] + u[[y, x + 1]]
/// }
/// # let rt = Runtime::new()?;
/// # let ones = anabranch::ndarray::Array2::<f64>::ones((6, 6));
/// # let (u, v) = (rt.buffer_from(&ones)?, rt.buffer_from(&ones)?);
/// let inside = GridBox::new([1, 1], [5, 5]);
/// let step = rt.task("step").over(inside).read(&u, neighborhood([1, 1]).along_axes()).write(&v, one_to_one());
/// step.kernel(|tile, (u, v)| tile.points().for_each(|p| v.set(p, neighbors(u, p) / 4.0)))?;
/// # assert_eq!(rt.fence(&v)?.wait()?[[4, 4]], 1.0);
/// # Ok::<(), Error>(())
/// ```
#[repr(transparent)]
pub struct ReadView<T, const D: usize, S = OneBox<D>> {
    raw: Raw<T, D, S>,
}

// SAFETY: a view is a shared slice of elements, which are Sync.
unsafe impl<T: Element, const D: usize, S: RegionShape<D>> Send for ReadView<T, D, S> {}
// SAFETY: as above.
unsafe impl<T: Element, const D: usize, S: RegionShape<D>> Sync for ReadView<T, D, S> {}

impl<T: Element, const D: usize, S: RegionShape<D>> ReadView<T, D, S> {
    /// # Safety
    /// As long as the view exists, `bound` lives and has its memory, and no other task or chunk writes a
    /// point of the region of this chunk. The region lies inside the buffer, and has the shape `S`.
    #[inline(always)]
    pub(crate) unsafe fn new(bound: &BoundBuffer<T, D>, chunk: usize) -> Self {
        // SAFETY: the caller promises it.
        Self { raw: unsafe { Raw::new(bound, chunk) } }
    }

    /// A view of the same region through the pointer of another view.
    #[inline]
    pub(super) fn of(raw: &Raw<T, D, S>) -> &Self {
        // SAFETY: a `ReadView` is a `Raw` and nothing else. The caller's view, which gives access to the
        // region, is borrowed as long as this one, so that nothing writes meanwhile.
        unsafe { &*ptr::from_ref(raw).cast() }
    }

    pub(crate) fn label(&self) -> Label {
        self.raw.bound().label()
    }

    /// The declared region, for this chunk.
    pub fn region(&self) -> &Region<D> {
        self.raw.region()
    }

    /// The extent of the whole buffer.
    pub fn extent(&self) -> Extent<D> {
        self.raw.extent()
    }

    /// The elements from `point` to the end of its box along the last dimension.
    #[inline]
    pub fn run(&self, point: [usize; D]) -> &[T] {
        let (start, len) = self.raw.run_at(point);
        // SAFETY: these points lie in one box of the region, one after the other in memory (rules 1 to 5
        // above).
        unsafe { std::slice::from_raw_parts(start, len) }
    }

    /// The elements of the region as one slice, if they are contiguous in memory: whole rows, for example.
    pub fn as_slice(&self) -> Option<&[T]> {
        // SAFETY: all of these points are in the region (rules 1 to 5 above).
        self.raw.contiguous().map(|(start, len)| unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The region as an `ndarray` view, whose index `[0, …]` is the first point of the region. The region
    /// must be one box: any other ends the task.
    pub fn as_array(&self) -> ArrayView<'_, T, <Rank as Shape<D>>::Dim>
    where
        Rank: Shape<D>,
    {
        let (first, extent) = self.raw.single();
        let shape = Rank::shape(extent.0).strides(Rank::shape(self.raw.strides()));
        // SAFETY: shape and strides address points of the box, row by row in the buffer (rules 1 to 5 above).
        unsafe { ArrayView::from_shape_ptr(shape, self.raw.at(first.0).cast_const()) }
    }
}

impl<T: Element, S: RegionShape<2>> ReadView<T, 2, S> {
    /// The declared part of row `y`, from the first to the last declared column.
    #[inline]
    pub fn row(&self, y: usize) -> &[T] {
        let (start, len) = self.raw.row(&[y]);
        // SAFETY: a row of one box of the region (rules 1 to 5 above).
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

impl<T: Element, S: RegionShape<3>> ReadView<T, 3, S> {
    /// The declared part of row `y` of plane `z`.
    #[inline]
    pub fn row(&self, z: usize, y: usize) -> &[T] {
        let (start, len) = self.raw.row(&[z, y]);
        // SAFETY: a row of one box of the region (rules 1 to 5 above).
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

impl<T: Element, const D: usize, S: RegionShape<D>> Index<[usize; D]> for ReadView<T, D, S> {
    type Output = T;

    #[inline]
    fn index(&self, point: [usize; D]) -> &T {
        self.raw.check(point);
        // SAFETY: the point is in the region (rules 1 to 5 above).
        unsafe { &*self.raw.at(point) }
    }
}

impl<T: Element, const D: usize, S: RegionShape<D>> fmt::Debug for ReadView<T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadView({} {})", self.raw.bound().label(), self.raw.region())
    }
}
