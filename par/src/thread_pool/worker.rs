//! The work of a worker. This file imports every kind of work, and only the builder imports this file.
//!
//! A worker looks in turn for an open region, a half of a join, a job that it alone may run, and a job from
//! the queue. The loop around that is in [`search`](super::search()).

use super::{
    looks::LooksForJobs,
    search::{Work, search},
    state::PoolState,
};
use crate::{
    current,
    denormals::control,
    jobs::{deferred, run},
    join, region,
};

/// Works until the pool is stopped and its queue is empty.
pub(super) fn main_loop(pool: &PoolState, index: usize) {
    let _installed = current::install(pool);
    control::reset();
    pool.as_worker(index, || {
        let worker = Worker { pool, index, looks: LooksForJobs::default() };
        join::local::in_session(pool, || search(&pool.sleep, index, &pool.idle, &worker))
    });
}

/// The work of a pool, as one of its workers sees it.
struct Worker<'p> {
    pool: &'p PoolState,
    index: usize,
    looks: LooksForJobs,
}

impl Work for Worker<'_> {
    const KINDS: usize = 4;

    #[inline]
    fn help(&self, kind: usize) -> bool {
        match kind {
            0 => region::helper::help(self.pool),
            1 => join::steal::help(self.pool, self.index),
            2 => run_own_job(self.pool, self.index),
            _ => self.looks.is_due() && run_queued_jobs(self.pool, self.index, &self.looks),
        }
    }

    fn goes_on(&self) -> bool {
        // Before the next search: a deferred job may block, and a publisher wakes no other worker while one
        // searches.
        deferred::run_pending();
        // If the work was to fork, and this is the child, everything that is left belongs to the parent.
        self.pool.check_fork().is_ok()
    }

    fn is_left(&self) -> bool {
        self.pool.has_work()
    }

    fn keeps_awake(&self) -> bool {
        self.pool.has_work() || self.pool.jobs.has_own(self.index) || self.pool.is_stopping()
    }

    fn is_over(&self) -> bool {
        // `close` looks at the queue after `is_stopping`, so jobs that were queued before the stop have been
        // run.
        self.pool.is_stopping() && self.pool.jobs.close(self.index)
    }
}

// Each of these ends the worker's search if it finds work, and returns whether it did.

/// Runs the oldest job in the queue, and then the jobs behind it while there is nothing else to do. Notes
/// whether it has run any: entries of the queue may be stale.
fn run_queued_jobs(pool: &PoolState, index: usize, looks: &LooksForJobs) -> bool {
    let Some(mut job) = pool.jobs.pop() else {
        looks.note(false);
        return false;
    };
    pool.sleep.end_search(|| pool.has_work());
    let may_go_on = || {
        // With no job in hand: a deferred job may wait for the next one, which another worker can run
        // meanwhile.
        deferred::run_pending();
        !(pool.regions.any_shown()
            || pool.offers.any()
            || pool.jobs.has_own(index)
            || pool.check_fork().is_err())
    };
    let mut has_run = false;
    loop {
        has_run |= run::run(pool, job, may_go_on);
        match may_go_on().then(|| pool.jobs.pop()).flatten() {
            Some(next) => job = next,
            None => break,
        }
    }
    looks.note(has_run);
    true
}

/// Runs the oldest of the jobs that only this worker may run.
fn run_own_job(pool: &PoolState, index: usize) -> bool {
    let Some(job) = pool.jobs.pop_own(index) else { return false };
    pool.sleep.end_search(|| pool.has_work());
    job.run();
    true
}
