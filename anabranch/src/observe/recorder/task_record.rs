//! The facts about a task that only the recorder needs.

use crate::data::stored::Stored;
use anabranch_graph::command::{BufferAccess, Hints, Reduction, Work};
use std::sync::Arc;

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
    /// With several nodes, the buffers, of which parts are sent and received.
    pub(crate) stored: Vec<Arc<dyn Stored>>,
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
            stored: Vec::new(),
        }
    }
}
