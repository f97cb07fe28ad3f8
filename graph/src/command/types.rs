//! Commands, and the ids of nodes and commands.

use crate::task::{BufferId, Kind, ObjectId, TaskId};
use anabranch_grid::{Chunk, Region};
use smallvec::SmallVec;
use std::{fmt, ops::Range, sync::Arc};

/// A node, by its rank: `0..nodes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "N{}", self.0)
    }
}

/// The rank of this node among all nodes of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    /// This node.
    pub(super) me: NodeId,
    /// The number of nodes.
    pub(super) nodes: u16,
}

/// The point of the program at which a node generates the commands of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) rank: Rank,
    pub(super) task: TaskId,
    /// The horizon or epoch that stands for all commands before it.
    pub(super) applied: CommandId,
    /// The number of the first new command.
    pub(super) first: u64,
}

/// Some nodes, and the region that each of them needs.
pub(super) type NodeRegions = SmallVec<[(NodeId, Region<3>); 4]>;

/// A command of one node, numbered in the order of generation. Each node numbers its own commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

impl CommandId {
    /// The epoch that precedes every command of a node.
    pub const EPOCH: Self = Self(0);
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C{}", self.0)
    }
}

/// An edge to an earlier command of the same node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommandDependency {
    /// The earlier command.
    pub on: CommandId,
    /// The strongest reason for the edge.
    pub kind: Kind,
}

/// A part of a task that one node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The id of the command.
    pub id: CommandId,
    /// The task that the command belongs to. For a transfer or a reduction: the task that needs the data.
    pub task: TaskId,
    /// The action, with its operands.
    pub kind: CommandKind,
    /// The commands that it comes after: at most one edge to each, ascending. Every command but the root
    /// epoch has at least one edge.
    pub dependencies: SmallVec<[CommandDependency; 4]>,
    /// Earlier commands that must never run at the same time, although either may run first. Ascending,
    /// without commands that it depends on.
    pub conflicts: SmallVec<[CommandId; 2]>,
}

/// A part of a buffer and the node that it is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The receiver.
    pub node: NodeId,
    /// The region that it receives.
    pub region: Region<3>,
}

/// The content of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferKind {
    /// Elements of the buffer.
    Data,
    /// Partial results of a reduction to the buffer.
    Partials,
}

/// The name of a transfer. Sender and receivers derive the same name without a message. A node sends at most
/// one message of a name to each other node. It may await the message in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferName {
    /// The task that needs the data.
    pub task: TaskId,
    /// The buffer.
    pub buffer: BufferId,
    /// The content.
    pub kind: TransferKind,
}

/// The two stages in which a [turn](CommandKind::PassTurn) goes to the next nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// From all nodes that have the turn to one of them.
    Collect,
    /// From that node to all nodes that get the turn.
    Spread,
}

