//! The pool: worker threads that live as long as it, look for open regions, halves of joins and jobs, and
//! sleep when there is nothing to do.
//!
//! ```text
//! builder.rs      settings, and the start of the threads
//! environment.rs  settings from environment variables
//! policy.rs       how threads wait
//! error.rs        the errors of building a pool
//! worker.rs       the kinds of work of a worker
//! search.rs       the loop of a worker
//! looks.rs        how often a worker looks into the queue of jobs
//! sleep.rs        how idle workers fall asleep and are woken
//! state.rs        the state that workers and users share
//! global.rs       the pool for threads that work for no other
//! affinity.rs     binding of threads to processors
//! ```

pub(crate) mod affinity;
mod builder;
mod environment;
mod error;
mod global;
mod looks;
mod policy;
pub(crate) mod search;
pub(crate) mod sleep;
pub(crate) mod state;
mod worker;

pub use builder::Builder;
pub use environment::default_threads;
pub use error::{MAX_WORKERS, PoolError};
pub(crate) use global::with_pool;
pub use policy::WaitPolicy;

use crate::{Forked, current, jobs::run};
use parking_lot::Mutex;
use state::PoolState;
use std::{
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
    thread::JoinHandle,
};

/// Persistent threads for parallel regions, joins and jobs.
///
/// `ThreadPool::new(n)` is for programs that open regions from outside: the caller takes part, so `n` threads
/// work in a region with `n - 1` workers. Idle workers spin for a moment, then sleep. A pool with nothing to
/// do uses no processor.
///
/// Dropping the pool runs the jobs that are still queued, then ends the workers and waits for them. (Two
/// pools whose workers drop each other would wait forever.)
///
/// After a `fork` the workers are in the parent process only. In the child, every use of a pool that was
/// built before is an error that says so ([`check_fork`](Self::check_fork)), whatever its number of workers,
/// and dropping it waits for no thread. Pools that are built in the child work.
#[derive(Debug)]
pub struct ThreadPool {
    state: Arc<PoolState>,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

impl ThreadPool {
    /// The number of threads that a region can have if the calling thread opens it.
    pub fn threads(&self) -> usize {
        self.state.threads()
    }

    /// The number of worker threads.
    pub fn workers(&self) -> usize {
        self.state.workers()
    }

    /// The calling thread's index among this pool's workers, if it is one of them.
    pub fn worker_index(&self) -> Option<usize> {
        self.state.worker_index()
    }

    /// Calls `f` with this pool as the calling thread's own: loops inside it that name no pool run here.
    #[inline]
    pub fn install<R>(&self, f: impl FnOnce() -> R) -> R {
        let _installed = current::install(&self.state);
        f()
    }

    /// Whether this process has the pool's workers: not if it was forked after the pool was built.
    ///
    /// ```
    /// let pool = anabranch_par::ThreadPool::new(2)?;
    /// assert_eq!(pool.check_fork(), Ok(()));
    /// # Ok::<(), anabranch_par::PoolError>(())
    /// ```
    ///
    /// # Errors
    /// [`Forked`].
    #[inline]
    pub fn check_fork(&self) -> Result<(), Forked> {
        self.state.check_fork()
    }

    /// Runs the jobs that are still queued, ends the workers and waits for them. From then on regions are run
    /// by their openers alone, and jobs that are submitted stay in the queue. In a process that was forked
    /// after the pool was built, it does nothing.
    pub fn stop(&self) {
        if self.check_fork().is_err() {
            return;
        }
        self.state.reservations.close();
        self.state.stop();
        if self.state.workers() == 0 {
            // Jobs of a thread that is still inside something.
            run::run_all(&self.state);
        }
        let workers = std::mem::take(&mut *self.workers.lock());
        let me = std::thread::current().id();
        for worker in workers {
            // The last owner may be a job on one of our own workers. That thread ends by itself.
            if worker.thread().id() != me {
                // A worker catches all panics of its work, so joining it returns no error.
                let _ = worker.join();
            }
        }
    }

    pub(crate) fn state(&self) -> &PoolState {
        &self.state
    }
}

// A panic in a region or a job is caught and leaves the pool as it was.
impl UnwindSafe for ThreadPool {}
impl RefUnwindSafe for ThreadPool {}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        if self.check_fork().is_err() {
            // The fork may have stopped other threads in the middle of changing the state, and the handles of
            // threads that do not exist here may be the handles of new ones.
            std::mem::forget(std::mem::take(self.workers.get_mut()));
            std::mem::forget(Arc::clone(&self.state));
            return;
        }
        self.stop();
    }
}
