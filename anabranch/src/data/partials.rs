//! Partial results of reductions without their types, as several nodes exchange them.

use anabranch_graph::command::{NodeId, subtrees};
use std::{any::Any, fmt, ops::Range, sync::Arc};

/// The partial results of one reduction to one buffer. A node computes some of them, may get those of the
/// other nodes, and may then combine all of them.
pub(crate) trait Partials: Send + Sync {
    fn shares(&self) -> &Shares;

    /// The number of bytes of one partial result.
    fn bytes(&self) -> usize;

    /// The number of times that [`combine`](Self::combine) calls the operator.
    fn calls(&self) -> usize;

    /// The address of the partial results of this node, which lie side by side. They stay there as long as
    /// [`memory`](Self::memory).
    fn own(&self) -> *const u8;

    /// Makes room for the partial results of all nodes, with those of this node in their place, if it has
    /// them already. Returns the address. They stay there until they are combined, and as long as
    /// [`memory`](Self::memory).
    fn make_room(&self) -> *mut u8;

    /// What has the memory of the partial results.
    fn memory(&self) -> Arc<dyn Any + Send + Sync>;

    /// Combines the partial results of all nodes, once, and gives the bytes of the result to `write`. This
    /// calls functions of the program.
    fn combine(&self, write: &mut dyn FnMut(&[u8]));
}

impl fmt::Debug for dyn Partials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shares())
    }
}

/// Which node has which partial results of a reduction. Each one is that of a subtree of the fixed tree, and
/// they lie in this order: so the partial results of a node lie side by side.
#[derive(Debug)]
pub(crate) struct Shares {
    leaves: u32,
    parts: Vec<Range<u32>>,
    /// For each node that has partial results, their positions.
    nodes: Vec<(NodeId, Range<usize>)>,
    /// The positions of this node's own.
    own: Range<usize>,
}

impl Shares {
    /// The shares of nodes that compute these leaves, ascending.
    pub(crate) fn new(me: NodeId, leaves_by_node: impl Iterator<Item = (NodeId, Range<u32>)>) -> Self {
        let by_node: Vec<_> = leaves_by_node.collect();
        let leaves = by_node.last().map_or(0, |(_, last)| last.end);
        let (mut parts, mut nodes, mut own) = (Vec::new(), Vec::with_capacity(by_node.len()), 0..0);
        for (node, run) in by_node {
            let first = parts.len();
            parts.extend(subtrees(leaves, run));
            if node == me {
                own = first..parts.len();
            }
            nodes.push((node, first..parts.len()));
        }
        Self { leaves, parts, nodes, own }
    }

    /// The number of leaves of the tree.
    pub(crate) fn leaves(&self) -> u32 {
        self.leaves
    }

    /// The subtrees whose partial results there are, ascending.
    pub(crate) fn parts(&self) -> &[Range<u32>] {
        &self.parts
    }

    /// The subtrees of this node.
    pub(crate) fn own_parts(&self) -> &[Range<u32>] {
        &self.parts[self.own.clone()]
    }

    /// The first leaf of this node, if it has one.
    pub(crate) fn first_leaf(&self) -> Option<u32> {
        self.own_parts().first().map(|part| part.start)
    }

    /// The positions of the partial results of this node.
    pub(crate) fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    /// Whether no other node has partial results.
    pub(crate) fn are_all_own(&self) -> bool {
        self.own.len() == self.parts.len()
    }

    /// The positions of the partial results of each node that has any.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, Range<usize>)> {
        self.nodes.iter().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partial_results_of_a_node_lie_side_by_side() {
        let leaves = || [(NodeId(0), 0..3), (NodeId(1), 3..6), (NodeId(2), 6..8)].into_iter();
        let shares = Shares::new(NodeId(1), leaves());
        assert_eq!(shares.parts(), [0..2, 2..3, 3..4, 4..6, 6..8]);
        assert_eq!((shares.own(), shares.first_leaf(), shares.leaves()), (2..4, Some(3), 8));
        assert_eq!(Vec::from_iter(shares.nodes()), [(NodeId(0), 0..2), (NodeId(1), 2..4), (NodeId(2), 4..5)]);
        let without = Shares::new(NodeId(3), leaves());
        assert_eq!((without.own_parts(), without.first_leaf()), (&[][..], None));
        assert_eq!(Shares::new(NodeId(0), std::iter::empty()).leaves(), 0);
    }
}
