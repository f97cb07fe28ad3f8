//! Sources: which nodes have which parts of a buffer, as far as every node knows it.
//!
//! A node knows what it has itself, and not what others have. There is one exception: after a launch that
//! overwrites all of a buffer, every node can compute the part of every other one, until nodes send each
//! other parts of it. If the next launch reads the same region on all nodes, they *exchange* it together.
//! That takes a number of messages which grows with the logarithm of the nodes, where every node would
//! otherwise send one to every other node.
//!
//! What a node derives from a source must be the same on all nodes. So a source follows from launches alone,
//! and not from what this node has of the buffer.

use super::{mapper::Mapper, split::Split, types::NodeId};
use anabranch_grid::Region;
use std::sync::Arc;

/// The least number of nodes that exchange parts together. Fewer nodes send as few messages if each sends to
/// each other one, and no part goes through a third node.
const FEW: u16 = 4;

/// What each node has of a buffer: the nodes of these chunks have what the mapper says.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Source {
    pub(super) split: Split,
    /// One of those that are known to be exact. They can be compared, too, so that launches on the buffer are
    /// recognised when they repeat. `None` if there is one chunk, whose node has all.
    pub(super) mapper: Option<Mapper>,
}

/// The parts of nodes, by ascending node. None is empty.
pub(super) type Parts = Arc<[(NodeId, Region<3>)]>;

impl Source {
    /// Whether this number of nodes exchange parts together.
    pub(super) fn is_of_use(nodes: u16) -> bool {
        nodes >= FEW
    }

    /// What the nodes have of a region.
    pub(super) fn parts(&self, region: &Region<3>) -> Parts {
        let Self { split, mapper } = self;
        let part = |chunk| match mapper {
            Some(mapper) => mapper.map(&split.chunk(chunk)).intersection(region),
            None => region.clone(),
        };
        let chunks = (0..split.chunks()).filter(|&chunk| !split.is_empty(chunk));
        let parts = chunks.map(|chunk| (split.node_of(chunk), part(chunk)));
        parts.filter(|(_, part)| !part.is_empty()).collect()
    }
}
