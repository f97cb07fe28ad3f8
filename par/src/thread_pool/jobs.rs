//! Jobs: work that is handed to the pool and not waited for by whoever hands it over.

use crossbeam_queue::SegQueue;
use std::sync::Arc;

/// Work that a pool's worker or a lane runs some time after it was submitted.
///
/// A job is submitted as an `Arc`, so that something which exists already (a node of a graph, say) can be the job
/// itself and submitting allocates nothing.
pub trait Job: Send + Sync {
    /// Does the work. A panic in here ends in the process's panic message and nowhere else: a job that can fail keeps
    /// its outcome itself.
    fn run(self: Arc<Self>);
}

/// First in, first out; nobody who adds or takes a job waits for somebody else to.
pub(crate) struct Jobs<J: ?Sized = dyn Job> {
    queue: SegQueue<Arc<J>>,
}

impl<J: ?Sized> Default for Jobs<J> {
    fn default() -> Self {
        Self { queue: SegQueue::new() }
    }
}

impl<J: ?Sized> Jobs<J> {
    #[inline]
    pub(crate) fn push(&self, job: Arc<J>) {
        self.queue.push(job);
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<Arc<J>> {
        self.queue.pop()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl<J: ?Sized> std::fmt::Debug for Jobs<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("len", &self.queue.len()).finish_non_exhaustive()
    }
}
