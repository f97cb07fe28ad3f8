//! Handles: the one right to a job's outcome.

use super::{deferred::RunDeferred, publish::left_stale, spawned::Joinable};
use crate::{Panic, current, thread_pool::state::PoolState};
use std::{fmt, sync::Arc};

/// The part that both kinds of handle share. Joining consumes it, dropping it detaches the job.
pub(super) struct RawHandle<'a, R> {
    /// `None` once the job is joined.
    job: Option<Arc<dyn Joinable<R> + 'a>>,
    /// Whether only one worker may run the job.
    pinned: bool,
}

impl<'a, R> RawHandle<'a, R> {
    pub(super) fn new(job: Arc<dyn Joinable<R> + 'a>, pinned: bool) -> Self {
        Self { job: Some(job), pinned }
    }

    /// Joins the job. `outside` says whether the calling thread may wait for a job that it must not run
    /// itself. `left_stale` is called if the thread runs the job, whose entry stays in its queue.
    pub(super) fn join(
        mut self,
        pool: &PoolState,
        outside: impl FnOnce() -> bool,
        left_stale: impl FnOnce(),
    ) -> Result<R, Panic> {
        pool.expect_not_forked();
        assert!(
            !self.pinned || outside(),
            "a job for one worker was joined from inside a region, a job or a scope, where two workers could wait for each \
             other; join it outside"
        );
        let _deferred = RunDeferred::on_drop();
        let job = self.job.take().expect("a job is joined once");
        if !self.pinned {
            let _installed = current::install(pool);
            if let Some(outcome) = job.run_here() {
                left_stale();
                return outcome.map_err(Panic::of_job);
            }
        }
        job.wait(pool.patience).map_err(Panic::of_job)
    }

    pub(super) fn is_done(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.is_done())
    }
}

impl<R> Drop for RawHandle<'_, R> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            job.detach();
        }
    }
}

impl<R> fmt::Debug for RawHandle<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawHandle").field("done", &self.is_done()).finish_non_exhaustive()
    }
}

/// The handle of a job that was [spawned](crate::ThreadPool::spawn): the right to its result.
///
/// If the handle is dropped, the job is run all the same, and its result is dropped. If such a job panics,
/// the panic hook prints the message, and the panic goes no further.
#[derive(Debug)]
pub struct JobHandle<R> {
    raw: RawHandle<'static, R>,
    pool: Arc<PoolState>,
}

impl<R> JobHandle<R> {
    pub(super) fn new(raw: RawHandle<'static, R>, pool: Arc<PoolState>) -> Self {
        Self { raw, pool }
    }

    /// Returns the job's result. A job that has not begun is run now, on the calling thread, so joining never
    /// waits for a thread that is busy with other things. Only a job of
    /// [`spawn_on`](crate::ThreadPool::spawn_on) is always waited for. While it waits, the thread runs
    /// nothing else.
    ///
    /// # Errors
    /// If the job panicked.
    ///
    /// # Panics
    /// If the job is one of [`spawn_on`](crate::ThreadPool::spawn_on) and this is called from inside a
    /// region, a job or a scope. And if this process was forked after the pool was built: the job belongs to
    /// the parent.
    pub fn join(self) -> Result<R, Panic> {
        self.raw.join(&self.pool, || !current::is_inside(), || left_stale(&self.pool))
    }

    /// Whether the job has ended, so that [`join`](Self::join) returns at once.
    pub fn is_done(&self) -> bool {
        self.raw.is_done()
    }
}
