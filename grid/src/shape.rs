//! Shapes of regions: what the type of a mapper says about all regions that the mapper gives.
//!
//! A kernel accesses the elements of a region one by one, and each access checks that the region contains the
//! point. In a loop over a line, the compiler computes before the loop how many steps pass the check, and
//! uses vector instructions for these, under two conditions: the check is one comparison of the last
//! coordinate with numbers that are the same for the whole line, and a point outside ends the loop. So a
//! region must have at most one interval of each line. That is the case for [one box](OneBox) and for a
//! [cross](Cross). A region of [any boxes](AnyBoxes) may have several: a point outside the largest box is
//! searched in all boxes.

use crate::{grid_box::GridBox, region::Region};
use std::{fmt, hash::Hash, hint};

/// What all regions of a mapper have in common, and the numbers of one of them that say which points it
/// contains.
///
/// The shapes are [`OneBox`], [`Cross`] and [`AnyBoxes`]. The trait is sealed.
///
/// ```
/// use anabranch_grid::{GridBox, OneBox, RegionShape};
/// let shape = OneBox::new(&[GridBox::new([2, 4], [3, 9])]);
/// assert_eq!(shape.on_line([2, 0]), (4, 5)); // the line of row 2: columns 4 to 8
/// assert_eq!(shape.on_line([3, 0]).1, 0); // nothing of row 3
/// ```
pub trait RegionShape<const D: usize>: sealed::Sealed + Copy + Eq + Hash + Send + Sync + 'static {
    /// The shape in words, for error messages.
    const WORDS: &'static str;

    /// Whether [`on_line`](Self::on_line) gives all that the region has of a line.
    const IS_EXACT: bool;

    /// Whether a region of these boxes, in normal form, has this shape.
    fn fits(boxes: &[GridBox<D>]) -> bool;

    /// The numbers of a region of these boxes, which has this shape.
    fn new(boxes: &[GridBox<D>]) -> Self;

    /// An interval that the region has of the line through `point` along the last axis: its first coordinate
    /// and its size, which is 0 if there is none. Without an axis, the only point counts as coordinate 0 of a
    /// line.
    ///
    /// A region of an [exact](Self::IS_EXACT) shape has the points of these intervals and no others. A region
    /// of another shape may have more.
    fn on_line(&self, point: [usize; D]) -> (usize, usize);
}

/// What a closure that is a mapper returns, and what [`fixed`](crate::fixed) takes: a box or a region.
pub trait MappedRegion<const D: usize>: Into<Region<D>> {
    /// The shape of all such regions.
    type Shape: RegionShape<D>;
}

impl<const D: usize> MappedRegion<D> for GridBox<D> {
    type Shape = OneBox<D>;
}

impl<const D: usize> MappedRegion<D> for Region<D> {
    type Shape = AnyBoxes<D>;
}

/// The shape of regions of one box or none.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OneBox<const D: usize> {
    first: [usize; D],
    /// Without a box, the size is 0.
    size: [usize; D],
    /// 1 if there is no box, otherwise 0: in 0 dimensions the size does not say it. It is a whole word, because
    /// views with their shapes are copied in words, and a processor that loads a word waits until a byte of
    /// it that was just stored is in the cache.
    is_empty: usize,
}

impl<const D: usize> OneBox<D> {
    const NONE: Self = Self { first: [0; D], size: [0; D], is_empty: 1 };

    #[inline]
    fn of(range: Option<&GridBox<D>>) -> Self {
        range.map_or(Self::NONE, |range| Self { first: range.min().0, size: range.extent().0, is_empty: 0 })
    }

    /// Whether the box has a point with the coordinate of `point` along an axis.
    #[inline]
    fn spans(&self, axis: usize, point: [usize; D]) -> bool {
        point[axis].wrapping_sub(self.first[axis]) < self.size[axis]
    }
}

/// `size`, or 0 if `is_none`.
///
/// With an `if` instead, the compiler makes two conditions of the check of a point: one for the line, one for
/// the last coordinate. Then it does not find how many steps of a loop pass the check.
#[inline]
fn none_if(is_none: bool, size: usize) -> usize {
    size.saturating_sub(0_usize.wrapping_sub(usize::from(is_none)))
}

/// Calls `visit` for each axis before `end`, up to the third dimension without a loop.
///
/// With a loop, kernels that access several elements took three times as long in programs of several codegen
/// units.
#[inline(always)]
fn each_axis_before(end: usize, mut visit: impl FnMut(usize)) {
    if end > 0 {
        visit(0);
    }
    if end > 1 {
        visit(1);
    }
    if end > 2 {
        (2..end).for_each(visit);
    }
}

impl<const D: usize> RegionShape<D> for OneBox<D> {
    const WORDS: &'static str = "one box";
    const IS_EXACT: bool = true;

    #[inline]
    fn fits(boxes: &[GridBox<D>]) -> bool {
        boxes.len() <= 1
    }

    #[inline]
    fn new(boxes: &[GridBox<D>]) -> Self {
        Self::of(boxes.first())
    }

    #[inline]
    fn on_line(&self, point: [usize; D]) -> (usize, usize) {
        let Some(last) = D.checked_sub(1) else { return (0, 1 - self.is_empty) };
        let mut is_outside = false;
        each_axis_before(last, |axis| is_outside |= !self.spans(axis, point));
        (self.first[last], none_if(is_outside, self.size[last]))
    }
}

