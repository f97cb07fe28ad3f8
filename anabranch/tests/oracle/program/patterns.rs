//! How kernels split their index spaces, and which elements they read and write.

use anabranch::{
    grid::{Chunk, Extent, GridBox, MapperValue, Point, RangeMapper, Region, split_1d},
    prelude::*,
};

/// How an index space is split.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    pub chunks: Option<usize>,
    pub granularity: usize,
    pub tiles: Option<[usize; 2]>,
    /// At most this many pieces, on nodes.
    pub pieces: usize,
}

impl Split {
    /// The pieces of what one of these nodes does for a kernel over an index space of this rank.
    pub fn pieces_of(&self, rank: usize, chunk: &GridBox<3>, nodes: usize) -> Vec<GridBox<3>> {
        let granularity = self.tiles.filter(|_| rank >= 2).map_or(self.granularity, |[rows, _]| rows);
        split_1d(chunk, self.pieces.div_ceil(nodes), granularity)
    }

    /// The chunks of a reduction over an index space of this rank.
    pub fn chunks(&self, rank: usize, space: &GridBox<3>) -> Vec<GridBox<3>> {
        // Chunks of a reduction are rows. The height of a tile says how many rows stay together.
        let granularity = self.tiles.filter(|_| rank >= 2).map_or(self.granularity, |[rows, _]| rows);
        split_1d(space, self.chunks.unwrap_or(64), granularity)
    }
}

/// The elements that a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadPattern {
    All,
    Even,
    Corner,
    /// Elements around the chunk, by a custom mapper. The patterns below do the same if the ranks differ.
    Near(usize),
    Same,
    Box(usize),
    Cross(usize),
    Torus(usize),
    Slice(usize),
    Reversed,
}

impl<const K: usize, const B: usize> RangeMapper<K, B> for ReadPattern {
    type Shape = AnyBoxes<B>;

    fn map(&self, chunk: &Chunk<K>, buffer: Extent<B>) -> Region<B> {
        fn same<const K: usize, const B: usize>(
            mapper: &dyn RangeMapper<K, K>,
            chunk: &Chunk<K>,
            buffer: Extent<B>,
        ) -> Region<B> {
            mapper.map(chunk, buffer.cast()).cast()
        }
        match *self {
            Self::All => all().map(chunk, buffer),
            Self::Even => even_split().map(chunk, buffer),
            Self::Corner => GridBox::full(buffer.0.map(|n| n.min(2))).into(),
            Self::Near(radius) => near(chunk, buffer, radius),
            _ if K != B => near(chunk, buffer, 1),
            Self::Same => same(&one_to_one(), chunk, buffer),
            Self::Box(r) => same(&neighborhood([r; K]), chunk, buffer),
            Self::Cross(r) => same(&neighborhood([r; K]).along_axes(), chunk, buffer),
            Self::Torus(r) => same(&neighborhood([r; K]).periodic(), chunk, buffer),
            Self::Slice(_) if K == 0 => same(&all(), chunk, buffer),
            Self::Slice(dim) => same(&slice(dim % K), chunk, buffer),
            Self::Reversed => same(&permuted(std::array::from_fn::<_, K, _>(|d| K - 1 - d)), chunk, buffer),
        }
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

fn near<const K: usize, const B: usize>(chunk: &Chunk<K>, buffer: Extent<B>, radius: usize) -> Region<B> {
    if chunk.range.is_empty() && B > 0 {
        return Region::empty();
    }
    let interval = |d: usize| match d < K {
        true => (chunk.range.min()[d].saturating_sub(radius), chunk.range.max()[d] + radius),
        false => (0, buffer[d]),
    };
    let min: [usize; B] = std::array::from_fn(|d| interval(d).0.min(buffer[d]));
    let max: [usize; B] = std::array::from_fn(|d| interval(d).1.min(buffer[d]));
    GridBox::new(min, max).into()
}

/// The element that a kernel writes for a point of its index space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WritePattern {
    Same,
    Reversed,
    /// The index space is shifted by this much along the first dimension.
    Shifted(usize),
}

impl WritePattern {
    pub fn point<const K: usize>(self, p: [usize; K]) -> [usize; K] {
        match self {
            Self::Same => p,
            Self::Reversed => std::array::from_fn(|d| p[K - 1 - d]),
            Self::Shifted(by) => std::array::from_fn(|d| if d == 0 { p[d] - by } else { p[d] }),
        }
    }

    /// The index space of `rank` dimensions whose points are mapped to `target`.
    pub fn index_space(self, rank: usize, target: &GridBox<3>) -> GridBox<3> {
        if target.is_empty() || rank == 0 {
            return *target;
        }
        let back = |p: Point<3>| {
            let mut q = p.0;
            match self {
                Self::Same => {}
                Self::Reversed => q[..rank].reverse(),
                Self::Shifted(by) => q[0] += by,
            }
            q
        };
        GridBox::new(back(target.min()), back(target.max()))
    }
}

impl WritePattern {
    /// The elements that a kernel of this rank writes for a part of its index space: the inverse of
    /// `index_space`.
    pub fn target(self, rank: usize, part: &GridBox<3>) -> GridBox<3> {
        match self {
            Self::Shifted(by) if rank > 0 && !part.is_empty() => {
                let back = |mut p: Point<3>| {
                    p.0[0] -= by;
                    p
                };
                GridBox::new(back(part.min()), back(part.max()))
            }
            Self::Shifted(_) => *part,
            Self::Same | Self::Reversed => self.index_space(rank, part),
        }
    }
}

impl<const K: usize> RangeMapper<K, K> for WritePattern {
    type Shape = OneBox<K>;

    fn map(&self, chunk: &Chunk<K>, _: Extent<K>) -> Region<K> {
        if chunk.range.is_empty() {
            return Region::empty();
        }
        GridBox::new(self.point(chunk.range.min().0), self.point(chunk.range.max().0)).into()
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}
