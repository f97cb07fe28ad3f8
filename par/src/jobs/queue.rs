//! The queue of a pool's jobs: one for all workers, and one for each worker.
//!
//! A job is *submitted* (the program keeps its outcome: [`Job`]) or *spawned* (it has a handle that the
//! outcome goes to: [`SpawnedJob`]). Both wait in the same queue, in the order in which they came.
//!
//! A spawned job may begin while it is queued: the thread that joins it runs it, or the opener of its scope.
//! It then leaves a *stale* entry behind, which workers skip. While all workers are busy, none takes stale
//! entries out, so they are counted. When there are many and they are the greater part of the queue, the
//! thread that left the last one *sweeps* the queue: it takes out every entry and puts back those that have
//! not begun. An entry costs at most one more trip through the queue, and there are never more entries than
//! twice the jobs that wait, plus [`STALE`].

use super::{error::SpawnError, fifo::Fifo, job::Job};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicIsize, Ordering::*},
    },
};

/// How many stale entries there may be before they are swept out.
pub(super) const STALE: isize = 128;

/// A job that has a handle, as the thread sees it that runs it.
pub(crate) trait SpawnedJob: Send + Sync {
    fn has_begun(&self) -> bool;

    /// Runs the job, unless another thread has begun it: then `false`. The job's pool must be the calling
    /// thread's pool.
    fn run(&self) -> bool;
}

/// A job in the queue.
pub(crate) enum QueuedJob {
    Submitted(Arc<dyn Job>),
    Spawned(Arc<dyn SpawnedJob>),
}

impl QueuedJob {
    fn is_stale(&self) -> bool {
        match self {
            Self::Submitted(_) => false,
            Self::Spawned(job) => job.has_begun(),
        }
    }
}

/// The jobs of a pool that wait for a worker.
pub(crate) struct JobQueue {
    queue: Fifo<QueuedJob>,
    /// The number of stale entries. An entry is counted after its job has begun, so the count may be below 0
    /// for a moment.
    stale: CachePadded<AtomicIsize>,
    /// Held by the thread that sweeps.
    sweep: Mutex<()>,
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
        Self {
            queue: Fifo::default(),
            stale: CachePadded::default(),
            sweep: Mutex::new(()),
            own: (0..workers).map(|_| CachePadded::default()).collect(),
        }
    }

    #[inline]
    pub(super) fn push(&self, job: QueuedJob) {
        self.queue.push(job);
    }

    /// Takes out the oldest job that has not begun. A spawned job may still begin elsewhere.
    pub(crate) fn pop(&self) -> Option<QueuedJob> {
        loop {
            let job = self.queue.pop()?;
            if !job.is_stale() {
                return Some(job);
            }
            self.popped_stale();
        }
    }

    /// Called if a job that [`pop`](Self::pop) returned turns out to have begun elsewhere.
    pub(super) fn popped_stale(&self) {
        self.stale.fetch_sub(1, Relaxed);
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
        let stale = self.stale.fetch_add(1, Relaxed) + 1;
        stale > STALE && 2 * stale as usize > self.queue.len() && self.sweep()
    }

    /// Takes every entry out and puts the ones that have not begun back, in their order.
    #[cold]
    fn sweep(&self) -> bool {
        let Some(_guard) = self.sweep.try_lock() else { return false };
        let mut moved = false;
        for _ in 0..self.queue.len() {
            let Some(job) = self.queue.pop() else { break };
            if job.is_stale() {
                self.popped_stale();
            } else {
                self.queue.push(job);
                moved = true;
            }
        }
        moved
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
        // A thread that sweeps may have taken out the last job to put it back.
        drop(self.sweep.lock());
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
