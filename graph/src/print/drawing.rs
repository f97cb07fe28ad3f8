//! What is drawn: nodes, edges, and what had to be left out.

use std::{collections::HashMap, fmt};

/// How many nodes a drawing keeps if nothing else is asked for.
pub const DEFAULT_LIMIT: usize = 500;

/// How many edges are kept for each node of the limit: more than any picture can show.
const EDGES_PER_NODE: usize = 10;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NodeKind {
    /// A task that runs a kernel over an index space.
    Kernel,
    /// A task that runs a host function.
    HostTask,
    /// A snapshot of a buffer or a host object.
    Fence,
    /// A point that everything before it precedes and everything after it follows.
    Epoch,
    /// A non-blocking epoch that the graph makes itself.
    Horizon,
    /// A command: the execution of a chunk of a task.
    Execution,
    /// A command: data sent to other nodes.
    Push,
    /// A command: data received from another node.
    AwaitPush,
    /// A command: partial results combined into one.
    Reduction,
}

impl NodeKind {
    /// Every kind, in the order of legends.
    pub const ALL: [Self; 9] = [
        Self::Kernel,
        Self::HostTask,
        Self::Execution,
        Self::Push,
        Self::AwaitPush,
        Self::Reduction,
        Self::Fence,
        Self::Epoch,
        Self::Horizon,
    ];
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::HostTask => "host task",
            Self::Fence => "fence",
            Self::Epoch => "epoch",
            Self::Horizon => "horizon",
            Self::Execution => "execution",
            Self::Push => "push",
            Self::AwaitPush => "await push",
            Self::Reduction => "reduction",
        })
    }
}

/// What became of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It ran to its end.
    Done,
    /// It panicked or returned an error.
    Failed,
    /// It did not run, as something it needs failed or was cancelled.
    Skipped,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        })
    }
}

/// Why two nodes are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EdgeKind {
    /// The later reads what the earlier has written.
    True,
    /// The later overwrites what the earlier reads.
    Anti,
    /// The later overwrites what the earlier has written.
    Output,
    /// Both touch a host object, or one of them is an epoch or a horizon.
    Serial,
    /// Data that goes from one node of the machine to another: from a push to an await-push.
    Message,
    /// Never at the same time, in any order: the only kind without a direction.
    Conflict,
}

impl EdgeKind {
    /// Every kind, in the order of legends.
    pub const ALL: [Self; 6] =
        [Self::True, Self::Anti, Self::Output, Self::Serial, Self::Message, Self::Conflict];

    /// Whether the first end comes before the second.
    pub fn is_directed(self) -> bool {
        self != Self::Conflict
    }
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "true",
            Self::Anti => "anti",
            Self::Output => "output",
            Self::Serial => "serial",
            Self::Message => "message",
            Self::Conflict => "conflict",
        })
    }
}

impl From<crate::Kind> for EdgeKind {
    fn from(kind: crate::Kind) -> Self {
        match kind {
            crate::Kind::True => Self::True,
            crate::Kind::Serial => Self::Serial,
            crate::Kind::Anti => Self::Anti,
            crate::Kind::Output => Self::Output,
        }
    }
}

/// A task or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// By what edges refer to it, such as `T3` or `N1.C7`.
    pub id: String,
    /// What it is.
    pub kind: NodeKind,
    /// What the program calls it; may be empty.
    pub name: String,
    /// Lines about it: its accesses, effects and chunk.
    pub details: Vec<String>,
    /// The group that it is drawn in, such as the node of the machine that a command runs on.
    pub cluster: Option<String>,
    /// What became of it, where that is known.
    pub state: Option<State>,
}

impl Node {
    /// A node of no group and with no details.
    pub fn new(id: impl Into<String>, kind: NodeKind, name: impl Into<String>) -> Self {
        Self { id: id.into(), kind, name: name.into(), details: Vec::new(), cluster: None, state: None }
    }

    /// With one more line of details.
    #[must_use]
    pub fn detail(mut self, line: impl Into<String>) -> Self {
        self.details.push(line.into());
        self
    }

    /// In a group.
    #[must_use]
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = Some(name.into());
        self
    }

    /// In a state.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// The first line of every picture: identity, kind and, if it is known, state.
    pub(super) fn headline(&self) -> String {
        match self.state {
            Some(state) => format!("{} · {} · {state}", self.id, self.kind),
            None => format!("{} · {}", self.id, self.kind),
        }
    }
}

/// A dependency, a message or a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that comes first, if the kind has a direction.
    pub from: String,
    /// The node that comes second, if the kind has a direction.
    pub to: String,
    /// Why they are joined.
    pub kind: EdgeKind,
    /// What the reason is about, such as the name of a buffer; may be empty.
    pub label: String,
}

impl Edge {
    /// An edge without a label.
    pub fn new(from: impl Into<String>, to: impl Into<String>, kind: EdgeKind) -> Self {
        Self { from: from.into(), to: to.into(), kind, label: String::new() }
    }

    /// With a label.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }
}

/// A graph to be printed, of bounded size.
#[derive(Clone, Debug)]
pub struct Drawing {
    title: String,
    limit: usize,
    nodes: Vec<Node>,
    by_id: HashMap<String, usize>,
    edges: Vec<Edge>,
    ends: Vec<[usize; 2]>,
    left_out: [usize; 2],
}

impl Drawing {
    /// An empty drawing that keeps [`DEFAULT_LIMIT`] nodes.
    pub fn new(title: impl Into<String>) -> Self {
        Self::with_limit(title, DEFAULT_LIMIT)
    }

    /// An empty drawing that keeps the first `limit` nodes and the edges among them, at most ten for each node.
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

    /// Adds a node, or replaces the one with the same id; whether it is kept.
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

    /// Adds an edge between two different nodes that were added before; whether it is kept.
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

    /// Says what became of a node; whether the node is kept.
    pub fn set_state(&mut self, id: &str, state: State) -> bool {
        let known = self.by_id.get(id);
        known.inspect(|&&node| self.nodes[node].state = Some(state)).is_some()
    }

    /// Whether no further node is kept: the caller may spare itself the work of describing it.
    pub fn is_full(&self) -> bool {
        self.nodes.len() >= self.limit
    }

    /// What the drawing is called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The nodes that are kept, in the order in which they were added.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The edges that are kept, in the order in which they were added.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// What is missing from the drawing, in words; nothing if it is complete.
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

    /// The ends of each edge, by the place of the node.
    pub(super) fn ends(&self) -> &[[usize; 2]] {
        &self.ends
    }

    /// The groups in the order in which they occur.
    pub(super) fn clusters(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for name in self.nodes.iter().filter_map(|n| n.cluster.as_deref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The kinds of nodes and of edges that occur.
    pub(super) fn kinds(&self) -> (Vec<NodeKind>, Vec<EdgeKind>) {
        let nodes = NodeKind::ALL.into_iter().filter(|&k| self.nodes.iter().any(|n| n.kind == k)).collect();
        let edges = EdgeKind::ALL.into_iter().filter(|&k| self.edges.iter().any(|e| e.kind == k)).collect();
        (nodes, edges)
    }
}

/// Control characters, which none of the textual formats can hold, become U+FFFD; line ends stay.
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
