//! Deferred jobs: a pool without workers runs its jobs on the thread that hands them over, but never in the
//! middle of something else.
//!
//! Such a pool is what `ThreadPool::new(1)` builds, and the global pool of a machine with one processor. Its
//! jobs run as soon as the thread is outside of all regions, joins, scopes and jobs, of whatever pool. Until
//! then the thread remembers the pool.
//!
//! Two simpler ways were rejected. If a job ran at once where it is submitted, it would run in the middle of
//! a loop, whose frames may hold a lock that the job wants, and jobs that submit jobs would need a stack as
//! deep as their number. If the first job started a worker, a pool of one thread would have two, and programs
//! ask for one thread in order to have no concurrency.

use super::run::run_all;
use crate::{current, thread_pool::state::PoolState};
use std::{cell::RefCell, mem::ManuallyDrop, ptr, sync::Arc};

thread_local! {
    /// The pools with deferred jobs of this thread. Without a destructor, so that it may be used while the
    /// thread ends. It is empty, and has no memory, whenever the thread is outside of everything.
    static PENDING: RefCell<ManuallyDrop<Vec<Arc<PoolState>>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Finds a thread for jobs that were queued: wakes a worker or, in a pool without workers, runs or defers
/// them.
#[inline]
pub(super) fn jobs_were_queued(pool: &PoolState) {
    if pool.workers() == 0 {
        run_or_defer(pool);
    } else {
        pool.sleep.wake_one();
    }
}

fn run_or_defer(pool: &PoolState) {
    if !current::is_inside() {
        run_all(pool);
        return run_pending();
    }
    PENDING.with_borrow_mut(|pending| {
        if !pending.iter().any(|other| ptr::eq(&**other, pool)) {
            pending.push(pool.to_arc());
        }
    });
}

/// Runs the deferred jobs of the calling thread, if it is outside of everything.
#[inline]
pub(crate) fn run_pending() {
    if PENDING.with_borrow(|pending| !pending.is_empty()) && !current::is_inside() {
        run_pools();
    }
}

#[cold]
fn run_pools() {
    // A pool stays in the list while its jobs run: a job that submits another one finds the pool there.
    while let Some(pool) = PENDING.with_borrow(|pending| pending.first().cloned()) {
        run_all(&pool);
        PENDING.with_borrow_mut(|pending| {
            pending.remove(0);
            if pending.is_empty() {
                // Frees its memory, too.
                drop(std::mem::take(&mut **pending));
            }
        });
    }
}

/// Runs the deferred jobs of the calling thread when it is dropped outside of everything. It is made before
/// the thread enters a region, a join or a scope, and dropped after the thread has left, so the outermost one
/// runs the jobs.
#[derive(Debug)]
pub(crate) struct RunDeferred(());

impl RunDeferred {
    #[inline]
    pub(crate) fn on_drop() -> Self {
        Self(())
    }
}

impl Drop for RunDeferred {
    #[inline]
    fn drop(&mut self) {
        run_pending();
    }
}
