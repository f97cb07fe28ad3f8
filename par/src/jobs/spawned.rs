//! Spawned jobs, as the threads see them that run or join them.

use super::{
    cell::{JobCell, Outcome, Owner},
    queue::SpawnedJob,
};
use crate::{
    context::{Chain, Marks},
    current,
    denormals::keep_denormals,
    panic::{Payload, discard},
    patience::Patience,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A job, as its handle sees it.
pub(super) trait Joinable<R>: Send + Sync {
    /// Runs the job on the calling thread, unless another thread has begun it: then `None`. The job's pool
    /// must be the calling thread's pool.
    fn run_here(&self) -> Option<Outcome<R>>;
    fn wait(&self, patience: Patience) -> Outcome<R>;
    fn is_done(&self) -> bool;
    fn detach(&self);
}

impl<F, R, O> SpawnedJob for JobCell<F, R, O>
where
    F: FnOnce() -> R + Send,
    R: Send,
    O: Owner,
{
    fn has_begun(&self) -> bool {
        self.has_begun()
    }
    fn run(&self) -> bool {
        self.run(|f| call(self.owner(), f))
    }
}

impl<F, R, O> Joinable<R> for JobCell<F, R, O>
where
    F: FnOnce() -> R + Send,
    R: Send,
    O: Owner,
{
    fn run_here(&self) -> Option<Outcome<R>> {
        self.run_here(|f| call(self.owner(), f))
    }
    fn wait(&self, patience: Patience) -> Outcome<R> {
        self.wait(patience)
    }
    fn is_done(&self) -> bool {
        self.is_done()
    }
    fn detach(&self) {
        self.detach();
    }
}

/// Calls the closure of a job on the calling thread, in the floating-point mode of a worker.
#[inline]
fn call<R>(owner: &impl Owner, f: impl FnOnce() -> R) -> Outcome<R> {
    let _entered = current::enter_job(owner.held());
    owner.in_chain(|| catch_unwind(AssertUnwindSafe(|| keep_denormals(f))))
}

/// A job that belongs to no scope: see [`ThreadPool::spawn`](crate::ThreadPool::spawn).
pub(super) type FreeJob<F, R> = JobCell<F, R, NoOwner>;

/// The job belongs to no scope: it keeps a copy of the chain that it was spawned in.
pub(super) struct NoOwner(Marks);

impl NoOwner {
    pub(super) fn capture() -> Self {
        Self(Marks::beyond(Chain::NONE))
    }
}

impl Owner for NoOwner {
    #[inline]
    fn in_chain<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.enter(f)
    }
    fn lost(&self, payload: Payload) {
        // The panic hook has printed the message.
        discard(payload);
    }
    fn finished(&self) {}
}
