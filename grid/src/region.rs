//! Regions: sets of points.

use crate::{
    grid_box::GridBox,
    point::Point,
    sweep::{self, Boxes, Op, combine},
};
use smallvec::smallvec;
use std::fmt;

/// A set of points, as a normalised union of disjoint boxes.
///
/// Every set has one representation, in whatever order it was built, so `==` and `Hash` are those of the set.
/// The boxes are maximal slabs along axis 0 with a constant cross-section, and the cross-section is
/// represented in the same way along the other axes. [`boxes`](Region::boxes) are in lexicographic order. One
/// box is stored inline.
///
/// ```
/// use anabranch_grid::{GridBox, Region};
/// let l_shape = Region::from_boxes([GridBox::new([0, 0], [4, 1]), GridBox::new([3, 0], [4, 5])]);
/// assert_eq!(l_shape.to_string(), "[0..3, 0..1] + [3..4, 0..5]");
/// assert_eq!(l_shape.len(), 8);
/// let square = Region::from(GridBox::full([4, 5]));
/// assert!(square.contains(&l_shape));
/// assert_eq!(square.difference(&l_shape), GridBox::new([0, 1], [3, 5]).into());
/// ```
#[derive(PartialEq, Eq, Hash)]
pub struct Region<const D: usize> {
    boxes: Boxes<D>,
}

impl<const D: usize> Region<D> {
    /// The set without points.
    #[inline]
    pub fn empty() -> Self {
        Self { boxes: Boxes::new() }
    }

    /// The union of boxes. They may overlap, and empty boxes are skipped.
    pub fn from_boxes(boxes: impl IntoIterator<Item = GridBox<D>>) -> Self {
        let mut boxes: Boxes<D> = boxes.into_iter().filter(|b| !b.is_empty()).collect();
        if boxes.len() > 1 {
            boxes.sort_unstable_by_key(|b| (b.min(), b.max()));
            boxes.dedup();
            boxes = union_of(&boxes);
        }
        Self { boxes }
    }

    /// The disjoint boxes, in lexicographic order.
    #[inline]
    pub fn boxes(&self) -> &[GridBox<D>] {
        &self.boxes
    }

    /// The points in `self` or `other`.
    pub fn union(&self, other: &Self) -> Self {
        if self == other || other.is_empty() {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        if let ([a], [b]) = (self.boxes(), other.boxes()) {
            if a.contains(b) {
                return self.clone();
            }
            if b.contains(a) {
                return other.clone();
            }
            if let Some(joined) = a.joined(b) {
                return joined.into();
            }
        }
        Self { boxes: combine(Op::Union, &self.boxes, &other.boxes) }
    }

    /// The points in `self` and `other`.
    pub fn intersection(&self, other: &Self) -> Self {
        match (self.boxes(), other.boxes()) {
            ([], _) | (_, []) => Self::empty(),
            ([a], [b]) if a.intersects(b) => a.intersection(b).into(),
            ([_], [_]) => Self::empty(),
            (a, b) if a == b => self.clone(),
            (a, b) => Self { boxes: combine(Op::Intersection, a, b) },
        }
    }

    /// The points of `self` that are not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        match (self.boxes(), other.boxes()) {
            (a, b) if a == b => Self::empty(),
            ([a], [b]) if b.contains(a) => Self::empty(),
            ([a], [b]) if !a.intersects(b) => self.clone(),
            (_, []) => self.clone(),
            ([a], [b]) => Self { boxes: sweep::subtract(a, b) },
            (a, b) => Self { boxes: combine(Op::Difference, a, b) },
        }
    }

    /// Whether some point is in both.
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        match (self.boxes(), other.boxes()) {
            ([a], [b]) => a.intersects(b),
            (a, b) => sweep::intersects(a, b),
        }
    }

    /// Whether every point of `other` is in `self`.
    pub fn contains(&self, other: &Self) -> bool {
        other.boxes.iter().all(|b| self.contains_box(b))
    }

    /// Whether every point of `range` is in `self`.
    pub fn contains_box(&self, range: &GridBox<D>) -> bool {
        match self.boxes() {
            [only] => only.contains(range),
            boxes => sweep::covers(boxes, range, 0),
        }
    }

    /// Whether `point` is in the set.
    pub fn contains_point(&self, point: impl Into<Point<D>>) -> bool {
        let min = point.into();
        match self.boxes() {
            [only] => only.contains_point(min),
            // No half-open box contains a coordinate of `usize::MAX`.
            _ if min.0.contains(&usize::MAX) => false,
            boxes => sweep::covers(boxes, &GridBox::new(min, min.0.map(|c| c + 1)), 0),
        }
    }

    /// The smallest box that contains the set, or [`GridBox::EMPTY`] for the empty set.
    pub fn bounding_box(&self) -> GridBox<D> {
        self.boxes.iter().fold(GridBox::EMPTY, |bounds, b| bounds.bounding(b))
    }

    /// The number of points, or `usize::MAX` if that overflows.
    pub fn len(&self) -> usize {
        self.boxes.iter().fold(0, |sum: usize, b| sum.saturating_add(b.len()))
    }

    /// Whether the set has no point.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// The same set in `E` dimensions. Added axes are `0..1`.
    ///
    /// # Panics
    /// If a dropped axis of a box is not `0..1`.
    #[inline]
    #[track_caller]
    pub fn cast<const E: usize>(&self) -> Region<E> {
        match self.boxes() {
            [only] => only.cast().into(),
            _ => self.cast_each(),
        }
    }

    #[track_caller]
    fn cast_each<const E: usize>(&self) -> Region<E> {
        // Axes `0..1` at the end neither split nor join bands, so the boxes stay in normal form.
        let mut boxes = Boxes::with_capacity(self.boxes.len());
        for b in &self.boxes {
            boxes.push(b.cast());
        }
        Region { boxes }
    }
}

