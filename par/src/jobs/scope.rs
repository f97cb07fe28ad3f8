//! Scopes: jobs that borrow from the frame that opens them.
//!
//! # Safety
//! The queue holds jobs without a lifetime, so the lifetime of a scope's jobs is erased here, and only here.
//! Everything that they borrow is valid nevertheless whenever it is touched: `scope` does not return or
//! unwind before every job has ended ([`ScopeState::complete`]), and the cell of a job that has ended holds
//! nothing that borrows. The closure was consumed when the job began. The result was dropped, or taken by the
//! handle, or is left to the handle, and a handle cannot outlive `'scope`. So an entry that a
//! worker still has after the end of the scope holds plain memory: it is dropped.

use super::{
    cell::{JobCell, Owner},
    deferred::RunDeferred,
    error::SpawnError,
    handle::RawHandle,
    pending::Pending,
    publish::{check_worker, left_stale, publish_on},
    queue::SpawnedJob,
    scope_queue::ScopeQueue,
};
use crate::{
    Forked, Panic,
    context::{Context, HeldValues, Marks},
    current,
    enter::also_in_chain,
    panic::{Payload, discard},
    thread_pool::state::PoolState,
};
use parking_lot::Mutex;
use std::{
    fmt,
    marker::PhantomData,
    mem::{self, ManuallyDrop},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    thread::ThreadId,
};

/// A scope, in which jobs may borrow what outlives it: see [`ThreadPool::scope`](crate::ThreadPool::scope).
pub struct Scope<'scope, 'env: 'scope> {
    pool: &'scope PoolState,
    state: &'scope ScopeState,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

struct ScopeState {
    pending: Pending,
    /// The jobs that wait. In the end the opener runs those that are left.
    queue: Arc<ScopeQueue>,
    /// Of the panics of jobs without a handle, the one of the job that was spawned first.
    panic: Mutex<Option<(usize, Payload)>>,
    /// The opener, if it was outside of everything when it opened the scope.
    outside: Option<ThreadId>,
    /// The context of the opener, which waits for the jobs.
    context: Context,
}

