//! Running a job that was taken from the queue.

use super::{job::run_caught, queue::QueuedJob};
use crate::{context::HeldValues, current, denormals::keep_denormals, thread_pool::state::PoolState};

/// Runs a job of `pool`, unless it has begun elsewhere. `pool` must be the calling thread's pool. Runs some jobs
/// if they belong to a scope, while the thread `may_go_on`.
pub(crate) fn run(pool: &PoolState, job: QueuedJob, may_go_on: impl Fn() -> bool) {
    match job {
        QueuedJob::Submitted(job) => {
            let _entered = current::enter_job(HeldValues::NONE);
            run_caught(job);
        }
        QueuedJob::Spawned(job) => {
            if !job.run() {
                pool.jobs.popped_stale();
            }
        }
        QueuedJob::Scope(scope) => {
            if scope.run_some(pool, may_go_on) {
                pool.jobs.popped_stale();
            }
        }
    }
}

/// Runs all jobs of a pool without workers, on the calling thread.
pub(crate) fn run_all(pool: &PoolState) {
    let _installed = current::install(pool);
    while pool.check_fork().is_ok()
        && let Some(job) = pool.jobs.pop()
    {
        // In the floating-point mode of a worker.
        keep_denormals(|| run(pool, job, || true));
    }
}
