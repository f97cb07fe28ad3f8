//! The parts of a drawing: nodes and edges, and the kinds that pictures tell apart.

use std::fmt;

/// The kind of task or command that a node stands for.
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

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It ran to its end.
    Done,
    /// It panicked or returned an error.
    Failed,
    /// It did not run, because something it needs failed or was cancelled.
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

/// Why an edge connects two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EdgeKind {
    /// The later node reads what the earlier one wrote.
    True,
    /// The later node overwrites what the earlier one reads.
    Anti,
    /// The later node overwrites what the earlier one wrote.
    Output,
    /// Both nodes touch a host object, or one of them is an epoch or a horizon.
    Serial,
    /// Data goes from one node of the machine to another: from a push to an await-push.
    Message,
    /// The nodes never run at the same time, but either may run first. The only kind without a direction.
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

impl From<crate::task::Kind> for EdgeKind {
    fn from(kind: crate::task::Kind) -> Self {
        match kind {
            crate::task::Kind::True => Self::True,
            crate::task::Kind::Serial => Self::Serial,
            crate::task::Kind::Anti => Self::Anti,
            crate::task::Kind::Output => Self::Output,
        }
    }
}

/// A task or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name that edges use for it, such as `T3` or `N1.C7`.
    pub id: String,
    /// The kind of task or command.
    pub kind: NodeKind,
    /// Its name in the program; may be empty.
    pub name: String,
    /// Lines about it: its accesses, effects and chunk.
    pub details: Vec<String>,
    /// The group that it is drawn in, such as the node of the machine that a command runs on.
    pub cluster: Option<String>,
    /// How it ended, if that is known.
    pub state: Option<State>,
}

impl Node {
    /// A node without a group, details or a state.
    pub fn new(id: impl Into<String>, kind: NodeKind, name: impl Into<String>) -> Self {
        Self { id: id.into(), kind, name: name.into(), details: Vec::new(), cluster: None, state: None }
    }

    /// Adds a line of details.
    #[must_use]
    pub fn detail(mut self, line: impl Into<String>) -> Self {
        self.details.push(line.into());
        self
    }

    /// Puts the node into a group.
    #[must_use]
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = Some(name.into());
        self
    }

    /// Sets the state.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// The first line of every picture: id, kind and, if it is known, state.
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
    /// Why the edge is there.
    pub kind: EdgeKind,
    /// The subject of the edge, such as the name of a buffer; may be empty.
    pub label: String,
}

impl Edge {
    /// An edge without a label.
    pub fn new(from: impl Into<String>, to: impl Into<String>, kind: EdgeKind) -> Self {
        Self { from: from.into(), to: to.into(), kind, label: String::new() }
    }

    /// Sets the label.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }
}
