//! Range mappers for random programs. All are monotonic and stay in the buffer; mappers for writes are exact.

use anabranch_graph::command::{Mapper, erase};
use anabranch_grid::*;

/// Takes random choices one after the other. When they are used up, it takes zeros, the simplest choices.
pub struct Picks<'a>(pub &'a [u16]);

impl Picks<'_> {
    pub fn below(&mut self, n: usize) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first as usize % n.max(1)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    /// A non-empty box inside `bounds`, often all of it.
    pub fn part_of(&mut self, bounds: GridBox<3>) -> GridBox<3> {
        if !self.chance(60) {
            return bounds;
        }
        let (mut min, mut max) = (bounds.min(), bounds.max());
        for axis in 0..3 {
            let size = max[axis] - min[axis];
            let low = self.below(size);
            min[axis] += low;
            max[axis] = min[axis] + 1 + self.below(size - low);
        }
        GridBox::new(min, max)
    }
}

fn three(mapper: impl RangeMapper<3, 3> + 'static, extent: Extent<3>) -> Mapper {
    erase(mapper, extent)
}

fn within(mapper: Mapper, bounds: Region<3>) -> Mapper {
    Mapper::new(move |chunk| mapper.map(chunk).intersection(&bounds))
}

/// The box that keeps only `axis` of `range`, and is all of `extent` on the others.
fn slab(range: std::ops::Range<usize>, extent: Extent<3>) -> GridBox<3> {
    GridBox::new([range.start.min(extent[0]), 0, 0], [range.end.min(extent[0]), extent[1], extent[2]])
}

/// Two boxes of a buffer, with a gap between them where it has more than two columns.
fn two_parts(extent: Extent<3>) -> Region<3> {
    let third = extent[1].div_ceil(3);
    Region::from_boxes([
        GridBox::full([extent[0], third, extent[2]]),
        GridBox::new([0, extent[1] - third, 0], [extent[0], extent[1], extent[2]]),
    ])
}

/// A mapper for reading, and its name. It maps only to points of `readable`.
pub fn reading(picks: &mut Picks, extent: Extent<3>, readable: &Region<3>) -> (Mapper, &'static str) {
    let radius = std::array::from_fn(|_| picks.below(3));
    let near = neighborhood(radius);
    let flat: Option<Extent<2>> = (extent[2] == 1).then(|| Extent([extent[0], extent[1]]));
    let (mapper, name): (Mapper, _) = match picks.below(13) {
        0 => (three(all(), extent), "all"),
        1 => (three(one_to_one(), extent), "one_to_one"),
        2 => (three(near, extent), "neighborhood"),
        3 => (three(near.periodic(), extent), "neighborhood.periodic"),
        4 => (three(near.along_axes(), extent), "neighborhood.along_axes"),
        5 => (three(near.along_axes().periodic(), extent), "neighborhood.along_axes.periodic"),
        6 => (three(slice(picks.below(3)), extent), "slice"),
        7 => (three(fixed(picks.part_of(GridBox::full(extent))), extent), "fixed"),
        8 => match flat {
            Some(flat) if radius[0] > 0 => {
                // In two dimensions, if the index space is also flat.
                let mapper = erase(transposed(), flat);
                let three = three(permuted([1, 0, 2]), extent);
                (
                    Mapper::new(move |c| {
                        let is_flat = c.global.extent()[2] == 1 && c.global.min()[2] == 0;
                        if is_flat { mapper.map(c) } else { three.map(c) }
                    }),
                    "transposed",
                )
            }
            _ => (three(permuted([1, 2, 0]), extent), "permuted"),
        },
        9 => (three(even_split(), extent), "even_split"),
        10 => {
            let prefix = move |c: &Chunk<3>, _: Extent<3>| slab(0..c.range.max()[0], extent);
            (three(prefix, extent), "prefix")
        }
        11 => {
            let parts = two_parts(extent);
            let rows =
                move |c: &Chunk<3>, e: Extent<3>| parts.intersection(&neighborhood([1, 9, 9]).map(c, e));
            (three(rows, extent), "two parts of the rows around")
        }
        _ => {
            // The first and last rows of the buffer, for the chunks at the border; nothing inside.
            let border = move |c: &Chunk<3>, e: Extent<3>| {
                let first = c.range.min()[0] == c.global.min()[0];
                let last = c.range.max()[0] == c.global.max()[0];
                let rows = [(first, 0..1), (last, e[0] - 1..e[0])];
                Region::from_boxes(rows.into_iter().filter(|r| r.0).map(|r| slab(r.1, e)))
            };
            (three(border, extent), "border")
        }
    };
    (within(mapper, readable.clone()), name)
}

/// A mapper for writing, and its name. With `rows`, the index space is cut along axis 0 only.
pub fn writing(
    picks: &mut Picks,
    extent: Extent<3>,
    rows: bool,
    writable: Region<3>,
) -> (Mapper, &'static str) {
    let (mapper, name): (Mapper, _) = match picks.below(if rows { 7 } else { 5 }) {
        0 => (three(one_to_one(), extent), "one_to_one"),
        1 => (three(permuted([1, 0, 2]), extent), "permuted"),
        2 => {
            let mirror = move |c: &Chunk<3>, e: Extent<3>| {
                let (min, max) = (c.range.min(), c.range.max());
                let flip = |at: usize| e[0].saturating_sub(at);
                GridBox::new([flip(max[0]), min[1], min[2]], [flip(min[0]), max[1], max[2]])
            };
            (three(mirror, extent), "mirror")
        }
        3 => {
            let first = move |c: &Chunk<3>, e: Extent<3>| match c.range.min() == c.global.min() {
                true => GridBox::full(e),
                false => GridBox::EMPTY,
            };
            (three(first, extent), "all by the first chunk")
        }
        4 => {
            let parts = two_parts(extent);
            (
                three(move |c: &Chunk<3>, _: Extent<3>| parts.intersection(&c.range.into()), extent),
                "two parts",
            )
        }
        5 => (three(even_split(), extent), "even_split"),
        _ => {
            let double =
                move |c: &Chunk<3>, e: Extent<3>| slab(2 * c.range.min()[0]..2 * c.range.max()[0], e);
            (three(double, extent), "two rows each")
        }
    };
    (within(mapper, writable), name)
}
