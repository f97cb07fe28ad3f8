//! The main loop of a worker. It knows every kind of work, and only the builder knows it.
//!
//! A worker looks in turn for an open region, a half of a join, a job that it alone may run, and a job from the queue. Every
//! kind has its turn, so none can keep the others waiting forever. A worker that finds nothing spins and then sleeps
//! ([`sleep`](super::sleep)).

use super::state::PoolState;
use crate::{
    current,
    denormals::control,
    jobs::{deferred, run},
    join, region, sync,
};
use std::time::Instant;

/// Works until the pool is stopped and its queue is empty.
pub(super) fn main_loop(pool: &PoolState, index: usize) {
    let _installed = current::install(pool);
    control::reset();
    pool.as_worker(index, || join::local::in_session(pool, || look_for_work(pool, index)));
}

fn look_for_work(pool: &PoolState, index: usize) {
    let kinds = [help_in_region, join::steal::help, run_own_job, run_queued_jobs];
    pool.sleep.start_search();
    let mut idle_since = None;
    loop {
        let mut found = false;
        for help in kinds {
            if !help(pool, index) {
                continue;
            }
            found = true;
            // Before the next search: a deferred job may block, and a publisher wakes no other worker while one searches.
            deferred::run_pending();
            if pool.check_fork().is_err() {
                // The work was to fork, and this is the child. Everything that is left belongs to the parent.
                return;
            }
            pool.sleep.start_search();
        }
        if found {
            idle_since = None;
        } else if pool.is_stopping() && pool.jobs.close(index) {
            // `close` looks at the queue after `is_stopping`, so jobs that were queued before the stop have been run.
            break;
        } else {
            idle(pool, index, &mut idle_since);
        }
    }
    pool.sleep.end_search(|| pool.has_work());
}

// Each of these ends the worker's search if it finds work, and returns whether it did.

fn help_in_region(pool: &PoolState, _index: usize) -> bool {
    region::helper::help(pool)
}

/// Runs the oldest job in the queue, and then the jobs behind it while there is nothing else to do.
fn run_queued_jobs(pool: &PoolState, index: usize) -> bool {
    let Some(job) = pool.jobs.pop() else { return false };
    pool.sleep.end_search(|| pool.has_work());
    run::run(pool, job);
    loop {
        // With no job in hand: a deferred job may wait for the next one, which another worker can run meanwhile.
        deferred::run_pending();
        if pool.regions.any_shown()
            || pool.offers.any()
            || pool.jobs.has_own(index)
            || pool.check_fork().is_err()
        {
            return true;
        }
        let Some(job) = pool.jobs.pop() else { return true };
        run::run(pool, job);
    }
}

/// Runs the oldest of the jobs that only this worker may run.
fn run_own_job(pool: &PoolState, index: usize) -> bool {
    let Some(job) = pool.jobs.pop_own(index) else { return false };
    pool.sleep.end_search(|| pool.has_work());
    job.run();
    true
}

/// Spins for a while; then sleeps until there is work.
fn idle(pool: &PoolState, index: usize, since: &mut Option<Instant>) {
    let since = since.get_or_insert_with(Instant::now);
    for _ in 0..16 {
        sync::pause();
    }
    if since.elapsed() >= pool.spin {
        pool.sleep.sleep(index, || pool.has_work() || pool.jobs.has_own(index) || pool.is_stopping());
        *since = Instant::now();
    }
}
