//! The neighbourhood mapper: stencils, clamped at the buffer's edges or wrapped around.

use crate::{
    grid_box::GridBox,
    mapper::{Chunk, RangeMapper},
    point::Extent,
    region::Region,
    shape::{AnyBoxes, Cross, OneBox, RegionShape},
    value::MapperValue,
};
use smallvec::{SmallVec, smallvec};
use std::{fmt, marker::PhantomData, ops::Range};

/// Each point accesses the points within `radius` on every axis.
///
/// The shape is the box around the point, or with [`along_axes`](Neighborhood::along_axes) the cross of lines
/// through it. At the edges it is clamped to the buffer, or with [`periodic`](Neighborhood::periodic) wrapped
/// around. In both cases it never leaves the buffer.
///
/// ```
/// use anabranch_grid::{Chunk, Extent, GridBox, RangeMapper, neighborhood};
/// let chunk = Chunk { range: GridBox::new([0, 2], [2, 4]), global: GridBox::full([8, 8]) };
/// let map = |n: &dyn RangeMapper<2, 2>| n.map(&chunk, Extent([8, 8])).to_string();
/// assert_eq!(map(&neighborhood([1, 1])), "[0..3, 1..5]");
/// assert_eq!(map(&neighborhood([1, 1]).along_axes()), "[0..2, 1..5] + [2..3, 2..4]");
/// assert_eq!(map(&neighborhood([1, 1]).periodic()), "[0..3, 1..5] + [7..8, 1..5]");
/// ```
pub fn neighborhood<const K: usize>(radius: [usize; K]) -> Neighborhood<K> {
    Neighborhood { radius, along_axes: false, periodic: false, shape: PhantomData }
}

/// See [`neighborhood`]. `S` is the [shape](RangeMapper::Shape) of its regions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Neighborhood<const K: usize, S = OneBox<K>> {
    radius: [usize; K],
    along_axes: bool,
    periodic: bool,
    shape: PhantomData<S>,
}

impl<const K: usize> Neighborhood<K> {
    /// Takes the cross shape: neighbours on one axis at a time, no diagonal neighbours.
    pub fn along_axes(mut self) -> Neighborhood<K, Cross<K>> {
        self.along_axes = true;
        self.with_shape()
    }
}

impl<const K: usize> Neighborhood<K, AnyBoxes<K>> {
    /// Takes the cross shape: neighbours on one axis at a time, no diagonal neighbours.
    pub fn along_axes(mut self) -> Self {
        self.along_axes = true;
        self
    }
}

impl<const K: usize, S> Neighborhood<K, S> {
    /// Wraps around at the buffer's edges on every axis, instead of clamping. The radius may exceed the
    /// buffer.
    pub fn periodic(mut self) -> Neighborhood<K, AnyBoxes<K>> {
        self.periodic = true;
        self.with_shape()
    }

    /// The same neighbourhood without a promise of its shape: for a program that decides while it runs
    /// whether to [wrap around](Self::periodic).
    pub fn any_boxes(self) -> Neighborhood<K, AnyBoxes<K>> {
        self.with_shape()
    }

    fn with_shape<T>(self) -> Neighborhood<K, T> {
        let Self { radius, along_axes, periodic, shape: _ } = self;
        Neighborhood { radius, along_axes, periodic, shape: PhantomData }
    }
}

type Boxes<const K: usize> = SmallVec<[GridBox<K>; 4]>;

impl<const K: usize, S: RegionShape<K>> RangeMapper<K, K> for Neighborhood<K, S> {
    type Shape = S;

    fn map(&self, chunk: &Chunk<K>, buffer: Extent<K>) -> Region<K> {
        if chunk.range.is_empty() || buffer.is_empty() {
            return Region::empty();
        }
        if !self.along_axes || K == 0 {
            return match self.periodic {
                true => Region::from_boxes(wrapped(&chunk.range, self.radius, buffer)),
                false => clamped(&chunk.range, self.radius, buffer).into(),
            };
        }
        let along = |axis: usize| {
            let mut radius = [0; K];
            radius[axis] = self.radius[axis];
            radius
        };
        if self.periodic {
            return Region::from_boxes((0..K).flat_map(|axis| wrapped(&chunk.range, along(axis), buffer)));
        }
        Region::from_boxes((0..K).map(|axis| clamped(&chunk.range, along(axis), buffer)))
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

/// `range` grown by `radius`, clamped to the buffer.
fn clamped<const K: usize>(range: &GridBox<K>, radius: [usize; K], buffer: Extent<K>) -> GridBox<K> {
    let min: [usize; K] = std::array::from_fn(|axis| range.low(axis).saturating_sub(radius[axis]));
    let max: [usize; K] =
        std::array::from_fn(|axis| range.high(axis).saturating_add(radius[axis]).min(buffer[axis]));
    GridBox::new(min, max)
}

/// `range` grown by `radius`, modulo the buffer: all combinations of the intervals on each axis.
fn wrapped<const K: usize>(range: &GridBox<K>, radius: [usize; K], buffer: Extent<K>) -> Boxes<K> {
    let mut boxes: Boxes<K> = smallvec![GridBox::full(buffer)];
    for axis in 0..K {
        let [low, high] = wrap(range.low(axis)..range.high(axis), radius[axis], buffer[axis]);
        let parts = [low, high].into_iter().filter(|part| !part.is_empty());
        boxes = parts.flat_map(|part| boxes.iter().map(move |b| b.with_axis(axis, part.clone()))).collect();
    }
    boxes
}

/// `interval` grown by `radius`, modulo `size`: one interval, or two if it crosses the edge.
fn wrap(interval: Range<usize>, radius: usize, size: usize) -> [Range<usize>; 2] {
    let len = interval.len().saturating_add(radius).saturating_add(radius);
    if len >= size {
        return [0..size, 0..0];
    }
    let first = interval.start % size;
    let start = if first >= radius { first - radius } else { first + (size - radius) };
    let before_edge = size - start;
    if len <= before_edge { [start..start + len, 0..0] } else { [0..len - before_edge, start..size] }
}

impl<const K: usize, S> fmt::Debug for Neighborhood<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "neighborhood({:?})", self.radius)?;
        f.write_str(if self.along_axes { ".along_axes()" } else { "" })?;
        f.write_str(if self.periodic { ".periodic()" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighborhood_describes_itself_as_written() {
        let mapper: &dyn RangeMapper<2, 2> = &neighborhood([1, 2]).along_axes().periodic();
        assert_eq!(format!("{mapper:?}"), "neighborhood([1, 2]).along_axes().periodic()");
    }
}
