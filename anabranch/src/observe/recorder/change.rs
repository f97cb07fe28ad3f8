//! The changes of recorded graphs.

use super::task_record::TaskRecord;
use crate::label::TaskLabel;
use anabranch_graph::{
    Access, BufferId, Effect, ObjectId,
    command::{Command, Weights},
};
use anabranch_grid::Extent;
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
    /// With the home of an object of the whole cluster.
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
}

/// A task that the live graph has accepted.
pub(crate) struct RecordedTask {
    pub(crate) label: TaskLabel,
    pub(crate) record: Arc<TaskRecord>,
    pub(crate) accesses: Box<[Access]>,
    pub(crate) effects: Box<[Effect]>,
}