/// The action of a command, with its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Runs the task's kernel or host function.
    Execute {
        /// The piece of the index space.
        chunk: Chunk<3>,
        /// The leaves of the reduction tree that the piece consists of, each with a partial result of its
        /// own; empty for tasks without reductions.
        leaves: Range<u32>,
    },
    /// Sends parts of a buffer that this node owns and other nodes lack: one message to each target.
    Push {
        /// The buffer.
        buffer: BufferId,
        /// The receivers and their regions, by ascending node.
        targets: Arc<[Target]>,
        /// The parts of all nodes, by ascending node, if every node gets all of them. Then the nodes can
        /// exchange them together, in few messages. Each node has the same list. The list names only nodes
        /// whose part is not empty.
        exchange: Option<Arc<[(NodeId, Region<3>)]>>,
    },
    /// Waits until a region has arrived from its owners, in any number of messages. A message may also hold
    /// parts of the regions of other commands of the same task and buffer; these regions are disjoint.
    AwaitPush {
        /// The buffer.
        buffer: BufferId,
        /// The union of everything that must arrive.
        region: Region<3>,
        /// The parts of all nodes if every node gets them, as in [`Push`](Self::Push). Then this is the only
        /// await of the task and the buffer, and the region is what other nodes have.
        exchange: Option<Arc<[(NodeId, Region<3>)]>>,
    },
    /// Sends this node's partial results of a reduction.
    PushPartials {
        /// The buffer that is reduced to.
        buffer: BufferId,
        /// The part of the buffer that is still wanted.
        region: Region<3>,
        /// The task that computed the partial results.
        reduction: TaskId,
        /// The leaves that this node computed. Whole [subtrees](crate::command::subtrees) can be combined
        /// before they are sent.
        leaves: Range<u32>,
        /// The receivers, ascending.
        targets: Arc<[NodeId]>,
        /// Whether every node wants the partial results: then all nodes can exchange them together, in few
        /// messages. Each node has the same answer.
        everywhere: bool,
    },
    /// Waits for the partial results of all leaves that this node did not compute itself.
    AwaitPartials {
        /// The buffer that is reduced to.
        buffer: BufferId,
        /// The part of the buffer that is still wanted.
        region: Region<3>,
        /// The task that computed the partial results.
        reduction: TaskId,
        /// The leaves that this node computed, and does not wait for.
        present: Range<u32>,
        /// The total number of leaves.
        leaves: u32,
        /// Whether every node wants the partial results, as in [`PushPartials`](Self::PushPartials).
        everywhere: bool,
    },
    /// Combines all partial results, as [`combine`](crate::command::combine) does, and writes them to the
    /// buffer.
    Reduce {
        /// The buffer that is reduced to.
        buffer: BufferId,
        /// The part of the buffer that is written.
        region: Region<3>,
        /// The task that computed the partial results.
        reduction: TaskId,
        /// The total number of leaves; 0 if the index space is empty, and the result is the identity.
        leaves: u32,
    },
    /// Passes the turn of a host object of the [whole
    /// cluster](crate::command::CommandGraph::create_cluster_object) on: one message without data to each
    /// target, in which a failure may stand. For a task, an object and a pass, a node sends at most one
    /// message to each other node.
    PassTurn {
        /// The object.
        object: ObjectId,
        /// The part of the way.
        pass: Pass,
        /// The receivers, ascending.
        targets: Arc<[NodeId]>,
    },
    /// Waits for the turn of a host object of the whole cluster.
    AwaitTurn {
        /// The object.
        object: ObjectId,
        /// The part of the way.
        pass: Pass,
        /// The number of messages, each from another node.
        messages: u32,
    },
    /// Takes a snapshot of what the task reads.
    Fence,
    /// Follows everything before it and precedes everything after it, and takes a snapshot of what the task
    /// reads.
    Epoch,
    /// Stands for everything before it, without waiting.
    Horizon,
}

impl Command {
    /// A command without edges.
    pub(super) fn new(id: CommandId, task: TaskId, kind: CommandKind) -> Self {
        Self { id, task, kind, dependencies: SmallVec::new(), conflicts: SmallVec::new() }
    }

    /// The name of the transfer of data that the command sends or awaits; `None` if it does neither.
    pub fn transfer(&self) -> Option<TransferName> {
        let (buffer, kind) = match self.kind {
            CommandKind::Push { buffer, .. } | CommandKind::AwaitPush { buffer, .. } => {
                (buffer, TransferKind::Data)
            }
            CommandKind::PushPartials { buffer, .. } | CommandKind::AwaitPartials { buffer, .. } => {
                (buffer, TransferKind::Partials)
            }
            _ => return None,
        };
        Some(TransferName { task: self.task, buffer, kind })
    }

    /// Adds an edge unless it repeats the last one. [`finish_edges`](Self::finish_edges) removes other
    /// repeats.
    pub(super) fn after(&mut self, on: CommandId, kind: Kind) {
        let new = CommandDependency { on, kind };
        if self.dependencies.last() != Some(&new) {
            self.dependencies.push(new);
        }
    }

    /// Keeps one edge per command, the strongest, ascending. Edges to commands before `applied` go to
    /// `applied` instead. An edge to the last epoch stays only if it is the only one, because every later
    /// command comes after the epoch.
    pub(super) fn finish_edges(&mut self, applied: CommandId, epoch: CommandId) {
        let found = &mut self.dependencies;
        if !self.conflicts.is_empty() {
            self.conflicts.sort_unstable();
            self.conflicts.dedup();
            if self.conflicts[0] < applied {
                // A command after the horizon never runs at the same time as the commands that the horizon
                // stands for.
                self.conflicts.retain(|c| *c >= applied);
                found.push(CommandDependency { on: applied, kind: Kind::Serial });
            }
        }
        match found.as_mut_slice() {
            [] => found.push(CommandDependency { on: applied, kind: Kind::Serial }),
            [only] => only.on = only.on.max(applied),
            several => {
                several.iter_mut().for_each(|d| d.on = d.on.max(applied));
                if !several.is_sorted_by(|a, b| a.on < b.on) {
                    several.sort_unstable_by_key(|d| (d.on, d.kind));
                    found.dedup_by_key(|d| d.on);
                }
                if found.len() > 1 && found[0].on == epoch {
                    found.remove(0);
                }
            }
        }
        if !self.conflicts.is_empty() {
            self.conflicts.retain(|c| found.binary_search_by_key(c, |d| d.on).is_err());
        }
    }
}
