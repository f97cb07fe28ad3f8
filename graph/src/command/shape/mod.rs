//! The shape of a launch: its split, and the regions that its range mappers give for the chunks that concern
//! this node.
//!
//! - [`access`]: one access, with the regions of this node's chunks.
//! - [`evaluate`]: how the shape is made from a launch.
//! - [`check`]: the checks of a launch.
//! - [`readers`]: which other nodes read a region.

mod access;
mod check;
mod evaluate;
mod readers;

pub(super) use evaluate::Shape;