/// The shape of the regions of [`neighborhood(…).along_axes()`](crate::Neighborhood::along_axes): a box, the
/// *core*, which is extended along one axis at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cross<const D: usize> {
    core: OneBox<D>,
    /// The smallest box around the region: the core extended along all axes.
    hull: OneBox<D>,
}

impl<const D: usize> RegionShape<D> for Cross<D> {
    const WORDS: &'static str = "a cross";
    const IS_EXACT: bool = true;

    fn fits(boxes: &[GridBox<D>]) -> bool {
        if boxes.len() <= 1 {
            return true;
        }
        let Some((core, hull)) = core_and_hull(boxes) else { return false };
        let arm = |axis| core.with_axis(axis, hull.low(axis)..hull.high(axis));
        let beyond_core = |axis| points_of(&arm(axis)) - points_of(&core);
        // The boxes are disjoint.
        boxes.iter().all(|range| (0..D).any(|axis| arm(axis).contains(range)))
            && sum(boxes.iter().map(points_of)) == sum((0..D).map(beyond_core).chain([points_of(&core)]))
    }

    #[inline]
    fn new(boxes: &[GridBox<D>]) -> Self {
        match boxes {
            [] | [_] => {
                let only = OneBox::of(boxes.first());
                Self { core: only, hull: only }
            }
            several => Self::of_several(several),
        }
    }

    #[inline]
    fn on_line(&self, point: [usize; D]) -> (usize, usize) {
        let Some(last) = D.checked_sub(1) else { return self.core.on_line(point) };
        let (mut outside_core, mut is_outside) = (0, false);
        each_axis_before(last, |axis| {
            outside_core += usize::from(!self.core.spans(axis, point));
            is_outside |= !self.hull.spans(axis, point);
        });
        let line_of = |range: &OneBox<D>| [range.first[last], range.size[last]];
        // With an `if` instead, the mean of four neighbours took three times as long.
        let [first, size] =
            hint::select_unpredictable(outside_core == 0, line_of(&self.hull), line_of(&self.core));
        (first, none_if(is_outside | (outside_core > 1), size))
    }
}

impl<const D: usize> Cross<D> {
    #[inline(never)]
    fn of_several(boxes: &[GridBox<D>]) -> Self {
        let (core, hull) = core_and_hull(boxes).expect("the boxes are a cross");
        Self { core: OneBox::of(Some(&core)), hull: OneBox::of(Some(&hull)) }
    }
}

/// If these boxes, at least one, are a cross: its core, and the box around it. `None` if they certainly are
/// none.
///
/// Along the last axis on which the boxes differ, all of them have the interval of the core but the widest
/// one, which is the core extended.
fn core_and_hull<const D: usize>(boxes: &[GridBox<D>]) -> Option<(GridBox<D>, GridBox<D>)> {
    let hull = boxes.iter().fold(boxes[0], |all, range| all.bounding(range));
    let common = |axis| {
        boxes.iter().fold(hull.low(axis)..hull.high(axis), |common, range| {
            common.start.max(range.low(axis))..common.end.min(range.high(axis))
        })
    };
    let size = |range: &GridBox<D>, axis| range.high(axis) - range.low(axis);
    for axis in (0..D).rev() {
        let (common, widest) = (common(axis), boxes.iter().max_by_key(|range| size(range, axis))?);
        if common.is_empty() {
            return None;
        }
        if common.len() < size(widest, axis) {
            return Some((widest.with_axis(axis, common), hull));
        }
    }
    Some((hull, hull))
}

/// The number of points. A buffer in a dry run may be larger than any memory.
fn points_of<const D: usize>(range: &GridBox<D>) -> u128 {
    (0..D).fold(1, |points: u128, axis| points.saturating_mul((range.high(axis) - range.low(axis)) as u128))
}

fn sum(numbers: impl Iterator<Item = u128>) -> u128 {
    numbers.fold(0, u128::saturating_add)
}

/// The shape of all regions: those of [`periodic`](crate::Neighborhood::periodic) neighbourhoods, of
/// [`fixed`](crate::fixed) regions and of closures that return a [`Region`]. A loop over their elements has
/// its checks inside.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnyBoxes<const D: usize> {
    largest: OneBox<D>,
}

impl<const D: usize> RegionShape<D> for AnyBoxes<D> {
    const WORDS: &'static str = "any boxes";
    const IS_EXACT: bool = false;

    #[inline]
    fn fits(_: &[GridBox<D>]) -> bool {
        true
    }

    #[inline]
    fn new(boxes: &[GridBox<D>]) -> Self {
        // A function that returned the shape itself would leave it in memory, from where it would be copied.
        let largest = if boxes.len() > 1 { largest_of(boxes) } else { 0 };
        Self { largest: OneBox::of(boxes.get(largest)) }
    }

    #[inline]
    fn on_line(&self, point: [usize; D]) -> (usize, usize) {
        self.largest.on_line(point)
    }
}

/// The number of the largest of these boxes.
#[inline(never)]
fn largest_of<const D: usize>(boxes: &[GridBox<D>]) -> usize {
    (0..boxes.len()).max_by_key(|&at| boxes[at].len()).unwrap_or(0)
}

macro_rules! shapes {
    ($($shape:ident),*) => {$(
        impl<const D: usize> sealed::Sealed for $shape<D> {}

        impl<const D: usize> fmt::Debug for $shape<D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Self::WORDS)
            }
        }
    )*};
}

shapes!(OneBox, Cross, AnyBoxes);

mod sealed {
    pub trait Sealed {}
}
