//! The failures that a runtime reports, and its status.

use super::{core::Core, groups::handle::GroupHandle, task::status::Status};
use crate::error::Error;

impl Core {
    /// Whether tasks in no group have failed since the last report.
    pub(crate) fn status(&self) -> Status {
        if self.failures.is_empty() { Status::Done } else { Status::Failed }
    }

    /// Takes the failures of a group, or those of tasks in no group, since their last report. Returns them as
    /// an error, if there are any. With several nodes: those of all nodes, which meet for it; `call` names
    /// the meeting.
    #[inline]
    pub(crate) fn report(&self, group: Option<&GroupHandle>, call: &'static str) -> Result<(), Error> {
        match &self.several {
            None => self.failures_of(group.map(|group| &***group)).report(),
            Some(nodes) => self.report_on_nodes(nodes, group, call),
        }
    }
}
