//! Turns: the order of effects on a host object of the whole cluster.
//!
//! Such an object exists once, on one node, its *home*. A task with an effect on it may run on one node or in
//! parts on several, and all parts of a task come after all parts of the task before it. So the nodes of a
//! task have the *turn*, and pass it to the nodes of the next one, in messages without data. It is collected
//! along a tree of the nodes that have it, to the *root*, and spread from there along a tree of the nodes
//! that get it: a node sends and awaits as many messages as the number of nodes has binary digits, for each
//! of the two trees. As long as tasks run on one and the same node, there is no message, and the effects on
//! that node order them.

use super::{
    launch::Launch,
    split::Split,
    types::{CommandKind, NodeId, Pass, Rank},
    weights::Weights,
};
use crate::task::ObjectId;
use smallvec::{SmallVec, smallvec};

/// Some nodes, ascending.
pub(super) type Nodes = SmallVec<[NodeId; 2]>;

/// The nodes that have the turn of an object.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    home: NodeId,
    nodes: Nodes,
}

impl Turn {
    /// The home, where the object was made, has the first turn.
    pub(super) fn of(home: NodeId) -> Self {
        Self { home, nodes: smallvec![home] }
    }

    /// What node `me` does to pass the turn to the nodes `next`: at most four commands, in this order.
    pub(super) fn passes(&self, object: ObjectId, me: NodeId, next: &Nodes) -> SmallVec<[CommandKind; 4]> {
        let mut found = SmallVec::new();
        if next.is_empty() || (self.nodes.len() == 1 && self.nodes == *next) {
            return found;
        }
        let root = if self.nodes.contains(&self.home) { self.home } else { self.nodes[0] };
        let pass = |pass, targets| CommandKind::PassTurn { object, pass, targets };
        let await_turn = |pass, messages| CommandKind::AwaitTurn { object, pass, messages };
        if let Some(Tree { above, below }) = Tree::of(&self.nodes, root, me) {
            if !below.is_empty() {
                found.push(await_turn(Pass::Collect, below.len() as u32));
            }
            found.extend(above.map(|above| pass(Pass::Collect, [above].into())));
        }
        if let Some(Tree { above, below }) = Tree::of(next, root, me) {
            found.extend(above.map(|_| await_turn(Pass::Spread, 1)));
            if !below.is_empty() {
                found.push(pass(Pass::Spread, below.into_iter().collect()));
            }
        }
        found
    }

    /// The nodes of the launch have the turn now. After a snapshot only the home has it, because the other
    /// nodes do not reach the object.
    pub(super) fn pass_to(&mut self, next: &Nodes, launch: &Launch) {
        if launch.work.snapshot().is_some() {
            self.nodes = smallvec![self.home];
        } else if !next.is_empty() {
            self.nodes.clone_from(next);
        }
    }
}

/// The nodes that run a part of a launch.
pub(super) fn nodes_of(
    launch: &Launch,
    rank: Rank,
    reduced: Option<usize>,
    weights: Option<&Weights>,
) -> Nodes {
    let split = Split::new(&launch.work, &launch.hints, rank.nodes, reduced, weights);
    if split.everywhere {
        return (0..rank.nodes).map(NodeId).collect();
    }
    let chunks = (0..split.chunks()).filter(|&chunk| !split.is_empty(chunk));
    let mut nodes: Nodes = chunks.map(|chunk| split.node_of(chunk)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// The neighbours of a node in a binomial tree.
struct Tree {
    above: Option<NodeId>,
    below: SmallVec<[NodeId; 4]>,
}

impl Tree {
    /// The place of `me` in the tree of `root` and `nodes`, if it is one of them.
    fn of(nodes: &Nodes, root: NodeId, me: NodeId) -> Option<Self> {
        // The root is in front, and the others follow in their order.
        let root_at = nodes.binary_search(&root);
        let count = nodes.len() + usize::from(root_at.is_err());
        let before_root = root_at.unwrap_or_else(|at| at);
        let node_at = |at: usize| match at {
            0 => root,
            _ if at <= before_root => nodes[at - 1],
            _ => nodes[at - usize::from(root_at.is_err())],
        };
        let mine = if me == root {
            0
        } else {
            let at = nodes.binary_search(&me).ok()?;
            at + usize::from(at < before_root || root_at.is_err())
        };
        let above = (mine > 0).then(|| node_at(mine & (mine - 1)));
        let lowest = if mine == 0 { count } else { mine & mine.wrapping_neg() };
        let steps = (0..usize::BITS).map(|bit| 1 << bit).take_while(|&step| step < lowest);
        let below = steps.map(|step| mine + step).take_while(|&at| at < count).map(node_at);
        Some(Self { above, below: below.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn nodes(of: impl IntoIterator<Item = u16>) -> Nodes {
        of.into_iter().map(NodeId).collect()
    }

    #[test]
    fn a_tree_reaches_each_node_once_from_the_root() {
        for count in 1..=20_u16 {
            for root in (0..=2 * count).map(NodeId) {
                let nodes = nodes((0..count).map(|node| 2 * node));
                let all: BTreeMap<_, _> = (0..=2 * count)
                    .filter_map(|node| Some((NodeId(node), Tree::of(&nodes, root, NodeId(node))?)))
                    .collect();
                assert_eq!(all.len(), nodes.len() + usize::from(!nodes.contains(&root)));
                for (&node, tree) in &all {
                    assert_eq!(tree.above.is_none(), node == root);
                    assert!(tree.above.is_none_or(|above| all[&above].below.contains(&node)));
                    assert!(tree.below.len() <= all.len().next_power_of_two().ilog2() as usize);
                    assert!(tree.below.iter().all(|below| all[below].above == Some(node)));
                }
                let edges: usize = all.values().map(|tree| tree.below.len()).sum();
                assert_eq!(edges, all.len() - 1);
            }
        }
    }

    #[test]
    fn a_turn_that_stays_on_one_node_takes_no_message() {
        let home = NodeId(3);
        let turn = Turn::of(home);
        let object = ObjectId(1);
        for me in (0..5).map(NodeId) {
            assert!(turn.passes(object, me, &nodes([3])).is_empty());
            assert!(turn.passes(object, me, &Nodes::new()).is_empty());
            let steps = turn.passes(object, me, &nodes([1]));
            let pass = CommandKind::PassTurn { object, pass: Pass::Spread, targets: [NodeId(1)].into() };
            let arrival = CommandKind::AwaitTurn { object, pass: Pass::Spread, messages: 1 };
            let expected = match me.0 {
                1 => vec![arrival],
                3 => vec![pass],
                _ => vec![],
            };
            assert_eq!(steps[..], expected);
        }
    }
}
