//! Where spawned jobs wait for a worker.
//!
//! There is one queue for all workers and one for each. A job that was begun by the thread that joins it, or by the opener
//! of its scope, leaves a *stale* entry behind in the first; workers skip those. While all workers are busy nobody would
//! take them out, so they are counted, and when they are many and the greater part of the queue, whoever left the last one
//! *sweeps* it: an entry costs one more trip through the queue at most, and there are never more entries than twice the
//! jobs that wait, plus [`STALE`].

use super::error::SpawnError;
use crate::{
    sync::Padded,
    thread_pool::{Fifo, Shared},
};
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
const STALE: isize = 128;

/// A job as the one who runs it sees it.
pub(crate) trait Runnable: Send + Sync {
    fn has_begun(&self) -> bool;

    /// Runs the job, inside `pool`, unless somebody else has begun it: then `false`.
    fn run(&self, pool: &Shared) -> bool;
}

/// The jobs that were spawned on a pool and that wait for a worker.
pub(crate) struct Spawned {
    queue: Fifo<Arc<dyn Runnable>>,
    /// How many entries of the queue have begun. It is counted after the job has begun, so it may be below 0 for a moment.
    stale: Padded<AtomicIsize>,
    /// Held by the one who sweeps.
    sweep: Mutex<()>,
    /// For each worker, the jobs that it alone may run.
    own: Box<[Padded<Own>]>,
}

#[derive(Default)]
struct Own {
    /// Whether there are any: what an idle worker looks at.
    any: AtomicBool,
    jobs: Mutex<OwnJobs>,
}

#[derive(Default)]
struct OwnJobs {
    waiting: VecDeque<Arc<dyn Runnable>>,
    /// The worker has ended.
    closed: bool,
}

impl Spawned {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            queue: Fifo::default(),
            stale: Padded::default(),
            sweep: Mutex::new(()),
            own: (0..workers).map(|_| Padded::default()).collect(),
        }
    }

    #[inline]
    pub(crate) fn push(&self, job: Arc<dyn Runnable>) {
        self.queue.push(job);
    }

    /// The oldest job that has not begun. Others may begin it still.
    pub(crate) fn pop(&self) -> Option<Arc<dyn Runnable>> {
        loop {
            let job = self.queue.pop()?;
            if !job.has_begun() {
                return Some(job);
            }
            self.popped_stale();
        }
    }

    /// To be called where a job that [`pop`](Self::pop) returned turns out to have begun.
    pub(crate) fn popped_stale(&self) {
        self.stale.fetch_sub(1, Relaxed);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// To be called by who has begun a job that it did not take from the queue. `true` if entries were moved: then a worker
    /// may have missed them.
    #[must_use]
    pub(crate) fn left_stale(&self) -> bool {
        let stale = self.stale.fetch_add(1, Relaxed) + 1;
        stale > STALE && 2 * stale as usize > self.queue.len() && self.sweep()
    }

    /// Takes every entry out and puts those that have not begun back, in their order.
    #[cold]
    fn sweep(&self) -> bool {
        let Some(_guard) = self.sweep.try_lock() else { return false };
        let mut moved = false;
        for _ in 0..self.queue.len() {
            let Some(job) = self.queue.pop() else { break };
            if job.has_begun() {
                self.popped_stale();
            } else {
                self.queue.push(job);
                moved = true;
            }
        }
        moved
    }

    /// Leaves a job for one worker.
    pub(crate) fn push_own(&self, worker: usize, job: Arc<dyn Runnable>) -> Result<(), SpawnError> {
        let own = &self.own[worker];
        let mut jobs = own.jobs.lock();
        if jobs.closed {
            return Err(SpawnError::Stopped);
        }
        jobs.waiting.push_back(job);
        own.any.store(true, Relaxed);
        Ok(())
    }

    pub(crate) fn pop_own(&self, worker: usize) -> Option<Arc<dyn Runnable>> {
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

    /// The worker wants to end: `false` if there is a job for it yet.
    pub(crate) fn close(&self, worker: usize) -> bool {
        // A sweep in progress may hold the last job in its hand.
        drop(self.sweep.lock());
        let mut own = self.own[worker].jobs.lock();
        own.closed = own.waiting.is_empty() && self.is_empty();
        own.closed
    }
}

impl fmt::Debug for Spawned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned").field("len", &self.queue.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::STALE;
    use crate::ThreadPool;
    use std::sync::mpsc;

    /// The only worker is busy, and a job waits in front, so nothing would be taken out by chance.
    #[test]
    fn a_million_jobs_that_are_joined_at_once_leave_nothing_in_the_queue() {
        let pool = ThreadPool::new(2).unwrap();
        let (release, held) = mpsc::channel::<()>();
        let worker = pool.spawn_on(0, move || held.recv()).unwrap();
        let front = pool.spawn(|| 1);
        let mut sum = 0;
        let entries = || pool.shared().spawned().queue.len();
        for i in 0..500_000 {
            sum += pool.spawn(move || i).join().unwrap();
            assert!(entries() <= STALE as usize + 2);
        }
        pool.scope(|s| {
            s.spawn(|| ());
            for i in 500_000..1_000_000 {
                sum += s.spawn(move || i).join().unwrap();
                assert!(entries() <= STALE as usize + 2 && s.listed() <= 8);
            }
        });
        assert_eq!(sum, 499_999_500_000_usize);
        drop(release);
        assert!(worker.join().unwrap().is_err());
        assert_eq!(front.join().unwrap(), 1);
    }
}
