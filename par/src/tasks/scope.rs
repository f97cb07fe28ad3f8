//! Scopes: jobs that borrow from the frame that opens them.
//!
//! # Safety
//! The queue holds jobs of any lifetime, so the lifetime of a scope's jobs is erased here, and only here. What they borrow is
//! valid all the same whenever it is touched: `scope` does not return or unwind before every job has ended
//! ([`Core::complete`]), and a job that has ended has nothing left in its cell that borrows. Its closure was used up when it
//! began. Its result was dropped, or taken by its handle, or is left to its handle; and a handle cannot outlive `'scope`. So
//! an entry that stays in the queue behind the scope holds plain memory: it is asked whether it has begun, and dropped.

use super::{
    cell::{JobCell, Owner},
    check_worker,
    error::SpawnError,
    handle::Ticket,
    pending::Pending,
    queue::Runnable,
};
use crate::{
    Forked, Panic,
    current::{self, Held},
    panic::{Payload, discard},
    thread_pool::{Busy, Shared},
};
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    mem::{self, ManuallyDrop},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::ThreadId,
};

/// A scope, in which jobs may borrow what outlives it: see [`ThreadPool::scope`](crate::ThreadPool::scope).
pub struct Scope<'scope, 'env: 'scope> {
    pool: &'scope Shared,
    core: &'scope Core,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

struct Core {
    pending: Pending,
    /// How many jobs have been spawned.
    spawned: AtomicU64,
    book: Mutex<Book>,
    /// The opener, if it was outside of everything when it opened the scope.
    outside: Option<ThreadId>,
    /// What the opener holds, who waits for the jobs.
    held: Held,
}

#[derive(Default)]
struct Book {
    /// Jobs that the opener may run at the end. Some of them have begun.
    waiting: VecDeque<Arc<dyn Runnable>>,
    /// Of the panics that no handle was there for, the one of the first job.
    panic: Option<(u64, Payload)>,
}

