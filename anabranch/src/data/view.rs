//! Views: how a kernel or host function sees the regions that its task declared.
//!
//! Kernels touch the memory of buffers only through views. (The one exception is a reduction, which fills a whole buffer when
//! its kernel has ended.) Tasks share that memory and reach it through pointers. Five rules make this sound:
//!
//! 1. A view gives access to the points of its *region* and to no others. It checks every access, in release builds too.
//! 2. Two regions of one task never overlap if the task writes one of them: neither the regions of two chunks, nor the regions
//!    of two accesses of one chunk. The runtime checks this when the task is submitted.
//! 3. Two tasks never run at the same time if their accesses overlap and one of them writes. The dependencies of the task
//!    graph keep them apart, and the counters of the executor order their memory accesses.
//! 4. The memory is initialised when it is allocated, and elements are plain data: every read gives a value.
//! 5. A view exists for one call of a kernel or host function, which gets a *reference* to it. The function can neither keep
//!    nor copy the view, nor swap a writing view for the view of another call. The view points to a bound access, which
//!    holds the allocation and lives longer.

use super::{
    bound::BoundBuffer,
    element::{Element, Rank, Shape},
};
use crate::error::OutsideRegion;
use anabranch_grid::{Extent, GridBox, Point, Region};
use ndarray::{ArrayView, ArrayViewMut, ShapeBuilder};
use std::{
    fmt,
    marker::PhantomData,
    ops::{Index, IndexMut},
    ptr::{self, NonNull},
};

/// The part that both kinds of view have in common.
struct Raw<T, const D: usize> {
    start: *mut T,
    bound: NonNull<BoundBuffer<T, D>>,
    chunk: usize,
}

impl<T: Element, const D: usize> Raw<T, D> {
    /// # Safety
    /// `bound` lives, and has its memory, as long as this value.
    unsafe fn new(bound: &BoundBuffer<T, D>, chunk: usize) -> Self {
        Self { start: bound.start(), bound: NonNull::from_ref(bound), chunk }
    }

    #[inline]
    fn bound(&self) -> &BoundBuffer<T, D> {
        // SAFETY: see `new`.
        unsafe { self.bound.as_ref() }
    }

    #[inline]
    fn region(&self) -> &Region<D> {
        &self.bound().regions[self.chunk]
    }

    #[inline]
    fn extent(&self) -> Extent<D> {
        self.bound().extent()
    }

    /// The box of the region that contains `point`.
    #[inline]
    fn box_at(&self, point: [usize; D]) -> &GridBox<D> {
        match self.region().boxes().iter().find(|b| b.contains_point(Point(point))) {
            Some(range) => range,
            None => self.refuse(format_args!("{}", Point(point))),
        }
    }

    /// The pointer to a point that lies in the region.
    #[inline]
    fn at(&self, point: [usize; D]) -> *mut T {
        let extent = self.extent().0;
        let index = extent.iter().zip(point).fold(0, |index, (n, i)| index * n + i);
        // SAFETY: the region lies inside the buffer (checked at submission), and the allocation holds the whole buffer.
        unsafe { self.start.add(index) }
    }

    /// The elements from `point` to the end of its box along the last dimension, as pointer and length.
    #[inline]
    fn run_at(&self, point: [usize; D]) -> (*mut T, usize) {
        let range = self.box_at(point);
        let len = if D == 0 { 1 } else { range.max()[D - 1] - point[D - 1] };
        (self.at(point), len)
    }

    /// The row at these leading coordinates, of the first box that has such a row: its first column, and its length.
    #[inline]
    fn row(&self, leading: &[usize]) -> (*mut T, usize) {
        let has_row =
            |b: &&GridBox<D>| leading.iter().enumerate().all(|(d, &i)| b.min()[d] <= i && i < b.max()[d]);
        let Some(range) = self.region().boxes().iter().find(has_row) else {
            self.refuse(format_args!("row {leading:?}"))
        };
        let mut point = range.min().0;
        point[..leading.len()].copy_from_slice(leading);
        (self.at(point), range.max()[D - 1] - range.min()[D - 1])
    }

    /// The only box of the region; an empty box for an empty region.
    fn single(&self) -> GridBox<D> {
        match self.region().boxes() {
            [range] => *range,
            [] if D > 0 => GridBox::EMPTY,
            _ => self.refuse(format_args!("an array of all points of a region that is not one box")),
        }
    }

