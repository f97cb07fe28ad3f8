//! Index spaces: points, boxes, regions, region maps, splits and range mappers.
//!
//! This is Anabranch's vocabulary for places in index spaces and buffers, in 0 to 3 dimensions (the constant
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
//! // The region of a buffer that the second chunk reads if each point reads its neighbours.
//! let chunk = Chunk { range: chunks[1], global };
//! let reads: Region<2> = neighborhood([1, 1]).map(&chunk, Extent([100, 80]));
//! assert_eq!(reads.to_string(), "[24..51, 0..80]");
//!
//! // The last writers of those points, if writer number i wrote chunk i.
//! let mut writer = RegionMap::new([100, 80], None);
//! for (i, chunk) in chunks.iter().enumerate() {
//!     writer.update(chunk, Some(i));
//! }
//! let sources: Vec<_> = reads.boxes().iter().flat_map(|b| writer.query(b)).collect();
//! assert_eq!(sources.len(), 3);
//! assert_eq!(sources[0], (GridBox::new([24, 0], [25, 80]), &Some(0)));
//!
//! // Each set of points has one representation, so that equality is set equality.
//! let halo = reads.difference(&chunks[1].into());
//! assert_eq!(halo.to_string(), "[24..25, 0..80] + [50..51, 0..80]");
//! assert_eq!(halo.union(&chunks[1].into()), reads);
//! ```
//!
//! The crate is pure: it has no threads and no `unsafe`, and a box, a region of one box and a region map of
//! one entry need no heap memory. Axis 0 is the slowest (the rows of a matrix); the last axis is contiguous
//! in memory. `cast` embeds a space in a space of more dimensions, padded with extent 1.

#![forbid(unsafe_code)]

mod grid_box;
mod mapper;
mod neighborhood;
mod point;
mod region;
mod region_map;
mod shape;
mod split;
mod sweep;
mod value;

pub use grid_box::{GridBox, Points};
pub use mapper::{
    All, Chunk, EvenSplit, Fixed, OneToOne, Permuted, RangeMapper, Slice, all, even_split, fixed, mapper,
    one_to_one, permuted, slice, transposed,
};
pub use neighborhood::{Neighborhood, neighborhood};
pub use point::{Extent, Point};
pub use region::Region;
pub use region_map::{Query, RegionMap};
pub use shape::{AnyBoxes, Cross, MappedRegion, OneBox, RegionShape};
pub use split::{split_1d, split_2d};
pub use value::MapperValue;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
