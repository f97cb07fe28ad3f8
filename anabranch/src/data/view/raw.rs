//! The pointer and the region that all kinds of view have in common, and the check of every access.

use super::super::{bound::BoundBuffer, element::Element};
use crate::error::OutsideRegion;
use anabranch_grid::{Extent, GridBox, Point, Points, Region};
use std::{fmt, ptr::NonNull};

/// The part that both kinds of view have in common.
pub(super) struct Raw<T, const D: usize> {
    start: *mut T,
    bound: NonNull<BoundBuffer<T, D>>,
    chunk: usize,
}

impl<T: Element, const D: usize> Raw<T, D> {
    /// # Safety
    /// `bound` lives, and has its memory, as long as this value.
    pub(super) unsafe fn new(bound: &BoundBuffer<T, D>, chunk: usize) -> Self {
        Self { start: bound.start(), bound: NonNull::from_ref(bound), chunk }
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
        self.bound().extent()
    }

    /// The box of the region that contains `point`.
    #[inline]
    pub(super) fn box_at(&self, point: [usize; D]) -> &GridBox<D> {
        match self.region().boxes().iter().find(|b| b.contains_point(Point(point))) {
            Some(range) => range,
            None => self.refuse(format_args!("{}", Point(point))),
        }
    }

    /// The pointer to a point that lies in the region.
    #[inline]
    pub(super) fn at(&self, point: [usize; D]) -> *mut T {
        let extent = self.extent().0;
        let index = extent.iter().zip(point).fold(0, |index, (n, i)| index * n + i);
        // SAFETY: the region lies inside the buffer (checked at submission), and the allocation holds the whole buffer.
        unsafe { self.start.add(index) }
    }

    /// The elements from `point` to the end of its box along the last dimension, as pointer and length.
    #[inline]
    pub(super) fn run_at(&self, point: [usize; D]) -> (*mut T, usize) {
        let range = self.box_at(point);
        let len = if D == 0 { 1 } else { range.max()[D - 1] - point[D - 1] };
        (self.at(point), len)
    }

    /// The row at these leading coordinates, of the first box that has such a row: its first column, and its length.
    #[inline]
    pub(super) fn row(&self, leading: &[usize]) -> (*mut T, usize) {
        let has_row =
            |b: &&GridBox<D>| leading.iter().enumerate().all(|(d, &i)| b.min()[d] <= i && i < b.max()[d]);
        let Some(range) = self.region().boxes().iter().find(has_row) else {
            self.refuse(format_args!("row {leading:?}"))
        };
        let mut point = range.min().0;
        point[..leading.len()].copy_from_slice(leading);
        (self.at(point), range.max()[D - 1] - range.min()[D - 1])
    }

    /// The only box of the region, as its first point and its extent. An empty region of a buffer without elements has the
    /// extent of the buffer.
    pub(super) fn single(&self) -> (Point<D>, Extent<D>) {
        match self.region().boxes() {
            [range] => (range.min(), range.extent()),
            [] if self.extent().is_empty() => (Point([0; D]), self.extent()),
            [] if D > 0 => (Point([0; D]), Extent([0; D])),
            _ => self.refuse(format_args!("an array of all points of a region that is not one box")),
        }
    }

    /// The elements of the region, if they are contiguous in memory.
    pub(super) fn contiguous(&self) -> Option<(*mut T, usize)> {
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

    pub(super) fn strides(&self) -> [usize; D] {
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

/// The first point of each line of a box along the last dimension; for 0 dimensions, the only point.
pub(crate) fn line_starts<const D: usize>(range: &GridBox<D>) -> Points<D> {
    let mut max = range.max().0;
    if D > 0 {
        max[D - 1] = max[D - 1].min(range.min()[D - 1] + 1);
    }
    GridBox::new(range.min(), max).points()
}
