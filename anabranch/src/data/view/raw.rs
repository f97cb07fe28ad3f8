//! The pointer and the region that all kinds of view have in common, and the check of every access.

use super::super::{bound::BoundBuffer, element::Element};
use crate::error::OutsideRegion;
use anabranch_grid::{Extent, GridBox, Point, Points, Region, RegionShape};
use std::{fmt, ptr::NonNull};

/// The part that all kinds of view have in common.
///
/// A loop over points should become vector instructions, with its checks before it and as fast as a loop over
/// slices. This needs three things of the code that is compiled into the loop:
/// - All that a check needs lies here as plain numbers, in `shape`. The functions that [search](search) all
///   boxes or refuse an access get copies and no reference to this, so that the numbers stay in registers.
/// - Up to three dimensions, a check and the address of an element have no loop over the dimensions. With
///   such loops, kernels that access several elements took three times as long in programs of several codegen
///   units.
/// - The code is short, so that the compiler inlines functions that access several elements.
pub(super) struct Raw<T, const D: usize, S> {
    start: *mut T,
    /// The extent of the buffer.
    extent: [usize; D],
    shape: S,
    bound: NonNull<BoundBuffer<T, D>>,
    chunk: usize,
}

impl<T: Element, const D: usize, S: RegionShape<D>> Raw<T, D, S> {
    /// # Safety
    /// `bound` lives, and has its memory, as long as this value. The region of the chunk has the shape `S`.
    // A view is made for each call of a kernel, and should stay where it is made.
    #[inline(always)]
    pub(super) unsafe fn new(bound: &BoundBuffer<T, D>, chunk: usize) -> Self {
        Self {
            start: bound.start(),
            extent: bound.extent().0,
            shape: S::new(bound.regions[chunk].boxes()),
            bound: NonNull::from_ref(bound),
            chunk,
        }
    }

    #[inline]
    pub(super) fn bound(&self) -> &BoundBuffer<T, D> {
        // SAFETY: see `new`.
        unsafe { self.bound.as_ref() }
    }

    #[inline]
    pub(super) fn region(&self) -> &Region<D> {
        &self.bound().regions[self.chunk]
    }

    #[inline]
    pub(super) fn extent(&self) -> Extent<D> {
        Extent(self.extent)
    }

    /// Checks that the region contains `point`.
    #[inline]
    pub(super) fn check(&self, point: [usize; D]) {
        let (first, size) = self.shape.on_line(point);
        let last = if D == 0 { 0 } else { point[D - 1] };
        let is_outside = || S::IS_EXACT || !search(self.bound(), self.chunk, point);
        if last.wrapping_sub(first) >= size && is_outside() {
            self.refuse(point);
        }
    }

    /// Refuses the access to `point`.
    ///
    /// The coordinates are given one by one: a loop over points would store each point in memory if an array
    /// of them were passed.
    #[inline]
    fn refuse(&self, point: [usize; D]) -> ! {
        let (bound, chunk) = (self.bound(), self.chunk);
        match D {
            1 => refuse_1(bound, chunk, point[0]),
            2 => refuse_2(bound, chunk, point[0], point[1]),
            3 => refuse_3(bound, chunk, point[0], point[1], point[2]),
            _ => refuse_point(bound, chunk, point),
        }
    }

    /// The pointer to a point that lies in the region.
    #[inline]
    pub(super) fn at(&self, point: [usize; D]) -> *mut T {
        let extent = &self.extent;
        let index = match D {
            1 => point[0],
            2 => point[0] * extent[1] + point[1],
            3 => (point[0] * extent[1] + point[1]) * extent[2] + point[2],
            _ => extent.iter().zip(point).fold(0, |index, (n, i)| index * n + i),
        };
        // SAFETY: the region lies inside the buffer (checked at submission), and the allocation holds the
        // whole buffer.
        unsafe { self.start.add(index) }
    }

    /// The elements from `point` to the end of its box along the last dimension, as pointer and length.
    #[inline]
    pub(super) fn run_at(&self, point: [usize; D]) -> (*mut T, usize) {
        let Some(range) = find(self.bound(), self.chunk, point) else { self.refuse(point) };
        let len = if D == 0 { 1 } else { range.max()[D - 1] - point[D - 1] };
        (self.at(point), len)
    }

