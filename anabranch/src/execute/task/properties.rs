//! What the submitter of a task says about it, and what tasks need of each other.

use super::place::Place;
use crate::{
    error::{Cause, Failure},
    execute::groups::group::Group,
    label::TaskLabel,
};
use anabranch_graph::{Effect, MemoryId};
use smallvec::SmallVec;
use std::sync::{Arc, atomic::AtomicU32};

/// What the submitter says about a task, beside its body.
pub(crate) struct Properties {
    pub(crate) label: TaskLabel,
    pub(crate) place: Place,
    /// See [`Submission::observes`](crate::execute::Submission::observes).
    pub(crate) observes: bool,
    pub(crate) group: Option<Arc<Group>>,
    pub(crate) contention: Option<Box<Contention>>,
    /// The memory of the device that the task goes to: see [`queued`](super::queued).
    pub(crate) queue: Option<MemoryId>,
}

/// What the scheduler of conflicts must know about a task.
pub(crate) struct Contention {
    pub(crate) effects: SmallVec<[Effect; 2]>,
    /// The priority among tasks that may conflict.
    pub(crate) priority: i32,
    /// Its slot in the scheduler; `u32::MAX` until its dependencies are done. Written and read under the lock
    /// of the scheduler.
    pub(crate) slot: AtomicU32,
}

/// What a task needs of a task that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Only its end.
    End,
    /// A host object in the state in which the task leaves it.
    Object,
    /// The contents of a buffer that the task writes.
    Contents,
}

impl Needs {
    /// Whether the failure of the one task is a reason to skip the other. A task that was cancelled before it
    /// began has not touched its host objects, as the program wished: they are good.
    pub(crate) fn is_broken_by(self, failure: &Arc<Failure>) -> bool {
        match self {
            Self::End => false,
            Self::Object => !matches!(failure.root().cause, Cause::Cancelled),
            Self::Contents => true,
        }
    }
}
