//! Boxes: half-open intervals of points.

use crate::point::{Extent, Point};
use std::{fmt, mem};

/// The half-open interval of points `[min, max)`: all fields inline, `Copy`, no heap.
///
/// All empty boxes are the same value, [`GridBox::EMPTY`], so equality of boxes is equality of point sets. In
/// 0 dimensions there is exactly one point, and every box is that point: it is never empty. The empty
/// 0-dimensional set is a [`Region`](crate::Region) without boxes.
///
/// ```
/// use anabranch_grid::GridBox;
/// let a = GridBox::new([0, 3], [4, 7]);
/// let b = GridBox::full([2, 5]);
/// assert_eq!(a.intersection(&b), GridBox::new([0, 3], [2, 5]));
/// assert_eq!(a.to_string(), "[0..4, 3..7]");
/// assert_eq!(GridBox::new(3, 3), GridBox::EMPTY);
/// ```
// Not `Ord`: its `min` and `max` would hide those of the box.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct GridBox<const D: usize> {
    min: Point<D>,
    max: Point<D>,
}

impl<const D: usize> GridBox<D> {
    /// The empty box, all zero. In 0 dimensions this is the single point, like every box.
    pub const EMPTY: Self = Self { min: Point([0; D]), max: Point([0; D]) };

    /// The points from `min` up to, but without, `max`; empty unless `max` is above `min` on every axis.
    #[inline]
    pub fn new(min: impl Into<Point<D>>, max: impl Into<Point<D>>) -> Self {
        Self { min: min.into(), max: max.into() }.normalized()
    }

    /// All points of a space of this extent.
    #[inline]
    pub fn full(extent: impl Into<Extent<D>>) -> Self {
        Self { min: Point([0; D]), max: Point(extent.into().0) }.normalized()
    }

    #[inline]
    fn normalized(self) -> Self {
        if self.is_empty() { Self::EMPTY } else { self }
    }

    /// The first point.
    #[inline]
    pub fn min(&self) -> Point<D> {
        self.min
    }

    /// The point beyond the last, on every axis.
    #[inline]
    pub fn max(&self) -> Point<D> {
        self.max
    }

    /// The first coordinate along `axis`. Does not copy the point.
    #[inline]
    pub(crate) fn low(&self, axis: usize) -> usize {
        self.min.0[axis]
    }

    /// The coordinate beyond the last along `axis`.
    #[inline]
    pub(crate) fn high(&self, axis: usize) -> usize {
        self.max.0[axis]
    }

    /// The size along each axis.
    #[inline]
    pub fn extent(&self) -> Extent<D> {
        Extent(std::array::from_fn(|axis| self.max[axis] - self.min[axis]))
    }

    /// The number of points, or `usize::MAX` if that overflows.
    #[inline]
    pub fn len(&self) -> usize {
        self.extent().len()
    }

    /// Whether the box has no point; never in 0 dimensions.
    #[inline]
    pub fn is_empty(&self) -> bool {
        (0..D).any(|axis| self.max[axis] <= self.min[axis])
    }

    /// Whether `point` is inside.
    #[inline]
    pub fn contains_point(&self, point: impl Into<Point<D>>) -> bool {
        let point = point.into();
        (0..D).all(|axis| self.min[axis] <= point[axis] && point[axis] < self.max[axis])
    }

    /// Whether every point of `other` is inside; the empty box is in every box.
    #[inline]
    pub fn contains(&self, other: &Self) -> bool {
        other.is_empty()
            || (0..D).all(|axis| self.min[axis] <= other.min[axis] && other.max[axis] <= self.max[axis])
    }

    /// The points in both.
    #[inline]
    pub fn intersection(&self, other: &Self) -> Self {
        let min = Point(std::array::from_fn(|axis| self.min[axis].max(other.min[axis])));
        let max = Point(std::array::from_fn(|axis| self.max[axis].min(other.max[axis])));
        Self { min, max }.normalized()
    }

