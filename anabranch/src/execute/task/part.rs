//! The part of a task that one of several nodes executes: what a failure of it concerns.

use crate::{data::stored::Touch, error::Failure};
use anabranch_graph::{Effect, TaskId};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// With several nodes: what a part of a task needs of the parts before it, and what it is to write.
pub(crate) struct Part {
    /// The task. (The id of the node is that of the command.)
    pub(crate) task: TaskId,
    /// The node that executes it.
    pub(crate) node: u16,
    pub(crate) touches: SmallVec<[Touch; 2]>,
    pub(crate) effects: SmallVec<[Effect; 2]>,
    pub(crate) partials: SmallVec<[Lost; 1]>,
    pub(crate) writes: Writes,
}

/// How the end of a part changes which regions are poisoned, of those that it was to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// If the part ends well, the regions are good. If it fails, they are poisoned.
    All,
    /// If the part ends well, its body has entered which regions are good. If it fails, all of them are
    /// poisoned.
    ByBody,
    /// The part copies the regions. If it ends well, poisoned ones stay poisoned. If it fails, the others are
    /// poisoned, too.
    Copies,
}

/// Why the partial results of a reduction are not there, if they are not.
pub(crate) type Lost = Arc<OnceLock<Arc<Failure>>>;
