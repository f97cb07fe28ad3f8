//! The changes of recorded graphs.

use super::task_record::TaskRecord;
use crate::label::TaskLabel;
use anabranch_graph::{
    Access, BufferId, Effect, MemoryId, ObjectId,
    command::{Command, CommandId, Weights},
};
use anabranch_grid::{Extent, Region};
use std::sync::Arc;

/// What the program did to its graphs.
pub(super) enum Change {
    CreateBuffer {
        extent: Extent<3>,
        initialised: bool,
        id: BufferId,
        bytes: usize,
    },
    RemoveBuffer(BufferId),
    /// The second field is the home of an object of the whole cluster.
    CreateObject(ObjectId, Option<u16>),
    RemoveObject(ObjectId),
    SetVersions(BufferId, usize),
    Discard(BufferId),
    /// In a dry run: a weight for each of its nodes.
    SetWeights(Weights),
    Submit(RecordedTask),
    /// With several nodes: the commands of this node for the task that was submitted last, and for the
    /// horizon behind it.
    Execute {
        node: u16,
        label: TaskLabel,
        commands: Vec<Command>,
    },
    /// With several nodes and devices: what a command of this node reads and writes in one of its memories.
    Touch {
        node: u16,
        touched: Touched,
    },
}

/// What a command of a node reads and writes in one of its memories, and the copies that come before it.
#[cfg_attr(not(feature = "print"), expect(dead_code, reason = "nothing is drawn"))]
pub(crate) struct Touched {
    pub(crate) command: CommandId,
    /// The commands that it comes after.
    pub(crate) after: Vec<CommandId>,
    pub(crate) memory: MemoryId,
    pub(crate) reads: Vec<NodeAccess>,
    pub(crate) writes: Vec<NodeAccess>,
    /// The name of each copy, and the memory that it copies from. A copy is one to the host or from the
    /// host.
    pub(crate) copies: Vec<(TaskLabel, MemoryId, NodeAccess)>,
}

/// A part of a buffer.
#[cfg_attr(not(feature = "print"), expect(dead_code, reason = "nothing is drawn"))]
pub(crate) struct NodeAccess {
    pub(crate) buffer: BufferId,
    pub(crate) version: u32,
    pub(crate) region: Region<3>,
}

/// Where a task accesses its buffers. Only drawings show this.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "print"), expect(dead_code, reason = "nothing is drawn"))]
pub(crate) enum Place {
    /// In this memory.
    In(MemoryId),
    /// It copies from one memory to another.
    Copies { from: MemoryId, to: MemoryId },
}

impl Default for Place {
    fn default() -> Self {
        Self::In(MemoryId::HOST)
    }
}

/// A task that the live graph has accepted.
pub(crate) struct RecordedTask {
    pub(crate) label: TaskLabel,
    pub(crate) record: Arc<TaskRecord>,
    pub(crate) accesses: Box<[Access]>,
    pub(crate) effects: Box<[Effect]>,
    /// Where it accesses its buffers.
    pub(crate) place: Place,
}
