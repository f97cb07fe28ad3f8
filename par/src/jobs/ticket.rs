//! The ticket of a scope: an entry in the queue of the pool that stands for the jobs in the queue of the
//! scope.
//!
//! There is at most one at a time. In a pool with workers there is one whenever jobs wait that no worker is
//! about to look for. One word holds the state:
//!
//! | bit | name | meaning |
//! |---|---|---|
//! | 0 | QUEUED | the ticket is in the queue of the pool, or a thread is about to put it there |
//! | 1 | CLOSED | the scope has ended |
//!
//! 1. A thread that spawns a job adds it to the queue of the scope. Then it looks at QUEUED. If that is not
//!    set, it sets it. Only the thread that did so puts the ticket into the queue of the pool. A worker that
//!    has taken the ticket and found more than one job does the same, unless CLOSED is set.
//! 2. A worker that takes the ticket out of the queue of the pool clears QUEUED. Then it looks for a job.
//! 3. A sequentially consistent fence is between the two steps of each of them. So the worker finds the job,
//!    or the other thread finds QUEUED clear.
//! 4. The opener sets CLOSED when all jobs have ended. If QUEUED is set, the ticket is stale from now on, and
//!    the opener counts it as such. Otherwise there is none any more. The worker that takes a stale ticket
//!    finds CLOSED as it clears QUEUED.
//!
//! Loom checks this in `models.rs`.

use crate::sync::atomic::{AtomicU8, Ordering::*, fence};

const QUEUED: u8 = 1;
const CLOSED: u8 = 2;

#[derive(Debug, Default)]
pub(super) struct Ticket(AtomicU8);

impl Ticket {
    /// Whether the ticket is in the queue of the pool. The caller has added a job before, and then come
    /// through a sequentially consistent fence.
    #[inline]
    pub(super) fn is_queued(&self) -> bool {
        self.0.load(Relaxed) & QUEUED != 0
    }

    /// Whether the caller is to put the ticket into the queue of the pool. Not if the scope has ended: then
    /// only entries of jobs that have ended are left in its queue.
    #[must_use]
    pub(super) fn queue(&self) -> bool {
        self.0.fetch_or(QUEUED, Relaxed) & (QUEUED | CLOSED) == 0
    }

    /// The caller has taken the ticket out of the queue of the pool, and looks for jobs now. Returns whether
    /// the ticket was stale.
    #[must_use]
    pub(super) fn take(&self) -> bool {
        let is_stale = self.0.fetch_and(!QUEUED, Relaxed) & CLOSED != 0;
        fence(SeqCst);
        is_stale
    }

    /// The scope has ended. Returns whether there is a ticket, which is stale now.
    #[must_use]
    pub(super) fn close(&self) -> bool {
        self.0.fetch_or(CLOSED, Relaxed) & QUEUED != 0
    }

    /// Whether the scope has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.0.load(Relaxed) & CLOSED != 0
    }
}
