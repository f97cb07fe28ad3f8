//! The handle of the program to a task group, which also keeps the runtime from ending.

use super::group::Group;
use crate::execute::{core::Core, shutdown::Running};
use std::{borrow::Cow, ops::Deref, sync::Arc};

/// A handle to a group. Its clones are handles to the same group.
#[derive(Clone, Debug)]
pub(crate) struct GroupHandle(Arc<Owned>);

#[derive(Debug)]
struct Owned {
    group: Arc<Group>,
    /// Dropped after the group was abandoned.
    running: Arc<Running>,
}

impl GroupHandle {
    /// Makes a group.
    pub(crate) fn new(running: &Arc<Running>, name: Cow<'static, str>) -> Self {
        Self(Arc::new(Owned { group: Group::new(name, None), running: Arc::clone(running) }))
    }

    /// The runtime.
    pub(crate) fn core(&self) -> &Arc<Core> {
        self.0.running.core()
    }

    /// What keeps the runtime running.
    pub(crate) fn running(&self) -> &Arc<Running> {
        &self.0.running
    }

    /// Makes a group in this one.
    pub(crate) fn nested(&self, name: Cow<'static, str>) -> Self {
        let group = Group::new(name, Some(&self.0.group));
        Self(Arc::new(Owned { group, running: Arc::clone(&self.0.running) }))
    }
}

impl Deref for GroupHandle {
    type Target = Arc<Group>;

    fn deref(&self) -> &Arc<Group> {
        &self.0.group
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // A forked process leaves the failures to its parent.
        if self.running.core().id().is_in_this_process() {
            self.group.abandon();
        }
    }
}
