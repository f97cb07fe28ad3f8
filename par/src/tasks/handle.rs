//! Handles: the one right to a job's outcome.

use super::cell::Outcome;
use crate::{
    Panic, current,
    thread_pool::{Busy, Shared},
};
use std::{fmt, sync::Arc};

/// A job as its handle sees it.
pub(super) trait Joinable<R>: Send + Sync {
    /// Runs it on the calling thread, unless somebody has begun it.
    fn run_here(&self, pool: &Shared) -> Option<Outcome<R>>;
    fn wait(&self) -> Outcome<R>;
    fn is_done(&self) -> bool;
    fn detach(&self);
}

/// What the handles have in common. It is used up by joining, or given up by dropping.
pub(super) struct Ticket<'a, R> {
    /// There until it is joined.
    job: Option<Arc<dyn Joinable<R> + 'a>>,
    /// The job is one worker's own.
    pinned: bool,
}

impl<'a, R> Ticket<'a, R> {
    pub(super) fn new(job: Arc<dyn Joinable<R> + 'a>, pinned: bool) -> Self {
        Self { job: Some(job), pinned }
    }

    /// `outside`: whether the calling thread may wait for a job that it must not run itself.
    pub(super) fn join(mut self, pool: &Shared, outside: impl FnOnce() -> bool) -> Result<R, Panic> {
        pool.expect_not_forked();
        assert!(
            !self.pinned || outside(),
            "a worker's own job was joined from inside a region, a job or a scope, where two workers could come to wait \
             for each other; join it outside"
        );
        let _busy = Busy::enter();
        let job = self.job.take().expect("a job is joined once");
        if !self.pinned
            && let Some(outcome) = job.run_here(pool)
        {
            pool.left_stale();
            return outcome.map_err(Panic::of_job);
        }
        job.wait().map_err(Panic::of_job)
    }

    pub(super) fn is_done(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.is_done())
    }
}

impl<R> Drop for Ticket<'_, R> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            job.detach();
        }
    }
}

impl<R> fmt::Debug for Ticket<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("done", &self.is_done()).finish_non_exhaustive()
    }
}

/// A job that was [spawned](crate::ThreadPool::spawn), and the right to its result.
///
/// Where a handle is dropped, the job is run all the same and its result is dropped. If such a job panics, the panic hook
/// has printed the message, and nobody else hears of it.
#[derive(Debug)]
pub struct JobHandle<R> {
    ticket: Ticket<'static, R>,
    pool: Arc<Shared>,
}

impl<R> JobHandle<R> {
    pub(super) fn new(ticket: Ticket<'static, R>, pool: Arc<Shared>) -> Self {
        Self { ticket, pool }
    }

    /// The job's result. A job that has not begun is run now, on the calling thread, so joining never waits for a thread
    /// that is busy with other things; only a job of [`spawn_on`](crate::ThreadPool::spawn_on) is always waited for. While
    /// it waits, the thread runs nothing else.
    ///
    /// # Errors
    /// If the job panicked.
    ///
    /// # Panics
    /// If the job is one of [`spawn_on`](crate::ThreadPool::spawn_on) and this is called from inside a region, a job or a
    /// scope. And if this process was forked after the pool was built: the job is the parent's.
    pub fn join(self) -> Result<R, Panic> {
        self.ticket.join(&self.pool, || !current::is_inside())
    }

    /// Whether the job has ended, so that [`join`](Self::join) returns at once.
    pub fn is_done(&self) -> bool {
        self.ticket.is_done()
    }
}
