//! What [`Core`] has only with several nodes, and the checks of calls that all nodes must make alike.

use super::plan::Nodes;
use crate::{
    cluster::Cluster,
    error::{Error, NodeError},
    execute::core::Core,
};
use std::sync::Arc;

impl Core {
    /// What the runtime has only with several nodes.
    #[inline]
    pub(crate) fn several_nodes(&self) -> Option<&Nodes> {
        self.several.as_deref()
    }

    /// The nodes that this one runs together with, if there are any.
    #[inline]
    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.several.as_ref().map(|nodes| nodes.cluster())
    }

    /// With several nodes: checks that the calling thread may submit, and that the run has not ended. `call`
    /// names what it does.
    pub(crate) fn check_submitter(&self, call: impl FnOnce() -> String) -> Result<(), Error> {
        let Some(cluster) = self.cluster() else { return Ok(()) };
        cluster.check()?;
        let place = match self.id().is_inside_task() {
            true => "inside a task",
            false if cluster.is_submitter() => return Ok(()),
            false => "on another thread than the one that has submitted before",
        };
        Err(Error::SubmitterOnly { call: call(), place })
    }

    /// A submission is refused with this error. With several nodes, the run ends if another node does not
    /// refuse it for the same reason. Returns the error.
    pub(crate) fn refuse(&self, error: Error) -> Error {
        if let Some(cluster) = self.cluster() {
            cluster.refused(&error);
        }
        error
    }

    /// A task that was submitted cannot run on this node, because of this error. With several nodes, this
    /// ends the run. Returns the error.
    pub(crate) fn give_up(&self, error: Error) -> Error {
        if let Some(cluster) = self.cluster() {
            cluster.stop(NodeError::Here { why: error.to_string() });
        }
        error
    }
}
