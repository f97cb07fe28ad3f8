//! Jobs: work that is handed to the pool and not waited for by whoever hands it over.

use crate::sync::atomic::{AtomicUsize, Ordering::*};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};

/// Work that a pool's worker runs some time after it was submitted.
///
/// A job is submitted as an `Arc`, so that something which exists already (a node of a graph, say) can be the job
/// itself and submitting allocates nothing.
pub trait Job: Send + Sync {
    /// Does the work. A panic in here ends in the process's panic message and nowhere else: a job that can fail keeps
    /// its outcome itself.
    fn run(self: Arc<Self>);
}

/// First in, first out.
#[derive(Default)]
pub(crate) struct Jobs {
    /// The length of the queue, readable without the lock: looking for work must be cheap when there is none.
    len: AtomicUsize,
    queue: Mutex<VecDeque<Arc<dyn Job>>>,
}

impl Jobs {
    pub(crate) fn push(&self, job: Arc<dyn Job>) {
        let mut queue = self.queue.lock();
        queue.push_back(job);
        self.len.store(queue.len(), Release);
    }

    pub(crate) fn pop(&self) -> Option<Arc<dyn Job>> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let job = queue.pop_front();
        self.len.store(queue.len(), Release);
        job
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Acquire) == 0
    }
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("len", &self.len).finish_non_exhaustive()
    }
}
