//! One access of a launch.

use crate::{
    command::{launch::Mapper, split::Split},
    task::Mode,
};
use anabranch_grid::{Chunk, GridBox, Region};
use smallvec::SmallVec;
use std::ops::Range;

/// The function from chunks to the regions that they access.
#[derive(Clone)]
pub(super) enum AccessMap {
    /// A mapper of the program.
    User(Mapper),
    /// The chunk with the first point of the index space accesses all of this; other chunks access nothing.
    First(Box<GridBox<3>>),
}

impl AccessMap {
    /// The region of the chunks `run`, as if they were one chunk.
    pub(super) fn region(&self, split: &Split, run: Range<usize>) -> Region<3> {
        let chunk = Chunk { range: split.range(run), global: split.space() };
        match self {
            Self::User(mapper) => mapper(&chunk),
            Self::First(all) if chunk.range.min() == chunk.global.min() => (**all).into(),
            Self::First(_) => Region::empty(),
        }
    }
}

/// One access of a launch, with the regions that concern this node.
pub(in crate::command) struct AccessShape {
    /// The buffer, by its position among the buffers of the launch.
    pub(in crate::command) operand: usize,
    pub(in crate::command) mode: Mode,
    pub(super) map: AccessMap,
    /// The region of the whole index space.
    pub(in crate::command) whole: Region<3>,
    /// Unless `is_whole`: the regions of this node's chunks, and then their union if there is not exactly one chunk.
    pub(super) own: SmallVec<[Region<3>; 1]>,
    /// Whether this node has the only chunk, or the index space is empty.
    pub(super) is_whole: bool,
}

impl AccessShape {
    pub(super) fn new(operand: usize, mode: Mode, map: AccessMap, split: &Split, own: &Range<usize>) -> Self {
        let chunks = split.chunks();
        let whole = if chunks == 0 { Region::empty() } else { map.region(split, 0..chunks) };
        let is_whole = own.len() == chunks && chunks <= 1;
        let mut regions = SmallVec::new();
        if !is_whole {
            regions.extend(own.clone().map(|chunk| map.region(split, chunk..chunk + 1)));
            if own.len() != 1 {
                let union = regions.iter().cloned().collect();
                regions.push(union);
            }
        }
        Self { operand, mode, map, whole, own: regions, is_whole }
    }

    /// The region of this node's chunk number `at`, counted from its first.
    pub(in crate::command) fn chunk(&self, at: usize) -> &Region<3> {
        if self.is_whole { &self.whole } else { &self.own[at] }
    }

    /// The region of all chunks of this node.
    pub(in crate::command) fn mine(&self) -> &Region<3> {
        if self.is_whole { &self.whole } else { &self.own[self.own.len() - 1] }
    }
}
