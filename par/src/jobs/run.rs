//! Running a job that was taken from the queue.

use super::{job::run_caught, queue::QueuedJob};
use crate::{context::HeldValues, current, denormals::keep_denormals, thread_pool::state::PoolState};
use std::sync::Arc;

/// Runs a job of `pool`, unless it has begun elsewhere, or some jobs of a scope, while the thread
/// `may_go_on`. `pool` must be the calling thread's pool. Returns whether there was a job to run.
pub(crate) fn run(pool: &PoolState, job: QueuedJob, may_go_on: impl Fn() -> bool) -> bool {
    let ran = match job {
        QueuedJob::Submitted(job) => {
            let _entered = current::enter_job(HeldValues::NONE);
            run_caught(job);
            Some(1)
        }
        QueuedJob::Spawned(job) => job.run().then_some(1),
        QueuedJob::Scope(scope) => {
            // A pool that has tickets has workers.
            let queue_ticket = || {
                pool.jobs.push(QueuedJob::Scope(Arc::clone(&scope)));
                pool.sleep.wake_one();
            };
            scope.run_some(&queue_ticket, &may_go_on)
        }
    };
    if ran.is_none() {
        pool.jobs.popped_stale();
    }
    ran.is_some_and(|ran| ran > 0)
}

/// Runs all jobs of a pool without workers, on the calling thread.
pub(crate) fn run_all(pool: &PoolState) {
    let _installed = current::install(pool);
    while pool.check_fork().is_ok()
        && let Some(job) = pool.jobs.pop()
    {
        // In the floating-point mode of a worker.
        keep_denormals(|| _ = run(pool, job, || true));
    }
}