    /// Whether some point is in both.
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        (0..D).all(|axis| self.min[axis].max(other.min[axis]) < self.max[axis].min(other.max[axis]))
    }

    /// The smallest box that contains both.
    #[inline]
    pub fn bounding(&self, other: &Self) -> Self {
        if self.is_empty() {
            return *other;
        }
        if other.is_empty() {
            return *self;
        }
        let min = Point(std::array::from_fn(|axis| self.min[axis].min(other.min[axis])));
        let max = Point(std::array::from_fn(|axis| self.max[axis].max(other.max[axis])));
        Self { min, max }
    }

    /// The same box in `E` dimensions. Added axes are `0..1`.
    ///
    /// # Panics
    /// If a dropped axis is not `0..1`, or an empty box is cast to 0 dimensions, where no box is empty.
    #[inline]
    #[track_caller]
    pub fn cast<const E: usize>(&self) -> GridBox<E> {
        if self.is_empty() {
            assert!(E > 0, "cannot cast the empty box from {D} to 0 dimensions, where no box is empty");
            return GridBox::EMPTY;
        }
        for axis in E..D {
            assert!(
                (self.min[axis], self.max[axis]) == (0, 1),
                "cannot cast box {self} from {D} to {E} dimensions: axis {axis} is dropped and must be 0..1"
            );
        }
        GridBox {
            min: Point(std::array::from_fn(|axis| if axis < D { self.min[axis] } else { 0 })),
            max: Point(std::array::from_fn(|axis| if axis < D { self.max[axis] } else { 1 })),
        }
    }

    /// The points in row-major order (the last axis runs fastest).
    ///
    /// ```
    /// use anabranch_grid::{GridBox, Point};
    /// let points: Vec<_> = GridBox::new([1, 5], [3, 7]).points().collect();
    /// assert_eq!(points, [[1, 5], [1, 6], [2, 5], [2, 6]].map(Point));
    /// ```
    #[inline]
    pub fn points(&self) -> Points<D> {
        Points { next: self.min, range: *self, is_done: false }
    }

    /// Whether the boxes overlap or are next to each other, even if only at a corner.
    #[inline]
    pub(crate) fn touches(&self, other: &Self) -> bool {
        (0..D).all(|axis| self.min[axis] <= other.max[axis] && other.min[axis] <= self.max[axis])
    }

    /// Whether this is all of `bounds` on the axes other than `axis`. Never in 0 dimensions, where there is
    /// no axis.
    #[inline]
    pub(crate) fn is_interval_of(&self, bounds: &Self, axis: usize) -> bool {
        D > 0
            && (0..D)
                .filter(|&other| other != axis)
                .all(|other| self.low(other) == bounds.low(other) && self.high(other) == bounds.high(other))
    }

    /// The same box with `range` along `axis`; `range` must not be empty.
    #[inline]
    pub(crate) fn with_axis(mut self, axis: usize, range: std::ops::Range<usize>) -> Self {
        debug_assert!(range.start < range.end);
        (self.min[axis], self.max[axis]) = (range.start, range.end);
        self
    }

    /// The union of two different boxes if they are equal on all axes but one, and overlap or touch on that
    /// axis. Then the union is a box.
    #[inline]
    pub(crate) fn joined(&self, other: &Self) -> Option<Self> {
        let mut differing = None;
        for axis in 0..D {
            let differs = (self.min[axis] != other.min[axis]) | (self.max[axis] != other.max[axis]);
            if differs && differing.replace(axis).is_some() {
                return None;
            }
        }
        let axis = differing?;
        let touching = self.min[axis] <= other.max[axis] && other.min[axis] <= self.max[axis];
        touching.then(|| self.bounding(other))
    }
}

impl<const D: usize> fmt::Display for GridBox<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for axis in 0..D {
            let separator = if axis == 0 { "" } else { ", " };
            write!(f, "{separator}{}..{}", self.min[axis], self.max[axis])?;
        }
        f.write_str("]")
    }
}

impl<const D: usize> fmt::Debug for GridBox<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An iterator over the points of a box in row-major order; see [`GridBox::points`].
#[derive(Clone, Debug)]
pub struct Points<const D: usize> {
    range: GridBox<D>,
    /// The next point, or the point beyond the end of a line.
    next: Point<D>,
    /// In 0 dimensions, where there is no end of a line: whether the point has been returned.
    is_done: bool,
}

impl<const D: usize> Points<D> {
    /// Goes from the end of a line to the beginning of the next one; `None` and no step if there is no other
    /// line.
    #[inline]
    fn next_line(&mut self) -> Option<()> {
        // Count up like an odometer: an axis that overflows starts again and carries to the axis before it.
        let carry =
            (0..D.saturating_sub(1)).rev().find(|&axis| self.next[axis] + 1 < self.range.max[axis])?;
        self.next[carry] += 1;
        for axis in carry + 1..D {
            self.next[axis] = self.range.min[axis];
        }
        Some(())
    }
}

impl<const D: usize> Iterator for Points<D> {
    type Item = Point<D>;

    // Most steps compare and change only the last coordinate.
    #[inline]
    fn next(&mut self) -> Option<Point<D>> {
        let Some(last) = D.checked_sub(1) else {
            return (!mem::replace(&mut self.is_done, true)).then_some(self.next);
        };
        if self.next[last] >= self.range.max[last] {
            self.next_line()?;
        }
        let point = self.next;
        self.next[last] += 1;
        Some(point)
    }

