//! The queue of a scope's jobs, from which both the workers and the opener of the scope take them.
//!
//! A worker learns of the queue by its [ticket](super::ticket), an entry in the queue of the pool. A worker
//! that takes the ticket also takes a job. If there are more jobs, it queues the ticket again, so that other
//! workers help, and other jobs of the pool have their turn. Only then it runs the job, and some more of the
//! scope.

use super::{
    publish::publish,
    queue::{QueuedJob, ScopeJobs, SpawnedJob},
    stale::{Entries, SweptQueue},
    ticket::Ticket,
};
use crate::thread_pool::state::PoolState;
use crossbeam_queue::SegQueue;
use std::sync::{
    Arc,
    atomic::{Ordering::*, fence},
};

/// The number of jobs that a worker runs for a ticket, unless it has other things to do.
const TURN: usize = 16;

/// The jobs of a scope that have not begun.
#[derive(Default)]
pub(crate) struct ScopeQueue {
    jobs: SweptQueue<SegQueue<Arc<dyn SpawnedJob>>>,
    ticket: Ticket,
}

impl Entries for SegQueue<Arc<dyn SpawnedJob>> {
    type Entry = Arc<dyn SpawnedJob>;

    #[inline]
    fn push(&self, job: Self::Entry) {
        SegQueue::push(self, job);
    }
    #[inline]
    fn pop(&self) -> Option<Self::Entry> {
        SegQueue::pop(self)
    }
    #[inline]
    fn is_empty(&self) -> bool {
        SegQueue::is_empty(self)
    }
    fn len(&self) -> usize {
        SegQueue::len(self)
    }
    fn is_stale(job: &Self::Entry) -> bool {
        job.has_begun()
    }
}

impl ScopeQueue {
    /// Adds a job, and finds a worker for it. A sequentially consistent fence follows the addition.
    #[inline]
    pub(super) fn push(self: &Arc<Self>, pool: &PoolState, job: Arc<dyn SpawnedJob>) {
        self.jobs.push(job);
        self.jobs_were_added(pool);
    }

    /// Makes sure that a worker looks for jobs that were added.
    #[inline]
    fn jobs_were_added(self: &Arc<Self>, pool: &PoolState) {
        // Pairs with the fence in `Ticket::take`, and with that of a worker that falls asleep.
        fence(SeqCst);
        if pool.workers() == 0 {
            // The opener runs all jobs.
        } else if !self.ticket.is_queued() {
            self.queue_ticket(pool);
        } else {
            pool.sleep.wake_one_after_fence();
        }
    }

    #[cold]
    fn queue_ticket(self: &Arc<Self>, pool: &PoolState) {
        if self.ticket.queue() {
            publish(pool, QueuedJob::Scope(Arc::<Self>::clone(self)));
        }
    }

    /// Takes out the oldest job, and runs it if it has not begun. Returns whether there was one. For the
    /// opener.
    pub(super) fn run_one(&self) -> bool {
        let job = self.jobs.pop();
        job.inspect(|job| _ = self.run(&**job)).is_some()
    }

    /// Runs a job that was taken out, unless it has begun elsewhere.
    fn run(&self, job: &dyn SpawnedJob) -> bool {
        let runs = job.run();
        if !runs {
            self.jobs.popped_stale();
        }
        runs
    }

    /// Called by a thread that has begun a job without taking it from the queue. Returns whether the opener
    /// may have missed jobs, and must be woken.
    pub(super) fn left_stale(self: &Arc<Self>, pool: &PoolState) -> bool {
        let moved = self.jobs.left_stale();
        if moved {
            self.jobs_were_added(pool);
        }
        moved
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// The scope ends: all jobs have ended. Returns whether the ticket is in the queue of the pool, and
    /// stale.
    pub(super) fn close(&self) -> bool {
        // Entries may be left of jobs that were joined.
        while self.jobs.pop().is_some() {}
        self.ticket.close()
    }
}

impl ScopeJobs for ScopeQueue {
    fn is_closed(&self) -> bool {
        self.ticket.is_closed()
    }

    fn run_some(&self, queue_ticket: &dyn Fn(), may_go_on: &dyn Fn() -> bool) -> Option<usize> {
        if self.ticket.take() {
            return None;
        }
        let mut next = self.jobs.pop();
        if next.is_some() && !self.jobs.is_empty() && self.ticket.queue() {
            queue_ticket();
        }
        let (mut taken, mut ran) = (0, 0);
        while let Some(job) = next {
            ran += usize::from(self.run(&*job));
            taken += 1;
            next = if taken < TURN && may_go_on() { self.jobs.pop() } else { None };
        }
        Some(ran)
    }
}
