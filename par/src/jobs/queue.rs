//! The queue of a pool's jobs: one for all workers, and one for each worker.
//!
//! A job is *submitted* (the program keeps its outcome: [`Job`]) or *spawned* (it has a handle that the
//! outcome goes to: [`SpawnedJob`]). Both wait in the same queue, in the order in which they came.
//!
//! The jobs of a scope wait in a queue of their own: see [`scope_queue`](super::scope_queue). This queue then
//! has a *ticket* of the scope.

use super::{
    error::SpawnError,
    fifo::Fifo,
    job::Job,
    stale::{Entries, SweptQueue},
};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
};

/// A job that has a handle, as the thread sees it that runs it.
pub(crate) trait SpawnedJob: Send + Sync {
    fn has_begun(&self) -> bool;

    /// Runs the job, unless another thread has begun it: then `false`. The job's pool must be the calling
    /// thread's pool.
    fn run(&self) -> bool;
}

/// The jobs of a scope, as a worker sees them that has taken their [ticket](super::ticket).
pub(crate) trait ScopeJobs: Send + Sync {
    /// Whether the scope has ended.
    fn is_closed(&self) -> bool;

    /// Runs some jobs, while the worker `may_go_on`. Calls `queue_ticket` if the ticket must be queued again.
    /// Returns the number of jobs; `None` if the ticket was stale.
    fn run_some(&self, queue_ticket: &dyn Fn(), may_go_on: &dyn Fn() -> bool) -> Option<usize>;
}

/// An entry of the queue.
pub(crate) enum QueuedJob {
    Submitted(Arc<dyn Job>),
    Spawned(Arc<dyn SpawnedJob>),
    /// Jobs of a scope.
    Scope(Arc<dyn ScopeJobs>),
}

impl Entries for Fifo<QueuedJob> {
    type Entry = QueuedJob;

    #[inline]
    fn push(&self, entry: QueuedJob) {
        Fifo::push(self, entry);
    }
    #[inline]
    fn pop(&self) -> Option<QueuedJob> {
        Fifo::pop(self)
    }
    #[inline]
    fn is_empty(&self) -> bool {
        Fifo::is_empty(self)
    }
    fn len(&self) -> usize {
        Fifo::len(self)
    }
    fn is_stale(entry: &QueuedJob) -> bool {
        match entry {
            QueuedJob::Submitted(_) => false,
            QueuedJob::Spawned(job) => job.has_begun(),
            QueuedJob::Scope(scope) => scope.is_closed(),
        }
    }
}

/// The jobs of a pool that wait for a worker.
pub(crate) struct JobQueue {
    queue: SweptQueue<Fifo<QueuedJob>>,
    /// For each worker, the jobs that it alone may run.
    own: Box<[CachePadded<OwnQueue>]>,
}

#[derive(Default)]
struct OwnQueue {
    /// Whether there are any jobs: an idle worker reads only this.
    any: AtomicBool,
    jobs: Mutex<OwnJobs>,
}

#[derive(Default)]
struct OwnJobs {
    waiting: VecDeque<Arc<dyn SpawnedJob>>,
    /// The worker has ended.
    closed: bool,
}

impl JobQueue {
    pub(crate) fn new(workers: usize) -> Self {
        Self { queue: SweptQueue::default(), own: (0..workers).map(|_| CachePadded::default()).collect() }
    }

    #[inline]
    pub(super) fn push(&self, job: QueuedJob) {
        self.queue.push(job);
    }

    /// Takes out the oldest job. A spawned job may have begun elsewhere.
    pub(crate) fn pop(&self) -> Option<QueuedJob> {
        self.queue.pop()
    }

    /// Called if a job that [`pop`](Self::pop) returned turns out to have begun elsewhere.
    pub(super) fn popped_stale(&self) {
        self.queue.popped_stale();
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Called by a thread that has begun a job which it did not take from the queue. Returns whether entries
    /// were moved: then a worker may have missed them, and one must be woken.
    #[must_use]
    pub(super) fn left_stale(&self) -> bool {
        self.queue.left_stale()
    }

    /// Queues a job for one worker.
    pub(super) fn push_own(&self, worker: usize, job: Arc<dyn SpawnedJob>) -> Result<(), SpawnError> {
        let own = &self.own[worker];
        let mut jobs = own.jobs.lock();
        if jobs.closed {
            return Err(SpawnError::Stopped);
        }
        jobs.waiting.push_back(job);
        own.any.store(true, Relaxed);
        Ok(())
    }

    pub(crate) fn pop_own(&self, worker: usize) -> Option<Arc<dyn SpawnedJob>> {
        let own = &self.own[worker];
        if !own.any.load(Relaxed) {
            return None;
        }
        let mut jobs = own.jobs.lock();
        let job = jobs.waiting.pop_front();
        own.any.store(!jobs.waiting.is_empty(), Relaxed);
        job
    }

    /// Whether a job waits for this worker alone.
    pub(crate) fn has_own(&self, worker: usize) -> bool {
        self.own[worker].any.load(Relaxed)
    }

    /// The worker wants to end. Returns `false` if there still is a job for it.
    pub(crate) fn close(&self, worker: usize) -> bool {
        self.queue.wait_for_sweep();
        let mut own = self.own[worker].jobs.lock();
        own.closed = own.waiting.is_empty() && self.is_empty();
        own.closed
    }
}

impl fmt::Debug for JobQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobQueue").field("len", &self.queue.len()).finish_non_exhaustive()
    }
}
