//! Commands: what one node does for a task.

use super::launch::Work;
use crate::task::{BufferId, Kind, TaskId};
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

/// A command of one node, by the order of generation. Other nodes give the same numbers to commands of their own.
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
    /// The strongest reason: true before serial before anti before output.
    pub kind: Kind,
}

/// What one node does for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// This command.
    pub id: CommandId,
    /// The task that it is part of; for a transfer or a reduction the task that needs the data.
    pub task: TaskId,
    /// What is done.
    pub kind: CommandKind,
    /// The commands that it comes after: at most one edge each, ascending; at least one, except for the root epoch.
    pub dependencies: SmallVec<[CommandDependency; 4]>,
    /// Earlier commands that must never run at the same time, in whatever order: ascending, none of them a dependency.
    pub conflicts: SmallVec<[CommandId; 2]>,
}

/// A part of a buffer and the node that it is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The receiver.
    pub node: NodeId,
    /// What it gets.
    pub region: Region<3>,
}

/// What a command does.
///
/// A transfer is named by its buffer and the [`task`](Command::task) that needs the data: sender and receivers derive
/// the same name without a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Runs the task's kernel or host function.
    Execute {
        /// The part of the index space.
        chunk: Chunk<3>,
        /// The leaves of the reduction tree that the chunk consists of, each with a partial result of its own; empty for
        /// tasks without reductions.
        leaves: Range<u32>,
    },
    /// Sends what this node owns and others lack.
    Push {
        /// The buffer.
        buffer: BufferId,
        /// Who gets what, by ascending node.
        targets: Arc<[Target]>,
    },
    /// Waits until a region has arrived from its owners, in any number of messages.
    AwaitPush {
        /// The buffer.
        buffer: BufferId,
        /// All that must arrive.
        region: Region<3>,
    },
    /// Sends this node's partial results of a reduction.
    PushPartials {
        /// The buffer that is reduced to.
        buffer: BufferId,
        /// The part of it that is still wanted.
        region: Region<3>,
        /// The task that computed the partial results.
        reduction: TaskId,
        /// The leaves that this node has computed. Whole [subtrees](crate::command::subtrees) can be combined before they are sent.
        leaves: Range<u32>,
        /// Who gets them, ascending.
        targets: Arc<[NodeId]>,
    },
    /// Waits for the partial results of all leaves that this node has not computed itself.
    AwaitPartials {
        /// The buffer that is reduced to.
        buffer: BufferId,
        /// The part of it that is still wanted.
        region: Region<3>,
        /// The task that computed the partial results.
        reduction: TaskId,
        /// The leaves that this node has computed, and does not wait for.
        present: Range<u32>,
        /// The number of leaves in all.
        leaves: u32,
    },
    /// Combines all partial results, as [`combine`](crate::command::combine) does, and writes them to the buffer.
    Reduce {
        /// The buffer that is reduced to.
        buffer: BufferId,
        /// The part of it that is written.
        region: Region<3>,
        /// The task that computed the partial results.
        reduction: TaskId,
        /// The number of leaves in all.
        leaves: u32,
    },
    /// Takes a snapshot of what the task reads.
    Fence,
    /// Precedes everything after it and follows everything before it, and takes a snapshot of what the task reads.
    Epoch,
    /// Stands for everything before it, without waiting.
    Horizon,
}

impl CommandKind {
    /// For tasks that every node takes part in with one command: which.
    pub(super) fn snapshot(work: &Work) -> Option<Self> {
        match work {
            Work::Fence => Some(Self::Fence),
            Work::Epoch => Some(Self::Epoch),
            Work::Horizon => Some(Self::Horizon),
            _ => None,
        }
    }
}

impl Command {
    pub(super) fn new(id: CommandId, task: TaskId, kind: CommandKind) -> Self {
        Self { id, task, kind, dependencies: SmallVec::new(), conflicts: SmallVec::new() }
    }

    /// Adds an edge. What is found several times in a row is kept once; the rest is for [`settle`](Self::settle).
    pub(super) fn after(&mut self, on: CommandId, kind: Kind) {
        let new = CommandDependency { on, kind };
        if self.dependencies.last() != Some(&new) {
            self.dependencies.push(new);
        }
    }

    /// One edge per command, the strongest, ascending, none older than `applied`, and at least one; to the last epoch only
    /// where there is no other, as whoever depends on a later command comes after the epoch anyway.
    pub(super) fn settle(&mut self, applied: CommandId, epoch: CommandId) {
        let found = &mut self.dependencies;
        if !self.conflicts.is_empty() {
            self.conflicts.sort_unstable();
            self.conflicts.dedup();
            if self.conflicts[0] < applied {
                // Whoever comes after the horizon is never at the same time as what the horizon stands for.
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