pub(super) fn scope<'env, T>(
    pool: &Shared,
    f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
) -> T {
    pool.expect_not_forked();
    let outside = (!current::is_inside()).then(|| std::thread::current().id());
    let _busy = Busy::enter();
    let _entered = current::enter_here(pool);
    let core = ManuallyDrop::new(Core {
        pending: Pending::new(),
        spawned: AtomicU64::new(0),
        book: Mutex::default(),
        outside,
        held: current::held(),
    });
    let scope = Scope { pool, core: &core, scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    if let Err(forked) = core.complete(pool) {
        // Forked from inside the scope: nobody is left to wait for, nor to touch what the jobs borrow. Others were at work on
        // the scope when they ceased to be, so it is left as it is.
        match result {
            Ok(_) => panic!("{forked}"),
            Err(payload) => resume_unwind(payload),
        }
    }
    let panic = ManuallyDrop::into_inner(core).book.into_inner().panic;
    match (result, panic) {
        (Ok(result), None) => result,
        (Ok(_), Some((_, payload))) => resume_unwind(payload),
        (Err(payload), panic) => {
            // The opener's own comes first; the hook has printed the other.
            panic.into_iter().for_each(|(_, payload)| discard(payload));
            resume_unwind(payload)
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a job that may borrow what outlives the scope. It is run by a worker, or by the thread that joins it, or by the
    /// opener at the end of the scope. Jobs of the scope may spawn more.
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
        let job = self.core.admit(f);
        let entry = erase(Arc::clone(&job));
        self.core.list(Arc::clone(&entry));
        self.pool.publish(entry);
        self.core.pending.nudge();
        self.handle(job, false)
    }

    /// Spawns a job that runs on the worker with this index and nowhere else.
    ///
    /// # Errors
    /// If there is no such worker, the pool was stopped, or this process was forked after the pool was built; or if this is
    /// not called by the thread that opened the scope, from outside of all regions, jobs and other scopes: see [`SpawnError`]. The job is not run then.
    pub fn spawn_on<F, R>(&'scope self, worker: usize, f: F) -> Result<ScopedHandle<'scope, R>, SpawnError>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        check_worker(self.pool, worker, || self.core.is_outside())?;
        let job = self.core.admit(f);
        if let Err(error) = self.pool.publish_on(worker, erase(Arc::clone(&job))) {
            // Nobody else has it: it is not run, and no longer counted.
            self.core.pending.finish();
            return Err(error);
        }
        Ok(self.handle(job, true))
    }

    /// How many jobs are listed for the opener.
    #[cfg(all(test, not(loom)))]
    pub(super) fn listed(&self) -> usize {
        self.core.book.lock().waiting.len()
    }

    fn handle<F, R>(&'scope self, job: Arc<ScopedJob<F, R>>, pinned: bool) -> ScopedHandle<'scope, R>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        ScopedHandle { ticket: Ticket::new(job, pinned), pool: self.pool, core: self.core }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("pending", &self.core.pending).finish_non_exhaustive()
    }
}

impl Core {
    /// Counts a job more.
    fn admit<F, R>(&self, f: F) -> Arc<ScopedJob<F, R>> {
        self.pending.add();
        let index = self.spawned.fetch_add(1, Relaxed);
        Arc::new(JobCell::new(f, Member { core: self, index }))
    }

    /// Lists a job for the opener.
    fn list(&self, entry: Arc<dyn Runnable>) {
        let waiting = &mut self.book.lock().waiting;
        if waiting.len() == waiting.capacity() {
            // Where jobs are joined as they are spawned, the list stays as short as it is.
            waiting.retain(|job| !job.has_begun());
            if waiting.len() > waiting.capacity() / 2 {
                waiting.reserve(waiting.capacity());
            }
        }
        waiting.push_back(entry);
    }

    fn next(&self) -> Option<Arc<dyn Runnable>> {
        self.book.lock().waiting.pop_front()
    }

    /// Runs what has not begun and waits for the rest. It does not unwind: jobs catch what they throw.
    ///
    /// # Errors
    /// Where this process was forked meanwhile.
    fn complete(&self, pool: &Shared) -> Result<(), Forked> {
        loop {
            pool.check_fork()?;
            if let Some(job) = self.next() {
                if job.run(pool) {
                    pool.left_stale();
                }
            } else if self.pending.wait(|| !self.book.lock().waiting.is_empty()) {
                return Ok(());
            }
        }
    }

    /// Whether the calling thread is the opener, and inside nothing but this scope.
    fn is_outside(&self) -> bool {
        current::depth() == 1 && self.outside == Some(std::thread::current().id())
    }
}

type ScopedJob<F, R> = JobCell<F, R, Member>;

/// The scope that a job belongs to, and the job's place in the order of spawning.
struct Member {
    core: *const Core,
    index: u64,
}

// SAFETY: `Core` is `Sync`, and reached only as `core` allows.
unsafe impl Send for Member {}
// SAFETY: as above.
unsafe impl Sync for Member {}

impl Member {
    /// To be called only while the job is counted as pending, or its handle is there.
    fn core(&self) -> &Core {
        // SAFETY: the scope waits for each of its jobs, and outlives its handles.
        unsafe { &*self.core }
    }
}

impl Owner for Member {
    fn held(&self) -> Held {
        self.core().held
    }

    fn lost(&self, payload: Payload) {
        let mut book = self.core().book.lock();
        let other = match &book.panic {
            Some((first, _)) if *first < self.index => Some(payload),
            _ => book.panic.replace((self.index, payload)).map(|(_, later)| later),
        };
        drop(book);
        other.into_iter().for_each(discard);
    }

    fn finished(&self) {
        self.core().pending.finish();
    }
}

/// Makes a job of a scope one that can be queued.
fn erase<'scope, F, R>(job: Arc<ScopedJob<F, R>>) -> Arc<dyn Runnable>
where
    F: FnOnce() -> R + Send + 'scope,
    R: Send + 'scope,
{
    let job: Arc<dyn Runnable + 'scope> = job;
    // SAFETY: only the lifetime changes. Nothing that is borrowed for it is touched after it: see the module documentation.
    unsafe { mem::transmute::<Arc<dyn Runnable + 'scope>, Arc<dyn Runnable>>(job) }
}

/// A job of a scope, and the right to its result.
///
/// Where a handle is dropped, the job is run all the same, and its panic comes out of the scope.
pub struct ScopedHandle<'scope, R> {
    ticket: Ticket<'scope, R>,
    pool: &'scope Shared,
    core: &'scope Core,
}

impl<R> ScopedHandle<'_, R> {
    /// The job's result. A job that has not begun is run now, on the calling thread; one that has is waited for, and
    /// meanwhile the thread runs nothing else. A job of [`spawn_on`](Scope::spawn_on) is always waited for.
    ///
    /// # Errors
    /// If the job panicked. The scope does not panic again for it.
    ///
    /// # Panics
    /// If the job is one of [`spawn_on`](Scope::spawn_on) and this is called from inside a region, a job or another scope.
    /// And if this process was forked after the pool was built.
    pub fn join(self) -> Result<R, Panic> {
        self.ticket.join(self.pool, || self.core.is_outside())
    }

    /// Whether the job has ended, so that [`join`](Self::join) returns at once.
    pub fn is_done(&self) -> bool {
        self.ticket.is_done()
    }
}

impl<R> fmt::Debug for ScopedHandle<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedHandle").field("done", &self.is_done()).finish_non_exhaustive()
    }
}