pub(super) fn scope<'env, T>(
    pool: &PoolState,
    f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
) -> T {
    pool.expect_not_forked();
    let outside = (!current::is_inside()).then(|| std::thread::current().id());
    let _deferred = RunDeferred::on_drop();
    let _entered = current::enter_here(pool);
    let state = ManuallyDrop::new(ScopeState {
        pending: Pending::new(),
        queue: Arc::default(),
        panic: Mutex::default(),
        outside,
        context: Context::capture(),
    });
    let scope = Scope { pool, state: &state, scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    if let Err(forked) = state.complete(pool) {
        // The process was forked inside the scope. No thread is left to wait for, nor to touch what the jobs
        // borrow. Other threads may have been changing the scope at the fork, so it is left as it is.
        match result {
            Ok(_) => panic!("{forked}"),
            Err(payload) => resume_unwind(payload),
        }
    }
    let panic = ManuallyDrop::into_inner(state).panic.into_inner();
    match (result, panic) {
        (Ok(result), None) => result,
        (Ok(_), Some((_, payload))) => resume_unwind(payload),
        (Err(payload), panic) => {
            // The opener's own panic comes first. The hook has printed the other one.
            panic.into_iter().for_each(|(_, payload)| discard(payload));
            resume_unwind(payload)
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a job that may borrow what outlives the scope. A worker runs it, or the thread that joins it,
    /// or the opener at the end of the scope. Jobs of the scope may spawn more.
    ///
    /// A panic of a job whose handle was dropped comes out of [`scope`](crate::ThreadPool::scope).
    ///
    /// # Panics
    /// If this process was forked after the pool was built.
    pub fn spawn<F, R>(&'scope self, f: F) -> ScopedHandle<'scope, R>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        self.pool.expect_not_forked();
        let job = self.state.admit(f);
        self.state.queue.push(self.pool, erase(Arc::clone(&job)));
        self.state.pending.wake_opener();
        self.handle(job, false)
    }

    /// Spawns a job that runs on the worker with this index and on no other thread.
    ///
    /// # Errors
    /// If there is no such worker, if the pool was stopped, if this process was forked after the pool was
    /// built, or if this is not called by the thread that opened the scope, outside of all regions, jobs and
    /// other scopes: see [`SpawnError`]. The job is not run then.
    pub fn spawn_on<F, R>(&'scope self, worker: usize, f: F) -> Result<ScopedHandle<'scope, R>, SpawnError>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        check_worker(self.pool, worker, || self.state.is_outside())?;
        let job = self.state.admit(f);
        if let Err(error) = publish_on(self.pool, worker, erase(Arc::clone(&job))) {
            // No other thread has the job: it is not run, and no longer counted.
            self.state.pending.finish();
            return Err(error);
        }
        Ok(self.handle(job, true))
    }

    /// The number of entries in the queue of the scope.
    #[cfg(all(test, not(loom)))]
    pub(super) fn queued(&self) -> usize {
        self.state.queue.len()
    }

    fn handle<F, R>(&'scope self, job: Arc<ScopedJob<F, R>>, pinned: bool) -> ScopedHandle<'scope, R>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        ScopedHandle { raw: RawHandle::new(job, pinned), pool: self.pool, state: self.state }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("pending", &self.state.pending).finish_non_exhaustive()
    }
}

impl ScopeState {
    /// Counts one more job.
    fn admit<F, R>(&self, f: F) -> Arc<ScopedJob<F, R>> {
        let index = self.pending.add();
        Arc::new(JobCell::new(f, ScopeRef { state: self, index, marks: Marks::beyond(self.context.chain) }))
    }

    /// Runs the jobs that have not begun and waits for the rest. It does not unwind, because jobs catch their
    /// panics.
    ///
    /// # Errors
    /// If this process was forked meanwhile.
    fn complete(&self, pool: &PoolState) -> Result<(), Forked> {
        loop {
            pool.check_fork()?;
            if !self.queue.run_one() && self.pending.wait(pool.patience, || !self.queue.is_empty()) {
                break;
            }
        }
        if self.queue.close() {
            left_stale(pool);
        }
        Ok(())
    }

    /// Called by a thread that has run a job because it joins it.
    fn left_stale(&self, pool: &PoolState) {
        if pool.check_fork().is_ok() && self.queue.left_stale(pool) {
            self.pending.wake_opener();
        }
    }

    /// Whether the calling thread is the opener, and inside nothing but this scope.
    fn is_outside(&self) -> bool {
        current::depth() == 1 && self.outside == Some(std::thread::current().id())
    }
}

type ScopedJob<F, R> = JobCell<F, R, ScopeRef>;

/// The scope that a job belongs to, and the job's place in the order of spawning.
struct ScopeRef {
    state: *const ScopeState,
    index: usize,
    /// The context of the thread that spawned the job, if its chain is not that of the opener.
    marks: Marks,
}

// SAFETY: `ScopeState` is `Sync`, and reached only as `ScopeRef::state` allows.
unsafe impl Send for ScopeRef {}
// SAFETY: as above.
unsafe impl Sync for ScopeRef {}

impl ScopeRef {
    /// Called only while the job is counted as pending, or has its handle.
    fn state(&self) -> &ScopeState {
        // SAFETY: the scope waits for each of its jobs, and outlives its handles.
        unsafe { &*self.state }
    }
}

impl Owner for ScopeRef {
    fn held(&self) -> HeldValues {
        self.state().context.held
    }

    #[inline]
    fn in_chain<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the opener waits for the job.
        unsafe { also_in_chain(self.state().context.chain, || self.marks.enter(f)) }
    }

    fn lost(&self, payload: Payload) {
        let mut panic = self.state().panic.lock();
        let other = match &*panic {
            Some((first, _)) if *first < self.index => Some(payload),
            _ => panic.replace((self.index, payload)).map(|(_, later)| later),
        };
        drop(panic);
        other.into_iter().for_each(discard);
    }

    fn finished(&self) {
        self.state().pending.finish();
    }
}

/// Erases the lifetime of a job of a scope, so that it can be queued.
fn erase<'scope, F, R>(job: Arc<ScopedJob<F, R>>) -> Arc<dyn SpawnedJob>
where
    F: FnOnce() -> R + Send + 'scope,
    R: Send + 'scope,
{
    let job: Arc<dyn SpawnedJob + 'scope> = job;
    // SAFETY: only the lifetime changes. Nothing that the job borrows is touched after its end: see the
    // module documentation.
    unsafe { mem::transmute::<Arc<dyn SpawnedJob + 'scope>, Arc<dyn SpawnedJob>>(job) }
}

/// The handle of a job of a scope: the right to its result.
///
/// If the handle is dropped, the job is run all the same, and its panic comes out of the scope.
pub struct ScopedHandle<'scope, R> {
    raw: RawHandle<'scope, R>,
    pool: &'scope PoolState,
    state: &'scope ScopeState,
}

impl<R> ScopedHandle<'_, R> {
    /// Returns the job's result. A job that has not begun is run now, on the calling thread. Otherwise the
    /// thread waits for it, and runs nothing else meanwhile. A job of [`spawn_on`](Scope::spawn_on) is always
    /// waited for.
    ///
    /// # Errors
    /// If the job panicked. The scope then does not panic for it.
    ///
    /// # Panics
    /// If the job is one of [`spawn_on`](Scope::spawn_on) and this is called from inside a region, a job or
    /// another scope. And if this process was forked after the pool was built.
    pub fn join(self) -> Result<R, Panic> {
        self.raw.join(self.pool, || self.state.is_outside(), || self.state.left_stale(self.pool))
    }

    /// Whether the job has ended, so that [`join`](Self::join) returns at once.
    pub fn is_done(&self) -> bool {
        self.raw.is_done()
    }
}

impl<R> fmt::Debug for ScopedHandle<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedHandle").field("done", &self.is_done()).finish_non_exhaustive()
    }
}
