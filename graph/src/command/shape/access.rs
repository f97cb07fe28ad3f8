//! One access of a launch.

use crate::{
    command::{mapper::Mapper, source::Source, split::Split},
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
    /// The region of a box of the index space, as if it were one chunk.
    pub(super) fn region(&self, split: &Split, range: GridBox<3>) -> Region<3> {
        let chunk = Chunk { range, global: split.space() };
        match self {
            Self::User(mapper) => mapper.map(&chunk),
            Self::First(all) if chunk.range.min() == chunk.global.min() => (**all).into(),
            Self::First(_) => Region::empty(),
        }
    }

    /// Whether the pieces of a split are known to access disjoint regions whose union is the region of the
    /// whole index space.
    pub(super) fn is_exact(&self, split: &Split) -> bool {
        matches!(self, Self::User(mapper) if mapper.is_exact(split.cut_axes()))
    }

    /// Whether all chunks are known to access the same region.
    pub(super) fn is_constant(&self) -> bool {
        matches!(self, Self::User(mapper) if mapper.is_constant())
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
    /// Unless `is_whole`: the region of this node's chunk. Then, if there are several: the regions of the
    /// chunk's pieces.
    own: SmallVec<[Region<3>; 1]>,
    /// Whether this node has the only chunk, or the index space is empty.
    is_whole: bool,
}

impl AccessShape {
    pub(super) fn new(operand: usize, mode: Mode, map: AccessMap, split: &Split, own: &Range<usize>) -> Self {
        let chunks = split.chunks();
        let whole = if chunks == 0 { Region::empty() } else { map.region(split, split.space()) };
        let is_whole = own.len() == chunks && chunks <= 1;
        let mut regions = SmallVec::new();
        if !is_whole {
            regions.push(match own.is_empty() {
                true => Region::empty(),
                false => map.region(split, split.range(own.clone())),
            });
        }
        for chunk in own.clone() {
            let pieces = split.pieces(chunk);
            if pieces > 1 {
                regions.extend((0..pieces).map(|at| map.region(split, split.piece(chunk, at))));
            }
        }
        Self { operand, mode, map, whole, own: regions, is_whole }
    }

    /// The regions of the pieces of this node's chunk, if there are several.
    pub(super) fn pieces(&self) -> &[Region<3>] {
        &self.own[usize::from(!self.is_whole)..]
    }

    /// The region of piece number `at` of this node's chunk.
    pub(in crate::command) fn piece(&self, at: usize) -> &Region<3> {
        self.pieces().get(at).unwrap_or_else(|| self.mine())
    }

    /// What each node has after the access, if the access overwrites all of a buffer (`whole`) and every node
    /// can compute the part of each node.
    pub(in crate::command) fn source(&self, split: &Split, whole: &GridBox<3>) -> Option<Source> {
        let mapper = match &self.map {
            _ if !self.whole.contains_box(whole) => return None,
            _ if split.chunks() == 1 => None,
            AccessMap::User(mapper) if self.map.is_exact(split) => Some(mapper.clone()),
            _ => return None,
        };
        Some(Source { split: split.clone(), mapper })
    }

    /// Whether each node reads what it has, and nothing else.
    pub(in crate::command) fn is_of(&self, split: &Split, source: &Source) -> bool {
        match (&source.mapper, &self.map) {
            (None, _) => {
                let is_one = !split.everywhere && split.chunks() == 1;
                is_one && split.node_of(0) == source.split.node_of(0)
            }
            (Some(by), AccessMap::User(mapper)) => mapper == by && split.has_same_chunks(&source.split),
            _ => false,
        }
    }

    /// The region of this node's chunk.
    pub(in crate::command) fn mine(&self) -> &Region<3> {
        if self.is_whole { &self.whole } else { &self.own[0] }
    }
}
