//! What a sequence belongs to.

use crate::{
    execute::{GroupHandle, Running},
    label::TaskLabel,
};
use std::sync::Arc;

/// The runtime and the group of a sequence, and its name.
#[derive(Clone)]
pub(super) struct Owner {
    /// It keeps the runtime running, as a group does.
    pub(super) running: Arc<Running>,
    pub(super) group: Option<GroupHandle>,
    pub(super) label: TaskLabel,
}

impl Owner {
    /// Whether the group is cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.token().is_cancelled())
    }
}
