//! The part of a task that a node executes, by arithmetic alone: before the task is submitted.

use super::{
    launch::{Hints, Work},
    split::Split,
    types::NodeId,
    weights::Weights,
};
use anabranch_grid::GridBox;
use std::ops::Range;

/// The part of a task that one node executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The chunk of the node, if it has one.
    pub chunk: Option<GridBox<3>>,
    /// For a task with reductions: the leaves of the reduction tree that the chunk consists of.
    pub leaves: Range<u32>,
}

/// The part of a task that `node`, one of `nodes`, executes. `reduced` is the number of elements that the
/// task reduces to, if it has reductions. The [weights of the nodes](super::CommandGraph::weights) are those
/// of the graph when the task is launched.
///
/// ```
/// use anabranch_graph::command::{Hints, NodeId, Work, part_of_node};
/// use anabranch_grid::GridBox;
///
/// let work = Work::Kernel { space: GridBox::full([10, 8, 1]) };
/// let part = part_of_node(&work, &Hints::default(), NodeId(1), 4, None, None);
/// assert_eq!(part.chunk, Some(GridBox::new([3, 0, 0], [6, 8, 1])));
/// ```
///
/// # Panics
/// If a hint is 0 or names a node that does not exist, or if there is not one weight for each node.
pub fn part_of_node(
    work: &Work,
    hints: &Hints,
    node: NodeId,
    nodes: u16,
    reduced: Option<usize>,
    weights: Option<&Weights>,
) -> Part {
    let split = Split::new(work, hints, nodes, reduced, weights);
    let own = split.of_node(node);
    let chunk = (!own.is_empty()).then(|| split.range(own.clone()));
    Part { chunk, leaves: split.leaves_of(own) }
}

/// The boxes of the pieces in which `node`, one of `nodes`, executes its part of a task without reductions.
///
/// ```
/// use anabranch_graph::command::{Hints, NodeId, Work, pieces_of_node};
/// use anabranch_grid::GridBox;
///
/// let work = Work::Kernel { space: GridBox::full([10, 8, 1]) };
/// let hints = Hints { pieces: 2, ..Hints::default() };
/// let pieces: Vec<_> = pieces_of_node(&work, &hints, NodeId(1), 2, None).collect();
/// assert_eq!(pieces, [GridBox::new([5, 0, 0], [8, 8, 1]), GridBox::new([8, 0, 0], [10, 8, 1])]);
/// ```
///
/// # Panics
/// See [`part_of_node`].
pub fn pieces_of_node(
    work: &Work,
    hints: &Hints,
    node: NodeId,
    nodes: u16,
    weights: Option<&Weights>,
) -> impl Iterator<Item = GridBox<3>> + use<> {
    let split = Split::new(work, hints, nodes, None, weights);
    let own = split.of_node(node);
    let pieces = if own.is_empty() { 0 } else { split.pieces(own.start) };
    (0..pieces).map(move |at| split.piece(own.start, at))
}

/// The leaves of the reduction tree that each node computes, for the nodes that compute any, ascending.
/// `reduced` is the number of elements that the task reduces to.
///
/// ```
/// use anabranch_graph::command::{Hints, NodeId, Work, leaves_by_node};
/// use anabranch_grid::GridBox;
///
/// let work = Work::Kernel { space: GridBox::full([5, 8, 1]) };
/// let leaves = leaves_by_node(&work, &Hints::default(), 3, 1, None);
/// assert_eq!(Vec::from_iter(leaves), [(NodeId(0), 0..2), (NodeId(1), 2..4), (NodeId(2), 4..5)]);
/// ```
///
/// # Panics
/// See [`part_of_node`].
pub fn leaves_by_node(
    work: &Work,
    hints: &Hints,
    nodes: u16,
    reduced: usize,
    weights: Option<&Weights>,
) -> impl Iterator<Item = (NodeId, Range<u32>)> + use<> {
    let split = Split::new(work, hints, nodes, Some(reduced), weights);
    let chunks =
        (0..split.chunks()).map(move |chunk| (split.node_of(chunk), split.leaves_of(chunk..chunk + 1)));
    chunks.filter(|(_, leaves)| !leaves.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{CommandGraph, CommandKind, Launch};
    use crate::task::TaskId;

    /// No weights, and some of which one is 0.
    fn weights(nodes: u16) -> [Option<Weights>; 2] {
        let weights: Vec<_> = (0..nodes).map(|node| f64::from((node + 1) % 4)).collect();
        [None, Weights::new(&weights).filter(|_| nodes > 1)]
    }

    #[test]
    fn the_part_is_what_the_commands_execute() {
        let space = GridBox::full([11, 5, 1]);
        let all = [Work::Kernel { space }, Work::HostChunks { space }, Work::HostOnce, Work::Collective];
        for (work, nodes) in all.into_iter().flat_map(|work| [1, 2, 3, 7, 16].map(|nodes| (work, nodes))) {
            for (node, weights) in
                (0..nodes).flat_map(|node| weights(nodes).map(|weights| (NodeId(node), weights)))
            {
                let mut graph = CommandGraph::new(node, nodes);
                weights.iter().for_each(|weights| graph.set_weights(weights));
                let hints = Hints { pieces: 2, ..Hints::default() };
                let commands = graph.launch(&Launch { hints, ..Launch::new(TaskId(1), work) }).unwrap();
                let executed: Vec<_> = commands
                    .iter()
                    .filter_map(|command| match &command.kind {
                        CommandKind::Execute { chunk, .. } => Some(chunk.range),
                        _ => None,
                    })
                    .collect();
                let part = part_of_node(&work, &hints, node, nodes, None, graph.weights());
                let whole = executed.iter().copied().reduce(|a, b| a.bounding(&b));
                assert_eq!(part.chunk, whole, "{work:?} on {node} of {nodes}");
                let pieces = pieces_of_node(&work, &hints, node, nodes, graph.weights());
                assert_eq!(Vec::from_iter(pieces), executed, "{work:?} on {node} of {nodes}");
            }
        }
    }

    #[test]
    fn the_leaves_of_all_nodes_are_those_of_each() {
        let hints = |node| Hints { node, leaves: Some(9), ..Hints::default() };
        for rows in [0, 1, 5, 9, 40] {
            let work = Work::Kernel { space: GridBox::full([rows, 5, 1]) };
            for (nodes, on) in [(1, None), (2, None), (4, Some(NodeId(2))), (7, None), (16, None)] {
                for weights in weights(nodes) {
                    let all: Vec<_> = leaves_by_node(&work, &hints(on), nodes, 1, weights.as_ref()).collect();
                    let each = (0..nodes).map(NodeId).filter_map(|node| {
                        let part = part_of_node(&work, &hints(on), node, nodes, Some(1), weights.as_ref());
                        (!part.leaves.is_empty()).then_some((node, part.leaves))
                    });
                    assert_eq!(all, Vec::from_iter(each), "{rows} rows on {nodes} nodes");
                    assert_eq!(all.last().map_or(0, |(_, last)| last.end), rows.min(9) as u32);
                }
            }
        }
    }
}
