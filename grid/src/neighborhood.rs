//! The neighbourhood mapper: stencils, clamped at the buffer's edges or wrapped around.

use crate::{
    grid_box::GridBox,
    mapper::{Chunk, RangeMapper},
    point::Extent,
    region::Region,
    value::MapperValue,
};
use smallvec::{SmallVec, smallvec};
use std::{fmt, ops::Range};

/// Each point accesses the points within `radius` on every axis.
///
/// The shape is the box around the point, or with [`along_axes`](Neighborhood::along_axes) the cross of lines
/// through it. At the edges it is clamped to the buffer, or with [`periodic`](Neighborhood::periodic) wrapped around.
/// In both cases it never leaves the buffer.
///
/// ```
/// use anabranch_grid::{Chunk, Extent, GridBox, RangeMapper, neighborhood};
/// let chunk = Chunk { range: GridBox::new([0, 2], [2, 4]), global: GridBox::full([8, 8]) };
/// let map = |n: anabranch_grid::Neighborhood<2>| n.map(&chunk, Extent([8, 8])).to_string();
/// assert_eq!(map(neighborhood([1, 1])), "[0..3, 1..5]");
/// assert_eq!(map(neighborhood([1, 1]).along_axes()), "[0..2, 1..5] + [2..3, 2..4]");
/// assert_eq!(map(neighborhood([1, 1]).periodic()), "[0..3, 1..5] + [7..8, 1..5]");
/// ```
pub fn neighborhood<const K: usize>(radius: [usize; K]) -> Neighborhood<K> {
    Neighborhood { radius, along_axes: false, periodic: false }
}

/// See [`neighborhood`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Neighborhood<const K: usize> {
    radius: [usize; K],
    along_axes: bool,
    periodic: bool,
}

impl<const K: usize> Neighborhood<K> {
    /// Takes the cross shape: neighbours on one axis at a time, no diagonal neighbours.
    pub fn along_axes(mut self) -> Self {
        self.along_axes = true;
        self
    }

    /// Wraps around at the buffer's edges on every axis, instead of clamping. The radius may exceed the buffer.
    pub fn periodic(mut self) -> Self {
        self.periodic = true;
        self
    }
}

type Boxes<const K: usize> = SmallVec<[GridBox<K>; 4]>;

impl<const K: usize> RangeMapper<K, K> for Neighborhood<K> {
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

impl<const K: usize> fmt::Debug for Neighborhood<K> {
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
