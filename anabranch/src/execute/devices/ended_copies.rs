//! How copies have ended. Later submissions read it.

use anabranch_graph::{BufferId, TaskId};
use parking_lot::Mutex;
use std::{mem, sync::Arc};

/// A copy, as its body reports its end.
#[derive(Clone, Copy)]
pub(super) struct CopyOf {
    pub(super) buffer: BufferId,
    pub(super) version: u32,
    pub(super) task: TaskId,
}

/// The copies that have ended since the last submission that asked. A copy may end on a thread that holds the
/// lock of the state, so it leaves a note here.
#[derive(Default)]
pub(super) struct Ended(Mutex<Vec<(CopyOf, bool)>>);

impl Ended {
    pub(super) fn note(&self, copy: CopyOf, well: bool) {
        self.0.lock().push((copy, well));
    }

    /// Takes the copies that have ended, and whether they have ended well.
    pub(super) fn take(&self) -> Vec<(CopyOf, bool)> {
        // The lock is released before the caller drops nodes: the end of a copy takes it, too.
        mem::take(&mut *self.0.lock())
    }
}

/// Notes how a copy has ended: well, or, if it is dropped before, badly.
pub(super) struct End(Option<Arc<Ended>>, CopyOf);

impl End {
    pub(super) fn new(ended: &Arc<Ended>, copy: CopyOf) -> Self {
        Self(Some(Arc::clone(ended)), copy)
    }

    pub(super) fn well(mut self) {
        self.0.take().into_iter().for_each(|ended| ended.note(self.1, true));
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|ended| ended.note(self.1, false));
    }
}
