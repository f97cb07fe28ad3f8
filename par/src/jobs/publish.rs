//! Handing jobs over to a pool.

use super::{
    deferred::jobs_were_queued,
    error::SpawnError,
    queue::{QueuedJob, SpawnedJob},
};
use crate::thread_pool::state::PoolState;
use std::sync::Arc;

/// Queues a job, and finds a thread for it.
#[inline]
pub(super) fn publish(pool: &PoolState, job: QueuedJob) {
    pool.jobs.push(job);
    jobs_were_queued(pool);
}

/// Queues a job for one worker.
pub(super) fn publish_on(
    pool: &PoolState,
    worker: usize,
    job: Arc<dyn SpawnedJob>,
) -> Result<(), SpawnError> {
    pool.jobs.push_own(worker, job)?;
    pool.sleep.wake(worker);
    Ok(())
}

/// Called by a thread that has begun a spawned job without taking it from the queue.
pub(super) fn left_stale(pool: &PoolState) {
    if pool.check_fork().is_ok() && pool.jobs.left_stale() {
        jobs_were_queued(pool);
    }
}

/// Whether a job may be queued for this worker. `outside` says whether the calling thread may wait for it.
pub(super) fn check_worker(
    pool: &PoolState,
    worker: usize,
    outside: impl FnOnce() -> bool,
) -> Result<(), SpawnError> {
    pool.check_fork()?;
    if worker >= pool.workers() {
        Err(SpawnError::NoSuchWorker { asked: worker, workers: pool.workers() })
    } else if !outside() {
        Err(SpawnError::Inside)
    } else {
        Ok(())
    }
}