    /// The row at these leading coordinates, of the first box that has such a row: its first column, and its
    /// length.
    #[inline]
    pub(super) fn row(&self, leading: &[usize]) -> (*mut T, usize) {
        let has_row =
            |b: &&GridBox<D>| leading.iter().enumerate().all(|(d, &i)| b.min()[d] <= i && i < b.max()[d]);
        let Some(range) = self.region().boxes().iter().find(has_row) else {
            refuse(self.bound(), self.chunk, format_args!("row {leading:?}"))
        };
        let mut point = range.min().0;
        point[..leading.len()].copy_from_slice(leading);
        (self.at(point), range.max()[D - 1] - range.min()[D - 1])
    }

    /// The only box of the region, as its first point and its extent. An empty region of a buffer without
    /// elements has the extent of the buffer.
    pub(super) fn single(&self) -> (Point<D>, Extent<D>) {
        match self.region().boxes() {
            [range] => (range.min(), range.extent()),
            [] if self.extent().is_empty() => (Point([0; D]), self.extent()),
            [] if D > 0 => (Point([0; D]), Extent([0; D])),
            _ => {
                let asked = format_args!("an array of all points of a region that is not one box");
                refuse(self.bound(), self.chunk, asked)
            }
        }
    }

    /// The elements of the region, if they are contiguous in memory.
    pub(super) fn contiguous(&self) -> Option<(*mut T, usize)> {
        let range = match self.region().boxes() {
            [range] => range,
            [] => return Some((self.start, 0)),
            _ => return None,
        };
        // The box must be as wide as the buffer in all dimensions after the first in which it has more than
        // one point.
        let first = (0..D).find(|&d| range.extent()[d] > 1).unwrap_or(D);
        let whole = (first + 1..D).all(|d| range.extent()[d] == self.extent()[d]);
        whole.then(|| (self.at(range.min().0), range.len()))
    }

    pub(super) fn strides(&self) -> [usize; D] {
        let mut strides = [1; D];
        for dim in (1..D).rev() {
            strides[dim - 1] = strides[dim] * self.extent()[dim];
        }
        strides
    }
}

/// The box of the region of this chunk that contains `point`.
fn find<T: Element, const D: usize>(
    bound: &BoundBuffer<T, D>,
    chunk: usize,
    point: [usize; D],
) -> Option<&GridBox<D>> {
    bound.regions[chunk].boxes().iter().find(|range| range.contains_point(Point(point)))
}

/// Whether a box of the region of this chunk contains `point`.
#[inline(never)]
fn search<T: Element, const D: usize>(bound: &BoundBuffer<T, D>, chunk: usize, point: [usize; D]) -> bool {
    find(bound, chunk, point).is_some()
}

#[cold]
#[inline(never)]
fn refuse_1<T: Element, const D: usize>(bound: &BoundBuffer<T, D>, chunk: usize, x: usize) -> ! {
    refuse(bound, chunk, format_args!("{}", Point([x])))
}

#[cold]
#[inline(never)]
fn refuse_2<T: Element, const D: usize>(bound: &BoundBuffer<T, D>, chunk: usize, y: usize, x: usize) -> ! {
    refuse(bound, chunk, format_args!("{}", Point([y, x])))
}

#[cold]
#[inline(never)]
fn refuse_3<T: Element, const D: usize>(
    bound: &BoundBuffer<T, D>,
    chunk: usize,
    z: usize,
    y: usize,
    x: usize,
) -> ! {
    refuse(bound, chunk, format_args!("{}", Point([z, y, x])))
}

#[cold]
#[inline(never)]
fn refuse_point<T: Element, const D: usize>(bound: &BoundBuffer<T, D>, chunk: usize, point: [usize; D]) -> ! {
    refuse(bound, chunk, format_args!("{}", Point(point)))
}

#[cold]
#[inline(never)]
fn refuse<T: Element, const D: usize>(
    bound: &BoundBuffer<T, D>,
    chunk: usize,
    asked: fmt::Arguments<'_>,
) -> ! {
    OutsideRegion {
        buffer: bound.label().to_string(),
        asked: asked.to_string(),
        declared: bound.regions[chunk].to_string(),
    }
    .throw()
}

/// The first point of each line of a box along the last dimension; for 0 dimensions, the only point.
pub(crate) fn line_starts<const D: usize>(range: &GridBox<D>) -> Points<D> {
    let mut max = range.max().0;
    if D > 0 {
        max[D - 1] = max[D - 1].min(range.min()[D - 1] + 1);
    }
    GridBox::new(range.min(), max).points()
}