/// The normal form of the union of non-empty boxes. Works by halves, so that neighbours in the list meet
/// early.
fn union_of<const D: usize>(boxes: &[GridBox<D>]) -> Boxes<D> {
    match boxes {
        [] => Boxes::new(),
        [only] => smallvec![*only],
        _ => {
            let (left, right) = boxes.split_at(boxes.len() / 2);
            combine(Op::Union, &union_of(left), &union_of(right))
        }
    }
}

impl<const D: usize> Clone for Region<D> {
    #[inline]
    fn clone(&self) -> Self {
        match self.boxes() {
            // The common case needs no loop.
            [only] => Self { boxes: smallvec![*only] },
            boxes => Self { boxes: Boxes::from_slice(boxes) },
        }
    }
}

impl<const D: usize> Default for Region<D> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<const D: usize> From<GridBox<D>> for Region<D> {
    #[inline]
    fn from(range: GridBox<D>) -> Self {
        Self { boxes: if range.is_empty() { Boxes::new() } else { smallvec![range] } }
    }
}

impl<const D: usize> FromIterator<GridBox<D>> for Region<D> {
    fn from_iter<I: IntoIterator<Item = GridBox<D>>>(boxes: I) -> Self {
        Self::from_boxes(boxes)
    }
}

impl<const D: usize> FromIterator<Region<D>> for Region<D> {
    fn from_iter<I: IntoIterator<Item = Region<D>>>(regions: I) -> Self {
        Self::from_boxes(regions.into_iter().flat_map(|region| region.boxes))
    }
}

impl<const D: usize> fmt::Display for Region<D> {
    /// The boxes joined by ` + `, or `empty` if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.boxes.split_first() else { return f.write_str("empty") };
        write!(f, "{first}")?;
        rest.iter().try_for_each(|b| write!(f, " + {b}"))
    }
}

impl<const D: usize> fmt::Debug for Region<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_dimensional_regions_are_the_point_or_nothing() {
        let point = Region::from(GridBox::full([]));
        let nothing = Region::<0>::empty();
        assert_eq!(point.len(), 1);
        assert_eq!(point.difference(&point), nothing);
        assert_eq!(point.union(&nothing), point);
        assert_eq!(point.intersection(&nothing), nothing);
        assert!(point.contains(&nothing) && !nothing.contains(&point));
        assert!(!nothing.contains_point([]) && point.contains_point([]));
        assert_eq!(point.cast::<3>(), GridBox::full([1, 1, 1]).into());
        assert_eq!(format!("{point} {nothing:?}"), "[] empty");
    }

    #[test]
    fn intervals_that_touch_become_one() {
        let region = Region::from_boxes([GridBox::new(4, 6), GridBox::new(0, 2), GridBox::new(2, 4)]);
        assert_eq!(region.boxes(), [GridBox::new(0, 6)]);
        let holes = region.difference(&Region::from_boxes([GridBox::new(1, 2), GridBox::new(4, 5)]));
        assert_eq!(holes.to_string(), "[0..1] + [2..4] + [5..6]");
    }

    #[test]
    fn the_largest_coordinates_are_safe() {
        let max = usize::MAX;
        let all = Region::from(GridBox::new([0, 0], [max, max]));
        let hole = Region::from(GridBox::new([5, 5], [6, max]));
        let rest = all.difference(&hole);
        assert_eq!(rest.union(&hole), all);
        assert_eq!(rest.len(), max);
        assert!(!rest.intersects(&hole) && !rest.contains_point([max, max]));
    }
}
