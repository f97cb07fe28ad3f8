//! Region maps: a value for every point of a buffer, updated and queried by box.
//!
//! [`map`] has the map and its operations. Its entries are in a [sorted list](sorted), which has a [fast
//! path](intervals) for maps that are split along one axis only.

mod entry;
mod intervals;
mod map;
mod sorted;

pub use map::{Query, RegionMap};
