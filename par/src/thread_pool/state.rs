//! The state of a pool, shared by its workers and its users.

use super::sleep::Sleep;
use crate::{
    fork::{BuildProcess, Forked},
    jobs::queue::JobQueue,
    join::offers::Offers,
    patience::Patience,
    region::{claims::Stopwatch, slots::RegionSlots},
    team::reservations::Reservations,
};
use std::{
    cell::Cell,
    ptr,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::*},
    },
};

thread_local! {
    /// The state of the pool whose worker this thread is (null for other threads), and the worker's index.
    static WORKER: Cell<(*const PoolState, usize)> = const { Cell::new((ptr::null(), 0)) };
}

#[derive(Debug)]
pub(crate) struct PoolState {
    /// The process that the workers are in.
    process: BuildProcess,
    workers: usize,
    /// Of a worker that finds no work.
    pub(crate) idle: Patience,
    /// Of a thread that waits for other threads.
    pub(crate) patience: Patience,
    /// Measures short loops; `None` where the clock is slow.
    pub(crate) stopwatch: Option<Stopwatch>,
    /// Whether loops are shared however short they were before.
    pub(crate) shares_short_loops: bool,
    stop: AtomicBool,
    /// Parallel regions that may be joined.
    pub(crate) regions: RegionSlots,
    /// Jobs that wait for a worker.
    pub(crate) jobs: JobQueue,
    /// Halves of joins that any thread of the pool may steal.
    pub(crate) offers: Offers,
    pub(crate) sleep: Sleep,
    /// Workers that belong to teams.
    pub(crate) reservations: Reservations,
    this: Weak<Self>,
}

impl PoolState {
    pub(super) fn new(
        process: BuildProcess,
        workers: usize,
        idle: Patience,
        patience: Patience,
        stopwatch: Option<Stopwatch>,
        shares_short_loops: bool,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            process,
            workers,
            idle,
            patience,
            stopwatch,
            shares_short_loops,
            stop: AtomicBool::new(false),
            regions: RegionSlots::new(workers),
            jobs: JobQueue::new(workers),
            offers: Offers::new(workers),
            sleep: Sleep::new(workers),
            reservations: Reservations::new(workers),
            this: this.clone(),
        })
    }

    pub(crate) fn to_arc(&self) -> Arc<Self> {
        self.this.upgrade().expect("a reference to the state comes from an owner")
    }

    /// The number of worker threads.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// The calling thread's index among the workers, if it is one of them.
    pub(crate) fn worker_index(&self) -> Option<usize> {
        let (pool, index) = WORKER.get();
        ptr::eq(pool, self).then_some(index)
    }

    /// The number of threads that a region can have if the calling thread opens it.
    #[inline]
    pub(crate) fn threads(&self) -> usize {
        self.workers + usize::from(self.worker_index().is_none())
    }

    /// Calls `f` with the calling thread registered as a worker.
    pub(super) fn as_worker(&self, index: usize, f: impl FnOnce()) {
        WORKER.set((self, index));
        self.sleep.register(index);
        f();
        // Thread-local destructors that run from here on may meet another pool at the same address.
        WORKER.set((ptr::null(), 0));
    }

    /// Whether the workers are in this process, not in the one that it was forked from.
    ///
    /// # Errors
    /// [`Forked`].
    #[inline]
    pub(crate) fn check_fork(&self) -> Result<(), Forked> {
        self.process.check()
    }

    /// Panics with [`Forked`]: for callers that cannot return an error.
    #[inline]
    #[track_caller]
    pub(crate) fn expect_not_forked(&self) {
        self.process.expect();
    }

    /// Tells the workers to end when the queue is empty.
    pub(super) fn stop(&self) {
        self.stop.store(true, SeqCst);
        self.sleep.wake_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.load(SeqCst)
    }

    /// Whether there is work for an idle worker.
    pub(crate) fn has_work(&self) -> bool {
        self.has_work_outside(0)
    }

    /// Whether there is work for an idle worker, the region slots whose bits are set in `except` left out.
    pub(crate) fn has_work_outside(&self, except: u64) -> bool {
        self.regions.any_joinable(except) || self.offers.any() || !self.jobs.is_empty()
    }
}