    #[inline]
    fn fold<A, F: FnMut(A, Point<D>) -> A>(mut self, mut value: A, mut f: F) -> A {
        let Some(last) = D.checked_sub(1) else {
            return if self.is_done { value } else { f(value, self.next) };
        };
        loop {
            let mut point = self.next;
            for at in self.next[last]..self.range.max[last] {
                point[last] = at;
                value = f(value, point);
            }
            if self.next_line().is_none() {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_boxes_are_one_value() {
        assert_eq!(GridBox::new([3, 5], [7, 5]), GridBox::EMPTY);
        assert_eq!(GridBox::new([3, 5], [1, 9]), GridBox::EMPTY);
        assert_eq!(GridBox::full([0, 9]), GridBox::EMPTY);
        assert!(GridBox::<2>::EMPTY.is_empty());
    }

    #[test]
    fn a_box_in_zero_dimensions_is_the_single_point() {
        let point = GridBox::full([]);
        assert_eq!(point, GridBox::EMPTY);
        assert!(!point.is_empty());
        assert_eq!(point.len(), 1);
        assert_eq!(point.points().collect::<Vec<_>>(), [Point([])]);
        assert_eq!(point.to_string(), "[]");
        assert_eq!(point.cast::<2>(), GridBox::full([1, 1]));
    }

    #[test]
    fn casts_pad_and_drop() {
        let line = GridBox::new(2, 5);
        assert_eq!(line.cast::<3>(), GridBox::new([2, 0, 0], [5, 1, 1]));
        assert_eq!(line.cast::<3>().cast::<1>(), line);
        assert_eq!(GridBox::<1>::EMPTY.cast::<3>(), GridBox::EMPTY);
        assert_eq!(GridBox::<3>::EMPTY.cast::<1>(), GridBox::EMPTY);
    }

    #[test]
    #[should_panic(
        expected = "cannot cast box [2..5, 1..2] from 2 to 1 dimensions: axis 1 is dropped and must"
    )]
    fn casting_down_needs_unit_axes() {
        let _ = GridBox::new([2, 1], [5, 2]).cast::<1>();
    }

    #[test]
    fn literals_need_no_types() {
        assert_eq!(GridBox::full(5).len(), 5);
        assert_eq!(GridBox::full([5, 2]).extent(), Extent([5, 2]));
        assert!(GridBox::new([1, 2, 3], [4, 5, 6]).contains_point([1, 2, 3]));
    }

    #[test]
    fn points_are_those_of_nested_loops() {
        fn check<const D: usize>(range: GridBox<D>, expected: &[[usize; D]]) {
            assert_eq!(range.points().map(|p| p.0).collect::<Vec<_>>(), expected, "{range}");
            for first in 0..=expected.len() {
                let (mut points, mut seen) = (range.points(), Vec::new());
                seen.extend(points.by_ref().take(first));
                points.clone().for_each(|p| seen.push(p));
                assert_eq!(seen.iter().map(|p| p.0).collect::<Vec<_>>(), expected, "{range} after {first}");
            }
            let mut points = range.points();
            points.by_ref().for_each(drop);
            assert_eq!((points.next(), points.next()), (None, None), "{range}");
        }
        check(GridBox::full([]), &[[]]);
        let sides = [0..0, 2..3, 1..4];
        for a in sides.clone() {
            check(GridBox::new(a.start, a.end), &a.clone().map(|i| [i]).collect::<Vec<_>>());
            for b in sides.clone() {
                let plane = a.clone().flat_map(|i| b.clone().map(move |j| [i, j]));
                check(GridBox::new([a.start, b.start], [a.end, b.end]), &plane.clone().collect::<Vec<_>>());
                for c in sides.clone() {
                    let all = plane.clone().flat_map(|[i, j]| c.clone().map(move |k| [i, j, k]));
                    let range = GridBox::new([a.start, b.start, c.start], [a.end, b.end, c.end]);
                    check(range, &all.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn boxes_join_only_where_the_union_is_a_box() {
        let a = GridBox::new([0, 0], [2, 4]);
        assert_eq!(a.joined(&GridBox::new([2, 0], [3, 4])), Some(GridBox::new([0, 0], [3, 4])));
        assert_eq!(a.joined(&GridBox::new([0, 4], [2, 6])), Some(GridBox::new([0, 0], [2, 6])));
        assert_eq!(a.joined(&GridBox::new([1, 0], [3, 4])), Some(GridBox::new([0, 0], [3, 4])));
        assert_eq!(a.joined(&GridBox::new([2, 0], [3, 3])), None);
        assert_eq!(a.joined(&GridBox::new([3, 0], [4, 4])), None);
    }
}
