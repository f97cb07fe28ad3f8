//! The cell of a spawned job: the closure until the job begins, then its outcome until the handle takes it.
//!
//! Three parties share a cell: the threads that may run the job (a worker that took it from the queue, the
//! opener of its scope, the thread that joins it), its one handle, and its [`Owner`] (the scope, if it
//! belongs to one). One word holds the state:
//!
//! | bit | name | set by | meaning |
//! |---|---|---|---|
//! | 0 | BEGUN | the thread that runs the job | the job runs or has run |
//! | 1 | DONE | the thread that ran the job | the outcome is in the cell |
//! | 2 | PARKED | the joiner | the joiner sleeps until DONE |
//! | 3 | DETACHED | the handle, when it is dropped | no thread will ask for the outcome |
//!
//! 1. A thread that wants to run the job sets BEGUN. Only the thread that finds it clear runs the job: it
//!    takes the closure out.
//! 2. If that thread is the joiner, the outcome goes straight to it, and the cell never becomes DONE.
//!    Otherwise the thread writes the outcome and sets DONE (Release).
//! 3. A joiner that comes too late to run the job waits for DONE (Acquire): it spins, yields, and then writes
//!    its handle, sets PARKED and parks. It takes the outcome.
//! 4. If the handle is dropped instead, it sets DETACHED. Of DONE and DETACHED, the thread that sets the
//!    second one drops the outcome. A runner that finds DETACHED when it sets BEGUN has the cell for itself:
//!    it drops the outcome, and need not set DONE.
//! 5. At the end the runner notifies the owner, which may free everything that the job borrows. It touches
//!    nothing of the owner afterwards.
//!
//! | field | before BEGUN | BEGUN | DONE |
//! |---|---|---|---|
//! | `body` | the thread that sets BEGUN | the runner | the joiner, or the second to set DONE or DETACHED |
//! | `joiner` | the joiner, until it sets PARKED | the same | the runner, if it saw PARKED when it set DONE |
//!
//! Loom checks this in `models.rs`. tokio's
//! [`runtime/task/mod.rs`](https://github.com/tokio-rs/tokio/blob/master/tokio/src/runtime/task/mod.rs)
//! describes the states of a task and its join handle in the same way.

use crate::{
    context::HeldValues,
    panic::Payload,
    patience::Patience,
    sync::{
        Thread, UnsafeCell,
        atomic::{AtomicU32, Ordering::*},
        thread,
    },
};
use std::{
    mem::{needs_drop, replace},
    panic::{AssertUnwindSafe, catch_unwind},
};

const BEGUN: u32 = 1;
const DONE: u32 = 2;
const PARKED: u32 = 4;
const DETACHED: u32 = 8;

/// The result of a job, or the payload of its panic.
pub(crate) type Outcome<R> = Result<R, Payload>;

/// The owner of a job.
pub(crate) trait Owner: Send + Sync {
    /// The values that a thread holds which waits for the job.
    fn held(&self) -> HeldValues {
        HeldValues::NONE
    }

    /// Calls `f` in the chain that the job belongs to.
    fn in_chain<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// The job has panicked, or the destructor of its result has, and no thread can ask for the outcome.
    fn lost(&self, payload: Payload);

    /// The job has ended. After this, nothing that the job borrows and nothing of the owner is touched.
    fn finished(&self);
}

pub(crate) struct JobCell<F, R, O> {
    state: AtomicU32,
    body: UnsafeCell<Body<F, R>>,
    /// The thread to wake; valid once PARKED is set.
    joiner: UnsafeCell<Option<Thread>>,
    owner: O,
}

enum Body<F, R> {
    Waiting(F),
    Ended(Outcome<R>),
    Empty,
}

// SAFETY: `body` and `joiner` are reached only as the state word allows (module documentation), by one thread
// at a time. The closure and the outcome move between threads, so they must be `Send`; they are never shared.
unsafe impl<F: Send, R: Send, O: Sync> Sync for JobCell<F, R, O> {}

impl<F, R, O: Owner> JobCell<F, R, O> {
    pub(super) fn owner(&self) -> &O {
        &self.owner
    }