    /// The elements of the region, if they are contiguous in memory.
    fn contiguous(&self) -> Option<(*mut T, usize)> {
        let range = match self.region().boxes() {
            [range] => range,
            [] => return Some((self.start, 0)),
            _ => return None,
        };
        // The box must be as wide as the buffer in all dimensions after the first in which it has more than one point.
        let first = (0..D).find(|&d| range.extent()[d] > 1).unwrap_or(D);
        let whole = (first + 1..D).all(|d| range.extent()[d] == self.extent()[d]);
        whole.then(|| (self.at(range.min().0), range.len()))
    }

    fn strides(&self) -> [usize; D] {
        let mut strides = [1; D];
        for dim in (1..D).rev() {
            strides[dim - 1] = strides[dim] * self.extent()[dim];
        }
        strides
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, asked: fmt::Arguments<'_>) -> ! {
        OutsideRegion {
            buffer: self.bound().label().to_string(),
            asked: asked.to_string(),
            declared: self.region().to_string(),
        }
        .throw()
    }
}

/// A region that a task declared to [read](crate::interface::TaskBuilder::read), as its kernel sees it.
///
/// Indices are those of the buffer. Access to a point outside the declared region ends the task with an error that names
/// the buffer, the point and the region.
pub struct ReadView<T, const D: usize> {
    raw: Raw<T, D>,
}

// SAFETY: a view is a shared slice of elements, which are Sync.
unsafe impl<T: Element, const D: usize> Send for ReadView<T, D> {}
// SAFETY: as above.
unsafe impl<T: Element, const D: usize> Sync for ReadView<T, D> {}

/// A region that a task declared to [write](crate::interface::TaskBuilder::write) or
/// [update](crate::interface::TaskBuilder::update), as its kernel sees it.
///
/// Indices are those of the buffer. Access to a point outside the declared region ends the task with an error that names
/// the buffer, the point and the region. The elements of a *written* region are unspecified until the task writes them.
pub struct WriteView<'v, T, const D: usize> {
    raw: Raw<T, D>,
    /// Ties the view to one call. Views of different calls have different types, so that they cannot be swapped.
    _call: PhantomData<&'v mut [T]>,
}

// SAFETY: a view is a unique slice of elements, which are Send.
unsafe impl<T: Element, const D: usize> Send for WriteView<'_, T, D> {}
// SAFETY: as above, and shared access only reads.
unsafe impl<T: Element, const D: usize> Sync for WriteView<'_, T, D> {}

impl<T: Element, const D: usize> ReadView<T, D> {
    /// # Safety
    /// As long as the view exists, `bound` lives and has its memory, and no other task or chunk writes a point of the region
    /// of this chunk. The region lies inside the buffer.
    pub(crate) unsafe fn new(bound: &BoundBuffer<T, D>, chunk: usize) -> Self {
        // SAFETY: the caller promises it.
        Self { raw: unsafe { Raw::new(bound, chunk) } }
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
        // SAFETY: these points lie in one box of the region, one after the other in memory (rules 1 to 5 above).
        unsafe { std::slice::from_raw_parts(start, len) }
    }

