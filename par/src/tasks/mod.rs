//! Jobs with a result: spawned now, run by a worker or by whoever joins them, and joined by a handle.
//!
//! ```text
//! cell.rs     one job: its closure, then its outcome, and who may touch which
//! queue.rs    where jobs wait for a worker
//! handle.rs   the right to a job's outcome
//! scope.rs    jobs that borrow from the frame that opened their scope
//! pending.rs  how many jobs of a scope have not ended
//! ```
//!
//! A thread that joins a job which nobody has begun runs it itself, and the opener of a scope does so with all that is left
//! at the end. So a thread never waits for one that has not started, and what it runs while it waits is what it asked for:
//! never somebody else's job.

mod cell;
mod error;
mod handle;
mod pending;
mod queue;
mod scope;

#[cfg(all(test, loom))]
mod models;

pub use error::SpawnError;
pub use handle::JobHandle;
pub(crate) use queue::{Runnable, Spawned};
pub use scope::{Scope, ScopedHandle};

use crate::{
    current::{self, Held, Participant},
    keep_denormals,
    panic::{Payload, discard},
    thread_pool::{Shared, ThreadPool},
};
use cell::{JobCell, Outcome, Owner};
use handle::{Joinable, Ticket};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

impl ThreadPool {
    /// Spawns a job: a worker runs it some time later, or the thread that joins it does so first. Jobs begin in about the
    /// order in which they were spawned.
    ///
    /// In a pool without workers the calling thread runs it: before this returns, or where the thread is inside a region or
    /// job, when it is joined or the thread leaves the outermost one.
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
        spawn_in(self.shared(), f)
    }

    /// Spawns a job that runs on the worker with this index and nowhere else: for what belongs to one thread, as a device's
    /// context does. It is not run by the thread that joins it.
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
    /// If there is no such worker, if the pool was stopped, if this is called from inside a region, a job or a scope of any
    /// pool, or if this process was forked after the pool was built: see [`SpawnError`]. The job is not run then.
    pub fn spawn_on<F, R>(&self, worker: usize, f: F) -> Result<JobHandle<R>, SpawnError>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let pool = self.shared();
        check_worker(pool, worker, || !current::is_inside())?;
        let job = Arc::new(JobCell::new(f, Nobody));
        pool.publish_on(worker, Arc::<FreeJob<F, R>>::clone(&job))?;
        Ok(JobHandle::new(Ticket::new(job, true), pool.to_arc()))
    }

    /// Calls `f` with a [`Scope`], whose jobs may borrow what outlives it. When `f` returns, the calling thread runs those
    /// jobs of the scope that nobody has begun, and waits for the others: all have ended when this returns. It runs no job of
    /// another scope. A scope without workers to help is run by its opener alone, so scopes may be nested at will.
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
    /// If `f` panics, or a job whose handle was dropped (the first such job, in the order of spawning): once all jobs have
    /// ended, and with what the panic carried. And if this process was forked after the pool was built; where that was done
    /// inside the scope, its jobs are lost in the child, which waits for none.
    pub fn scope<'env, T>(&self, f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
        scope::scope(self.shared(), f)
    }
}

/// Spawns a job on the calling thread's pool: the one it works for, or else the [global](ThreadPool::global) one. See
/// [`ThreadPool::spawn`].
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
    current::with_pool(|pool| spawn_in(pool, f))
}

/// Opens a scope on the calling thread's pool: the one it works for, or else the [global](ThreadPool::global) one. See
/// [`ThreadPool::scope`].
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
    current::with_pool(|pool| scope::scope(pool, f))
}

fn spawn_in<F, R>(pool: &Shared, f: F) -> JobHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    pool.expect_not_forked();
    let job = Arc::new(JobCell::new(f, Nobody));
    pool.publish(Arc::<FreeJob<F, R>>::clone(&job));
    JobHandle::new(Ticket::new(job, false), pool.to_arc())
}

/// Whether a job may be left for this worker; `outside`: whether the calling thread may wait for it.
fn check_worker(pool: &Shared, worker: usize, outside: impl FnOnce() -> bool) -> Result<(), SpawnError> {
    pool.check_fork().map_err(SpawnError::Forked)?;
    if worker >= pool.workers() {
        Err(SpawnError::NoSuchWorker { asked: worker, workers: pool.workers() })
    } else if !outside() {
        Err(SpawnError::Inside)
    } else {
        Ok(())
    }
}

/// Calls a job's closure on the calling thread, inside `pool`, in the floating-point mode of a fresh worker.
fn call_inside<R>(pool: &Shared, held: Held, f: impl FnOnce() -> R) -> Outcome<R> {
    let _entered = current::enter_for(pool, Participant::NONE, held);
    catch_unwind(AssertUnwindSafe(|| keep_denormals(f)))
}

/// A job that belongs to nobody: see [`ThreadPool::spawn`].
type FreeJob<F, R> = JobCell<F, R, Nobody>;

struct Nobody;

impl Owner for Nobody {
    fn lost(&self, payload: Payload) {
        // The panic hook has printed the message.
        discard(payload);
    }
    fn finished(&self) {}
}

impl<F, R, O> Runnable for JobCell<F, R, O>
where
    F: FnOnce() -> R + Send,
    R: Send,
    O: Owner,
{
    fn has_begun(&self) -> bool {
        self.has_begun()
    }
    fn run(&self, pool: &Shared) -> bool {
        self.run(|f| call_inside(pool, self.held(), f))
    }
}

impl<F, R, O> Joinable<R> for JobCell<F, R, O>
where
    F: FnOnce() -> R + Send,
    R: Send,
    O: Owner,
{
    fn run_here(&self, pool: &Shared) -> Option<Outcome<R>> {
        self.run_here(|f| call_inside(pool, self.held(), f))
    }
    fn wait(&self) -> Outcome<R> {
        self.wait()
    }
    fn is_done(&self) -> bool {
        self.is_done()
    }
    fn detach(&self) {
        self.detach();
    }
}
