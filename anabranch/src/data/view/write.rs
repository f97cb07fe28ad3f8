//! Views of regions that a task overwrites.

use super::{
    super::{
        bound::BoundBuffer,
        element::{Element, Rank, Shape},
    },
    raw::{Raw, line_starts},
};
use anabranch_grid::{Extent, OneBox, Region, RegionShape};
use ndarray::{ArrayViewMut, ShapeBuilder};
use std::{fmt, marker::PhantomData, ptr};

/// A region that a task declared to [write](crate::interface::TaskBuilder::write), as its kernel sees it.
///
/// The task must write all elements of the region, and cannot read them: before it runs, they are
/// unspecified. A task that reads elements before it writes them, or that writes only some of them, declares
/// an [update](crate::interface::TaskBuilder::update), whose view can also be read and indexed. Slices and
/// arrays that this view gives are for writing, too. No type forbids to read them; the [checked
/// mode](crate::Builder::checked) notices it.
///
/// Indices are those of the buffer. Access to a point outside the declared region ends the task with an error
/// that names the buffer, the point and the region.
///
/// `S` is the [shape](anabranch_grid::RangeMapper::Shape) that the range mapper promises: see
/// [`ReadView`](super::ReadView).
///
/// ```
/// use anabranch::prelude::*;
///
/// let rt = Runtime::new()?;
/// let table = rt.buffer::<u32, 2>([3, 4]);
/// rt.task("fill").over([3, 4]).write(&table, one_to_one()).kernel(|tile, (table,)| {
///     tile.points().for_each(|[y, x]| table.set([y, x], (10 * y + x) as u32));
/// })?;
/// assert_eq!(rt.fence(&table)?.wait()?[[2, 3]], 23);
/// # Ok::<(), Error>(())
/// ```
pub struct WriteView<'v, T, const D: usize, S = OneBox<D>> {
    pub(super) raw: Raw<T, D, S>,
    /// Ties the view to one call. Views of different calls have different types, so that they cannot be
    /// swapped.
    _call: PhantomData<&'v mut [T]>,
}

// SAFETY: a view is a unique slice of elements, which are Send.
unsafe impl<T: Element, const D: usize, S: RegionShape<D>> Send for WriteView<'_, T, D, S> {}
// SAFETY: as above, and shared access only reads.
unsafe impl<T: Element, const D: usize, S: RegionShape<D>> Sync for WriteView<'_, T, D, S> {}

impl<T: Element, const D: usize, S: RegionShape<D>> WriteView<'_, T, D, S> {
    /// # Safety
    /// As long as the view exists, `bound` lives and has its memory, and nothing else reads or writes a point
    /// of the region of this chunk. The region lies inside the buffer, and has the shape `S`.
    #[inline(always)]
    pub(crate) unsafe fn new(bound: &BoundBuffer<T, D>, chunk: usize) -> Self {
        // SAFETY: the caller promises it.
        Self { raw: unsafe { Raw::new(bound, chunk) }, _call: PhantomData }
    }

    /// The view for one call.
    #[inline]
    pub(crate) fn for_call<'v>(&'v mut self) -> &'v mut WriteView<'v, T, D, S> {
        // SAFETY: only the lifetime parameter changes, which no field's layout depends on. It shrinks behind
        // a unique reference. A caller could put another view there, which lives as long as 'v only, but
        // nothing looks at this view after the call, and it has no destructor.
        unsafe { &mut *ptr::from_mut(self).cast() }
    }

    /// The declared region, for this chunk.
    pub fn region(&self) -> &Region<D> {
        self.raw.region()
    }

    /// The extent of the whole buffer.
    pub fn extent(&self) -> Extent<D> {
        self.raw.extent()
    }

    /// Writes the element at `point`.
    #[inline]
    pub fn set(&mut self, point: [usize; D], value: T) {
        self.raw.check(point);
        // SAFETY: the point is in the region, of which this view, borrowed meanwhile, is the only user.
        unsafe { *self.raw.at(point) = value }
    }

    /// The elements from `point` to the end of its box along the last dimension.
    #[inline]
    pub fn run_mut(&mut self, point: [usize; D]) -> &mut [T] {
        let (start, len) = self.raw.run_at(point);
        // SAFETY: these points lie in one box of the region, one after the other in memory; this view is
        // their only user (rules 1 to 5 above) and is borrowed as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// The elements of the region as one slice, if they are contiguous in memory: whole rows, for example.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        // SAFETY: all of these points are in the region, of which this view is the only user.
        self.raw.contiguous().map(|(start, len)| unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// The region as an `ndarray` view, whose index `[0, …]` is the first point of the region. The region
    /// must be one box: any other ends the task.
    pub fn as_array_mut(&mut self) -> ArrayViewMut<'_, T, <Rank as Shape<D>>::Dim>
    where
        Rank: Shape<D>,
    {
        let (first, extent) = self.raw.single();
        let shape = Rank::shape(extent.0).strides(Rank::shape(self.raw.strides()));
        // SAFETY: shape and strides address points of the box, row by row in the buffer, each once; this view
        // is their only user and is borrowed as long as the array view lives.
        unsafe { ArrayViewMut::from_shape_ptr(shape, self.raw.at(first.0)) }
    }

    /// Sets every element of the region.
    pub fn fill(&mut self, value: T) {
        for range in self.raw.region().clone().boxes() {
            for start in line_starts(range) {
                self.run_mut(start.0).fill(value);
            }
        }
    }

    /// Sets every element of the region to the value of `f` at its point.
    pub fn fill_with(&mut self, mut f: impl FnMut([usize; D]) -> T) {
        for range in self.raw.region().clone().boxes() {
            for start in line_starts(range) {
                let mut point = start.0;
                for element in self.run_mut(start.0) {
                    *element = f(point);
                    point.iter_mut().last().into_iter().for_each(|i| *i += 1);
                }
            }
        }
    }
}

impl<T: Element, S: RegionShape<2>> WriteView<'_, T, 2, S> {
    /// The declared part of row `y`, from the first to the last declared column.
    #[inline]
    pub fn row_mut(&mut self, y: usize) -> &mut [T] {
        let (start, len) = self.raw.row(&[y]);
        // SAFETY: a row of one box of the region, of which this view, borrowed meanwhile, is the only user.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}

impl<T: Element, S: RegionShape<3>> WriteView<'_, T, 3, S> {
    /// The declared part of row `y` of plane `z`.
    #[inline]
    pub fn row_mut(&mut self, z: usize, y: usize) -> &mut [T] {
        let (start, len) = self.raw.row(&[z, y]);
        // SAFETY: a row of one box of the region, of which this view, borrowed meanwhile, is the only user.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}

impl<T: Element, const D: usize, S: RegionShape<D>> fmt::Debug for WriteView<'_, T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteView({} {})", self.raw.bound().label(), self.raw.region())
    }
}