    pub(super) fn new(f: F, owner: O) -> Self {
        Self {
            state: AtomicU32::new(0),
            body: UnsafeCell::new(Body::Waiting(f)),
            joiner: UnsafeCell::new(None),
            owner,
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.state.load(Relaxed) & BEGUN != 0
    }

    /// The closure, for the first thread that asks, and whether the handle is gone.
    fn begin(&self) -> Option<(F, bool)> {
        // Acquire: pairs with the Release in `detach`. The closure was written before the cell was shared,
        // and only one thread gets past here.
        let before = self.state.fetch_or(BEGUN, Acquire);
        if before & BEGUN != 0 {
            return None;
        }
        // SAFETY: this thread has set BEGUN, and DONE is not set.
        match self.body.with_mut(|body| unsafe { replace(&mut *body, Body::Empty) }) {
            Body::Waiting(f) => Some((f, before & DETACHED != 0)),
            _ => unreachable!("a job that has not begun has its closure"),
        }
    }

    /// Runs the job by `call`, unless another thread has begun it: then `false`.
    pub(super) fn run(&self, call: impl FnOnce(F) -> Outcome<R>) -> bool {
        let Some((f, is_detached)) = self.begin() else { return false };
        let outcome = call(f);
        if is_detached {
            self.drop_in_chain(outcome);
        } else {
            self.hand_over(outcome);
        }
        self.owner.finished();
        true
    }

    /// Leaves the outcome to the handle, or drops it if the handle is gone.
    fn hand_over(&self, outcome: Outcome<R>) {
        // SAFETY: as in `begin`.
        self.body.with_mut(|body| unsafe { *body = Body::Ended(outcome) });
        // Release: a thread that sees DONE sees the outcome. Acquire: pairs with PARKED, so that the joiner's
        // handle can be read.
        let before = self.state.fetch_or(DONE, AcqRel);
        if before & DETACHED != 0 {
            self.drop_in_chain(self.take_outcome());
        }
        if before & PARKED != 0 {
            // SAFETY: PARKED is set, so the joiner has written its handle and does not touch it any more.
            if let Some(joiner) = self.joiner.with_mut(|j| unsafe { (*j).take() }) {
                joiner.unpark();
            }
        }
    }

    /// Runs the job by `call` for the thread that joins it, unless another thread has begun it: then `None`.
    pub(super) fn run_here(&self, call: impl FnOnce(F) -> Outcome<R>) -> Option<Outcome<R>> {
        let (f, _) = self.begin()?;
        let outcome = call(f);
        self.owner.finished();
        Some(outcome)
    }

    pub(super) fn is_done(&self) -> bool {
        self.state.load(Relaxed) & DONE != 0
    }

    /// Waits until another thread has run the job. The handle calls this once, and does not detach
    /// afterwards.
    pub(super) fn wait(&self, mut patience: Patience) -> Outcome<R> {
        // Acquire: pairs with the Release that comes with DONE, for the outcome.
        while self.state.load(Acquire) & DONE == 0 {
            if !patience.pause() {
                self.park();
            }
        }
        self.take_outcome()
    }

    #[cold]
    fn park(&self) {
        // SAFETY: the thread that runs the job reads this only after it has seen PARKED, which is set below,
        // once.
        self.joiner.with_mut(|j| unsafe { *j = Some(thread::current()) });
        // Release: a thread that sees PARKED sees the handle.
        let mut state = self.state.fetch_or(PARKED, AcqRel);
        while state & DONE == 0 {
            thread::park();
            state = self.state.load(Acquire);
        }
    }

    /// The handle is dropped. It calls this once, and not after [`wait`](Self::wait).
    pub(super) fn detach(&self) {
        // Acquire: pairs with the Release that comes with DONE. Release: everything before the drop of the
        // handle happens before another thread drops the outcome.
        if self.state.fetch_or(DETACHED, AcqRel) & DONE != 0 {
            self.drop_outcome(self.take_outcome());
        }
    }

    /// Takes the outcome. Only the thread calls this that has seen DONE and owns the outcome: see the module
    /// documentation.
    fn take_outcome(&self) -> Outcome<R> {
        // SAFETY: DONE is set, and this thread owns the outcome: it is the joiner in `wait`, or else the
        // second of the two threads that set DONE and DETACHED.
        match self.body.with_mut(|body| unsafe { replace(&mut *body, Body::Empty) }) {
            Body::Ended(outcome) => outcome,
            _ => unreachable!("a job that is done has an outcome, and it is taken once"),
        }
    }

    /// Drops the outcome on the thread that ran the job: the destructor is part of the job.
    fn drop_in_chain(&self, outcome: Outcome<R>) {
        if needs_drop::<R>() || outcome.is_err() {
            self.owner.in_chain(|| self.drop_outcome(outcome));
        }
    }

    fn drop_outcome(&self, outcome: Outcome<R>) {
        // The destructor of the result may panic, too.
        let panic = match outcome {
            Ok(value) => catch_unwind(AssertUnwindSafe(|| drop(value))).err(),
            Err(payload) => Some(payload),
        };
        if let Some(payload) = panic {
            self.owner.lost(payload);
        }
    }
}
