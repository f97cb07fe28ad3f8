//! The facts about a task that only the recorder needs.

use crate::data::stored::Shared;
use anabranch_graph::command::{BufferAccess, Hints, Reduction, Work};

/// Facts about a task beyond its regions and effects. They are gathered only in a recorded runtime.
#[derive(Debug)]
pub(crate) struct TaskRecord {
    pub(crate) work: Work,
    pub(crate) hints: Hints,
    pub(crate) accesses: Vec<BufferAccess>,
    pub(crate) reductions: Vec<Reduction>,
    /// The labels of the buffers, one for each region.
    pub(crate) buffers: Vec<String>,
    /// The labels of the host objects, one for each effect.
    pub(crate) objects: Vec<String>,
    pub(crate) flush_denormals: bool,
    /// With several nodes: how often the weights of the nodes were set when this node's part was found.
    pub(crate) times_weighted: u64,
    pub(crate) shared: Shared,
    /// How often the task repeats its work: the replays of a sequence, with a condition the most that may
    /// run.
    pub(crate) times: u64,
}

impl Default for TaskRecord {
    fn default() -> Self {
        Self {
            work: Work::HostOnce,
            hints: Hints::default(),
            accesses: Vec::new(),
            reductions: Vec::new(),
            buffers: Vec::new(),
            objects: Vec::new(),
            flush_denormals: false,
            times_weighted: 0,
            shared: Shared::default(),
            times: 1,
        }
    }
}