    /// The elements of the region as one slice, if they are contiguous in memory: whole rows, for example.
    pub fn as_slice(&self) -> Option<&[T]> {
        // SAFETY: all of these points are in the region (rules 1 to 5 above).
        self.raw.contiguous().map(|(start, len)| unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The region as an `ndarray` view, whose index `[0, …]` is the first point of the region. The region must be one box:
    /// any other ends the task.
    pub fn as_array(&self) -> ArrayView<'_, T, <Rank as Shape<D>>::Dim>
    where
        Rank: Shape<D>,
    {
        let range = self.raw.single();
        let shape = Rank::shape(range.extent().0).strides(Rank::shape(self.raw.strides()));
        // SAFETY: shape and strides address points of the box, row by row in the buffer (rules 1 to 5 above).
        unsafe { ArrayView::from_shape_ptr(shape, self.raw.at(range.min().0).cast_const()) }
    }
}

impl<T: Element> ReadView<T, 2> {
    /// The declared part of row `y`, from the first to the last declared column.
    #[inline]
    pub fn row(&self, y: usize) -> &[T] {
        let (start, len) = self.raw.row(&[y]);
        // SAFETY: a row of one box of the region (rules 1 to 5 above).
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

impl<T: Element> ReadView<T, 3> {
    /// The declared part of row `y` of plane `z`.
    #[inline]
    pub fn row(&self, z: usize, y: usize) -> &[T] {
        let (start, len) = self.raw.row(&[z, y]);
        // SAFETY: a row of one box of the region (rules 1 to 5 above).
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

impl<T: Element, const D: usize> WriteView<'_, T, D> {
    /// # Safety
    /// As long as the view exists, `bound` lives and has its memory, and nothing else reads or writes a point of the region
    /// of this chunk. The region lies inside the buffer.
    pub(crate) unsafe fn new(bound: &BoundBuffer<T, D>, chunk: usize) -> Self {
        // SAFETY: the caller promises it.
        Self { raw: unsafe { Raw::new(bound, chunk) }, _call: PhantomData }
    }

    /// The view for one call.
    pub(crate) fn for_call<'v>(&'v mut self) -> &'v mut WriteView<'v, T, D> {
        // SAFETY: only the lifetime parameter changes, which no field's layout depends on. It shrinks behind a unique
        // reference. A caller could put another view there, which lives as long as 'v only, but nothing looks at this
        // view after the call, and it has no destructor.
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

    /// The elements from `point` to the end of its box along the last dimension.
    #[inline]
    pub fn run_mut(&mut self, point: [usize; D]) -> &mut [T] {
        let (start, len) = self.raw.run_at(point);
        // SAFETY: these points lie in one box of the region, one after the other in memory; this view is their only
        // user (rules 1 to 5 above) and is borrowed as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// The elements of the region as one slice, if they are contiguous in memory: whole rows, for example.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        // SAFETY: all of these points are in the region, of which this view is the only user.
        self.raw.contiguous().map(|(start, len)| unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// The region as an `ndarray` view, whose index `[0, …]` is the first point of the region. The region must be one box:
    /// any other ends the task.
    pub fn as_array_mut(&mut self) -> ArrayViewMut<'_, T, <Rank as Shape<D>>::Dim>
    where
        Rank: Shape<D>,
    {
        let range = self.raw.single();
        let shape = Rank::shape(range.extent().0).strides(Rank::shape(self.raw.strides()));
        // SAFETY: shape and strides address points of the box, row by row in the buffer, each once; this view is
        // their only user and is borrowed as long as the array view lives.
        unsafe { ArrayViewMut::from_shape_ptr(shape, self.raw.at(range.min().0)) }
    }

    /// Sets every element of the region.
    pub fn fill(&mut self, value: T) {
        for range in self.raw.region().clone().boxes() {
            let mut first_column = *range;
            if D > 0 {
                let mut max = range.max().0;
                max[D - 1] = range.min()[D - 1] + 1;
                first_column = GridBox::new(range.min(), max);
            }
            for point in first_column.points() {
                self.run_mut(point.0).fill(value);
            }
        }
    }
}

impl<T: Element> WriteView<'_, T, 2> {
    /// The declared part of row `y`, from the first to the last declared column.
    #[inline]
    pub fn row_mut(&mut self, y: usize) -> &mut [T] {
        let (start, len) = self.raw.row(&[y]);
        // SAFETY: a row of one box of the region, of which this view, borrowed meanwhile, is the only user.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}

impl<T: Element> WriteView<'_, T, 3> {
    /// The declared part of row `y` of plane `z`.
    #[inline]
    pub fn row_mut(&mut self, z: usize, y: usize) -> &mut [T] {
        let (start, len) = self.raw.row(&[z, y]);
        // SAFETY: a row of one box of the region, of which this view, borrowed meanwhile, is the only user.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}

impl<T: Element, const D: usize> Index<[usize; D]> for ReadView<T, D> {
    type Output = T;

    #[inline]
    fn index(&self, point: [usize; D]) -> &T {
        self.raw.box_at(point);
        // SAFETY: the point is in the region (rules 1 to 5 above).
        unsafe { &*self.raw.at(point) }
    }
}

impl<T: Element, const D: usize> Index<[usize; D]> for WriteView<'_, T, D> {
    type Output = T;

    #[inline]
    fn index(&self, point: [usize; D]) -> &T {
        self.raw.box_at(point);
        // SAFETY: the point is in the region, of which this view is the only user.
        unsafe { &*self.raw.at(point) }
    }
}

impl<T: Element, const D: usize> IndexMut<[usize; D]> for WriteView<'_, T, D> {
    #[inline]
    fn index_mut(&mut self, point: [usize; D]) -> &mut T {
        self.raw.box_at(point);
        // SAFETY: the point is in the region, of which this view, borrowed meanwhile, is the only user.
        unsafe { &mut *self.raw.at(point) }
    }
}

impl<T: Element, const D: usize> fmt::Debug for ReadView<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadView({} {})", self.raw.bound().label(), self.raw.region())
    }
}

impl<T: Element, const D: usize> fmt::Debug for WriteView<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteView({} {})", self.raw.bound().label(), self.raw.region())
    }
}
