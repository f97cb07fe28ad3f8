//! Jobs: closures and objects that are handed to a pool, and run by a worker some time later.
//!
//! ```text
//! job.rs          the trait of jobs that are submitted
//! cell.rs         the states of a spawned job, its closure and its outcome
//! spawned.rs      how such a job is run and joined
//! handle.rs       the right to a job's outcome
//! scope.rs        jobs that borrow from the frame that opened their scope
//! scope_queue.rs  the queue of the jobs of a scope
//! ticket.rs       the entry of a scope in the queue of its pool
//! pending.rs      the number of jobs of a scope that have not ended
//! fifo.rs         the queue that jobs of a pool and of lanes wait in
//! stale.rs        queues of jobs that may begin elsewhere
//! queue.rs        all queues of a pool
//! publish.rs      handing a job over
//! run.rs          running a job from the queue
//! deferred.rs     jobs of pools without workers
//! error.rs        errors of spawning
//! ```
//!
//! A thread that joins a job which has not begun runs it itself, and so does the opener of a scope with all
//! jobs that are left at the end. So a thread never waits for a job that has not begun, and while it waits it
//! runs only jobs that it asked for.

mod cell;
pub(crate) mod deferred;
mod error;
pub(crate) mod fifo;
mod handle;
pub(crate) mod job;
mod marked;
mod pending;
mod publish;
pub(crate) mod queue;
pub(crate) mod run;
mod scope;
mod scope_queue;
mod spawned;
mod stale;
mod ticket;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

pub use error::SpawnError;
pub use handle::JobHandle;
pub use job::Job;
pub use scope::{Scope, ScopedHandle};

use crate::{
    current,
    enter::outside_of_marks,
    thread_pool::{ThreadPool, state::PoolState, with_pool},
};
use cell::JobCell;
use handle::RawHandle;
use publish::{check_worker, publish, publish_on};
use queue::QueuedJob;
use spawned::{FreeJob, NoOwner};
use std::sync::Arc;

impl ThreadPool {
    /// Hands a job to the workers. It runs later, on one of them.
    ///
    /// In a pool without workers the calling thread runs it: before this returns, or if the thread is inside
    /// a region, a join, a scope or a job, when it leaves the outermost one.
    ///
    /// # Panics
    /// If this process was forked after the pool was built.
    pub fn submit(&self, job: Arc<dyn Job>) {
        self.state().expect_not_forked();
        publish(self.state(), QueuedJob::Submitted(marked::with_current_marks(job)));
    }

    /// Hands a job to the workers like [`submit`](Self::submit), but without the [marks](crate::Marks) that
    /// are set for the calling thread: for a job that does not belong to the work which the thread is in the
    /// middle of.
    ///
    /// # Panics
    /// See [`submit`](Self::submit).
    pub fn submit_unmarked(&self, job: Arc<dyn Job>) {
        self.state().expect_not_forked();
        let publish = || publish(self.state(), QueuedJob::Submitted(job));
        // In a pool without workers, this thread may run the job.
        if self.state().workers() == 0 { outside_of_marks(publish) } else { publish() }
    }

    /// Spawns a job: a worker runs it some time later, or the thread that joins it does so first. Jobs begin
    /// in about the order in which they were spawned.
    ///
    /// In a pool without workers the calling thread runs it: before this returns, or if the thread is inside
    /// a region, a join, a scope or a job, when the job is joined or the thread leaves the outermost one.
    ///
    /// ```
    /// use anabranch_par::ThreadPool;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let sum = pool.spawn(|| (1..=100).sum::<u32>());
    /// assert_eq!(sum.join()?, 5050);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If this process was forked after the pool was built.
    pub fn spawn<F, R>(&self, f: F) -> JobHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        spawn_in(self.state(), f)
    }

    /// Spawns a job that runs on the worker with this index and on no other thread: for objects that belong
    /// to one thread, as the context of a device does. The thread that joins the job does not run it.
    ///
    /// ```
    /// use anabranch_par::ThreadPool;
    ///
    /// let pool = ThreadPool::builder().workers(2).name("worker-").build()?;
    /// let name = pool.spawn_on(1, || std::thread::current().name().map(String::from))?;
    /// assert_eq!(name.join()?.as_deref(), Some("worker-1"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such worker, if the pool was stopped, if this is called from inside a region, a job or
    /// a scope of any pool, or if this process was forked after the pool was built: see [`SpawnError`]. The
    /// job is not run then.
    pub fn spawn_on<F, R>(&self, worker: usize, f: F) -> Result<JobHandle<R>, SpawnError>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let pool = self.state();
        check_worker(pool, worker, || !current::is_inside())?;
        let job = Arc::new(JobCell::new(f, NoOwner::capture()));
        publish_on(pool, worker, Arc::<FreeJob<F, R>>::clone(&job))?;
        Ok(JobHandle::new(RawHandle::new(job, true), pool.to_arc()))
    }

    /// Calls `f` with a [`Scope`], whose jobs may borrow what outlives it. When `f` returns, the calling
    /// thread runs the jobs of the scope that have not begun, and waits for the rest: all have ended when
    /// this returns. It runs no job of another scope. If no worker helps, the opener runs all jobs, so scopes
    /// may be nested at will.
    ///
    /// ```
    /// use anabranch_par::ThreadPool;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let text = String::from("left right");
    /// let (left, right) = text.split_once(' ').unwrap();
    /// let mut lengths = [0; 2];
    /// let [first, second] = &mut lengths;
    /// pool.scope(|s| {
    ///     s.spawn(|| *first = left.len());
    ///     *second = right.len();
    /// });
    /// assert_eq!(lengths, [4, 5]);
    /// # Ok::<(), anabranch_par::PoolError>(())
    /// ```
    ///
    /// # Panics
    /// If `f` panics, or a job whose handle was dropped (the first such job, in the order of spawning): once
    /// all jobs have ended, with the payload of the panic. And if this process was forked after the pool was
    /// built. If it was forked inside the scope, the jobs are lost in the child, which waits for none.
    pub fn scope<'env, T>(&self, f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
        scope::scope(self.state(), f)
    }
}

/// Spawns a job on the calling thread's pool: the one it works for, or else the [global](ThreadPool::global)
/// one. See [`ThreadPool::spawn`].
///
/// ```
/// let answer = anabranch_par::spawn(|| 6 * 7);
/// assert_eq!(answer.join()?, 42);
/// # Ok::<(), anabranch_par::Panic>(())
/// ```
///
/// # Panics
/// As [`ThreadPool::spawn`].
pub fn spawn<F, R>(f: F) -> JobHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    with_pool(|pool| spawn_in(pool, f))
}

/// Opens a scope on the calling thread's pool: the one it works for, or else the [global](ThreadPool::global)
/// one. See [`ThreadPool::scope`].
///
/// ```
/// let (mut evens, mut odds) = (0, 0);
/// anabranch_par::scope(|s| {
///     s.spawn(|| evens = (0..100).step_by(2).sum());
///     s.spawn(|| odds = (1..100).step_by(2).sum());
/// });
/// assert_eq!((evens, odds), (2450, 2500));
/// ```
///
/// # Panics
/// As [`ThreadPool::scope`].
pub fn scope<'env, T>(f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    with_pool(|pool| scope::scope(pool, f))
}

fn spawn_in<F, R>(pool: &PoolState, f: F) -> JobHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    pool.expect_not_forked();
    let job = Arc::new(JobCell::new(f, NoOwner::capture()));
    publish(pool, QueuedJob::Spawned(Arc::<FreeJob<F, R>>::clone(&job)));
    JobHandle::new(RawHandle::new(job, false), pool.to_arc())
}
