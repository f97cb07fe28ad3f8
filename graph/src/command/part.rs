//! The part of a task that a node executes, by arithmetic alone: before the task is submitted.

use super::{
    launch::{Hints, Work},
    split::Split,
    types::NodeId,
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
/// task reduces to, if it has reductions.
///
/// ```
/// use anabranch_graph::command::{Hints, NodeId, Work, part_of_node};
/// use anabranch_grid::GridBox;
///
/// let work = Work::Kernel { space: GridBox::full([10, 8, 1]) };
/// let part = part_of_node(&work, &Hints::default(), NodeId(1), 4, None);
/// assert_eq!(part.chunk, Some(GridBox::new([3, 0, 0], [6, 8, 1])));
/// ```
///
/// # Panics
/// If a hint is 0 or names a node that does not exist.
pub fn part_of_node(work: &Work, hints: &Hints, node: NodeId, nodes: u16, reduced: Option<usize>) -> Part {
    let split = Split::new(work, hints, nodes, reduced);
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
/// let pieces: Vec<_> = pieces_of_node(&work, &hints, NodeId(1), 2).collect();
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
) -> impl Iterator<Item = GridBox<3>> + use<> {
    let split = Split::new(work, hints, nodes, None);
    split.of_node(node).flat_map(move |chunk| (0..split.pieces(chunk)).map(move |at| split.piece(chunk, at)))
}

/// The leaves of the reduction tree that each node computes, for the nodes that compute any, ascending. `reduced` is the number
/// of elements that the task reduces to.
///
/// ```
/// use anabranch_graph::command::{Hints, NodeId, Work, leaves_by_node};
/// use anabranch_grid::GridBox;
///
/// let work = Work::Kernel { space: GridBox::full([5, 8, 1]) };
/// let leaves = leaves_by_node(&work, &Hints::default(), 3, 1);
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
) -> impl Iterator<Item = (NodeId, Range<u32>)> + use<> {
    let split = Split::new(work, hints, nodes, Some(reduced));
    (0..split.chunks()).map(move |chunk| (split.node_of(chunk), split.leaves_of(chunk..chunk + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{CommandGraph, CommandKind, Launch};
    use crate::task::TaskId;

    #[test]
    fn the_part_is_what_the_commands_execute() {
        let space = GridBox::full([11, 5, 1]);
        let all = [Work::Kernel { space }, Work::HostChunks { space }, Work::HostOnce, Work::Collective];
        for (work, nodes) in all.into_iter().flat_map(|work| [1, 2, 3, 7, 16].map(|nodes| (work, nodes))) {
            for node in (0..nodes).map(NodeId) {
                let mut graph = CommandGraph::new(node, nodes);
                let commands = graph.launch(&Launch::new(TaskId(1), work)).unwrap();
                let executed: Vec<_> = commands
                    .iter()
                    .filter_map(|command| match &command.kind {
                        CommandKind::Execute { chunk, .. } => Some(chunk.range),
                        _ => None,
                    })
                    .collect();
                let part = part_of_node(&work, &Hints::default(), node, nodes, None);
                assert_eq!(Vec::from_iter(part.chunk), executed, "{work:?} on {node} of {nodes}");
            }
        }
    }

    #[test]
    fn the_leaves_of_all_nodes_are_those_of_each() {
        let hints = |node| Hints { node, leaves: Some(9), ..Hints::default() };
        for rows in [0, 1, 5, 9, 40] {
            let work = Work::Kernel { space: GridBox::full([rows, 5, 1]) };
            for (nodes, on) in [(1, None), (2, None), (4, Some(NodeId(2))), (7, None), (16, None)] {
                let all: Vec<_> = leaves_by_node(&work, &hints(on), nodes, 1).collect();
                let each = (0..nodes).map(NodeId).filter_map(|node| {
                    let leaves = part_of_node(&work, &hints(on), node, nodes, Some(1)).leaves;
                    (!leaves.is_empty()).then_some((node, leaves))
                });
                assert_eq!(all, Vec::from_iter(each), "{rows} rows on {nodes} nodes");
                assert_eq!(all.last().map_or(0, |(_, last)| last.end), rows.min(9) as u32);
            }
        }
    }
}
