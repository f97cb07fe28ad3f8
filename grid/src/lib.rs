//! Index spaces: points, boxes, regions, region maps, splits and range mappers.
//!
//! Everything that Anabranch knows about *where* is said in this vocabulary, in 0 to 3 dimensions (the constant
//! parameter `D`): a [`GridBox`] is a half-open interval of points, a [`Region`] is any set of points, a
//! [`RegionMap`] gives every point of a buffer a value, [`split_1d`] and [`split_2d`] cut an index space into
//! chunks, and a [`RangeMapper`] says which region of a buffer a [`Chunk`] accesses.
//!
//! ```
//! use anabranch_grid::*;
//!
//! // A 2-D index space, cut into four chunks of rows.
//! let global = GridBox::full([100, 80]);
//! let chunks = split_1d(&global, 4, 1);
//! assert_eq!(chunks[1], GridBox::new([25, 0], [50, 80]));
//!
//! // What does the second chunk read of a buffer of that size, if each point looks at its neighbours?
//! let chunk = Chunk { range: chunks[1], global };
//! let reads: Region<2> = neighborhood([1, 1]).map(&chunk, Extent([100, 80]));
//! assert_eq!(reads.to_string(), "[24..51, 0..80]");
//!
//! // Who wrote those points last? Chunk number i wrote chunk i.
//! let mut writer = RegionMap::new([100, 80], None);
//! for (i, chunk) in chunks.iter().enumerate() {
//!     writer.update(chunk, Some(i));
//! }
//! let sources: Vec<_> = reads.boxes().iter().flat_map(|b| writer.query(b)).collect();
//! assert_eq!(sources.len(), 3);
//! assert_eq!(sources[0], (GridBox::new([24, 0], [25, 80]), &Some(0)));
//!
//! // Sets of points have one representation each, so that equality is set equality.
//! let halo = reads.difference(&chunks[1].into());
//! assert_eq!(halo.to_string(), "[24..25, 0..80] + [50..51, 0..80]");
//! assert_eq!(halo.union(&chunks[1].into()), reads);
//! ```
//!
//! The crate is pure: no threads, no `unsafe`, and no heap for a box, for a region of one box and for a region map
//! of one entry. Axis 0 is the slowest (rows of a matrix), the last axis the one that is contiguous in memory.
//! Spaces of fewer dimensions embed in spaces of more by `cast`, which pads with extent 1.

#![forbid(unsafe_code)]

mod grid_box;
mod intervals;
mod mapper;
mod neighborhood;
mod point;
mod region;
mod region_map;
mod sorted;
mod split;
mod sweep;

pub use grid_box::{GridBox, Points};
pub use mapper::{
    All, Chunk, EvenSplit, Fixed, OneToOne, Permuted, RangeMapper, Slice, all, even_split, fixed, mapper,
    one_to_one, permuted, slice, transposed,
};
pub use neighborhood::{Neighborhood, neighborhood};
pub use point::{Extent, Point};
pub use region::Region;
pub use region_map::{Query, RegionMap};
pub use split::{split_1d, split_2d};
