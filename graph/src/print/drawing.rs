//! The drawing: a bounded list of nodes and edges.

use super::element::{Edge, EdgeKind, Node, NodeKind, State};
use std::collections::HashMap;

/// The number of nodes that a drawing keeps by default.
pub const DEFAULT_LIMIT: usize = 500;

/// How many edges are kept for each node of the limit. No picture can show more.
const EDGES_PER_NODE: usize = 10;

/// A graph to be printed, of bounded size.
#[derive(Clone, Debug)]
pub struct Drawing {
    title: String,
    limit: usize,
    nodes: Vec<Node>,
    by_id: HashMap<String, usize>,
    edges: Vec<Edge>,
    ends: Vec<[usize; 2]>,
    /// The number of nodes and of edges that were not kept.
    left_out: [usize; 2],
}

impl Drawing {
    /// An empty drawing that keeps [`DEFAULT_LIMIT`] nodes.
    pub fn new(title: impl Into<String>) -> Self {
        Self::with_limit(title, DEFAULT_LIMIT)
    }

    /// An empty drawing that keeps the first `limit` nodes and the edges between them, at most ten for each
    /// node.
    pub fn with_limit(title: impl Into<String>, limit: usize) -> Self {
        Self {
            title: title.into(),
            limit,
            nodes: Vec::new(),
            by_id: HashMap::new(),
            edges: Vec::new(),
            ends: Vec::new(),
            left_out: [0; 2],
        }
    }

    /// Adds a node, or replaces the node with the same id. Returns whether the node was kept.
    pub fn push_node(&mut self, node: Node) -> bool {
        if let Some(&known) = self.by_id.get(&node.id) {
            self.nodes[known] = node;
            return true;
        }
        if self.is_full() {
            self.left_out[0] += 1;
            return false;
        }
        self.by_id.insert(node.id.clone(), self.nodes.len());
        self.nodes.push(node);
        true
    }

    /// Adds an edge between two different nodes of the drawing. Returns whether the edge was kept.
    pub fn push_edge(&mut self, edge: Edge) -> bool {
        let has_room = self.edges.len() < self.limit.saturating_mul(EDGES_PER_NODE);
        let ends = [self.by_id.get(&edge.from), self.by_id.get(&edge.to)];
        match ends {
            [Some(&from), Some(&to)] if from != to && has_room => {
                self.edges.push(edge);
                self.ends.push([from, to]);
                true
            }
            _ => {
                self.left_out[1] += 1;
                false
            }
        }
    }

    /// Sets the state of a node. Returns whether the drawing has the node.
    pub fn set_state(&mut self, id: &str, state: State) -> bool {
        let known = self.by_id.get(id);
        known.inspect(|&&node| self.nodes[node].state = Some(state)).is_some()
    }

    /// Whether the drawing keeps no further node, so that the caller need not describe one.
    pub fn is_full(&self) -> bool {
        self.nodes.len() >= self.limit
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The nodes, in the order in which they were added.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The edges, in the order in which they were added.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// A sentence about nodes and edges that were not kept, or `None` if the drawing is complete.
    pub fn note(&self) -> Option<String> {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let [nodes, edges] = self.left_out;
        match (nodes, edges) {
            (0, 0) => None,
            (0, _) => Some(format!("{} left out", count(edges, "edge"))),
            _ => Some(format!(
                "the first {} only: {} more and {} left out",
                count(self.limit, "node"),
                nodes,
                count(edges, "edge")
            )),
        }
    }

    /// The ends of each edge, as positions in [`nodes`](Self::nodes).
    pub(super) fn ends(&self) -> &[[usize; 2]] {
        &self.ends
    }

    /// The groups, in the order in which they occur.
    pub(super) fn clusters(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for name in self.nodes.iter().filter_map(|n| n.cluster.as_deref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The kinds of nodes and of edges that occur, in the order of legends.
    pub(super) fn kinds(&self) -> (Vec<NodeKind>, Vec<EdgeKind>) {
        let nodes = NodeKind::ALL.into_iter().filter(|&k| self.nodes.iter().any(|n| n.kind == k)).collect();
        let edges = EdgeKind::ALL.into_iter().filter(|&k| self.edges.iter().any(|e| e.kind == k)).collect();
        (nodes, edges)
    }
}

/// Replaces control characters, which no textual format can hold, by U+FFFD. Line ends stay.
pub(super) fn printable(text: &str) -> String {
    let replace = |c: char| match c {
        '\n' => '\n',
        '\t' => ' ',
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.replace("\r\n", "\n").chars().map(replace).collect()
}
