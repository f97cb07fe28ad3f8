//! A job's cell: the closure until it begins, then its outcome until the handle takes it.
//!
//! Three parties meet here: those who may run the job (a worker that took it from the queue, the opener of its scope, the
//! thread that joins it), its one handle, and its owner (the scope, or nobody). One word says who may touch what:
//!
//! ```text
//! bit 0  BEGUN     somebody runs it or has run it: that thread alone touches the cell until DONE
//! bit 1  DONE      the outcome is in the cell
//! bit 2  PARKED    the joiner sleeps until DONE
//! bit 3  DETACHED  the handle was dropped
//! ```
//!
//! Of DONE and DETACHED, whoever sets the second drops the outcome. A job that is run by the thread that joins it never gets
//! to DONE: its outcome goes straight to that thread, and nobody else waits for it.

use crate::{
    current::Held,
    panic::Payload,
    sync::{
        Thread, UnsafeCell,
        atomic::{AtomicU32, Ordering::*},
        pause, thread,
    },
};
use std::{
    mem::replace,
    panic::{AssertUnwindSafe, catch_unwind},
};

const BEGUN: u32 = 1;
const DONE: u32 = 2;
const PARKED: u32 = 4;
const DETACHED: u32 = 8;

/// How often a joiner looks whether the job is done before it gives up its processor, and then before it parks.
const SPINS: usize = if cfg!(loom) { 1 } else { 200 };
const YIELDS: usize = if cfg!(loom) { 0 } else { 20 };

/// What a job leaves behind: what it returned, or what its panic carried.
pub(crate) type Outcome<R> = Result<R, Payload>;

/// Whom a job belongs to.
pub(crate) trait Owner: Send + Sync {
    /// What those hold who wait for the job to end.
    fn held(&self) -> Held {
        Held::NOTHING
    }

    /// The job has panicked, and nobody is left who could ask for its outcome.
    fn lost(&self, payload: Payload);

    /// The job has ended. Nothing that the job borrows, and nothing of the owner, is touched after this.
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

// SAFETY: `body` and `joiner` are reached only as the state word allows (module documentation), by one thread at a time.
// The closure and the outcome move between threads, so they must be `Send`; nobody shares them.
unsafe impl<F: Send, R: Send, O: Sync> Sync for JobCell<F, R, O> {}

impl<F, R, O: Owner> JobCell<F, R, O> {
    /// What those hold who wait for the job to end.
    pub(super) fn held(&self) -> Held {
        self.owner.held()
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

    /// The closure, for the first who asks.
    fn begin(&self) -> Option<F> {
        // Relaxed: the closure was written before anybody got hold of the cell, and only one thread gets past here.
        if self.state.fetch_or(BEGUN, Relaxed) & BEGUN != 0 {
            return None;
        }
        // SAFETY: this thread is the one that has set BEGUN, and DONE is not set.
        match self.body.with_mut(|body| unsafe { replace(&mut *body, Body::Empty) }) {
            Body::Waiting(f) => Some(f),
            _ => unreachable!("a job that has not begun has its closure"),
        }
    }

    /// Runs the job by `call`, unless somebody else has begun it: then `false`.
    pub(super) fn run(&self, call: impl FnOnce(F) -> Outcome<R>) -> bool {
        let Some(f) = self.begin() else { return false };
        let outcome = call(f);
        // SAFETY: as in `begin`.
        self.body.with_mut(|body| unsafe { *body = Body::Ended(outcome) });
        // Release: whoever sees DONE sees the outcome. Acquire: pairs with PARKED, for the joiner's handle.
        let before = self.state.fetch_or(DONE, AcqRel);
        if before & DETACHED != 0 {
            self.drop_outcome();
        }
        if before & PARKED != 0 {
            // SAFETY: PARKED is set, so the handle is written, and nobody touches it any more.
            if let Some(joiner) = self.joiner.with_mut(|j| unsafe { (*j).take() }) {
                joiner.unpark();
            }
        }
        self.owner.finished();
        true
    }

    /// Runs the job by `call` for the one who joins it, unless somebody else has begun it: then `None`.
    pub(super) fn run_here(&self, call: impl FnOnce(F) -> Outcome<R>) -> Option<Outcome<R>> {
        let outcome = call(self.begin()?);
        self.owner.finished();
        Some(outcome)
    }

    pub(super) fn is_done(&self) -> bool {
        self.state.load(Relaxed) & DONE != 0
    }

    /// Waits until the job has been run by somebody else. To be called once, for the handle, which neither detaches nor
    /// waits any more.
    pub(super) fn wait(&self) -> Outcome<R> {
        let mut turns = 0;
        // Acquire: pairs with the Release that comes with DONE, for the outcome.
        while self.state.load(Acquire) & DONE == 0 {
            turns += 1;
            if turns <= SPINS {
                pause();
            } else if turns <= SPINS + YIELDS {
                thread::yield_now();
            } else {
                self.park();
            }
        }
        self.take_outcome()
    }

    #[cold]
    fn park(&self) {
        // SAFETY: the one who runs the job reads this only after it has seen PARKED, which is set below, once.
        self.joiner.with_mut(|j| unsafe { *j = Some(thread::current()) });
        // Release: the handle is visible to whoever sees PARKED.
        let mut state = self.state.fetch_or(PARKED, AcqRel);
        while state & DONE == 0 {
            thread::park();
            state = self.state.load(Acquire);
        }
    }

    /// The handle is dropped. To be called once, and not after [`wait`](Self::wait).
    pub(super) fn detach(&self) {
        // Acquire: pairs with the Release that comes with DONE. Release: what the handle's owner did before it dropped the
        // handle happens before the outcome is dropped by another thread.
        if self.state.fetch_or(DETACHED, AcqRel) & DONE != 0 {
            self.drop_outcome();
        }
    }

    /// For the one who has seen DONE and owns the outcome: see the module documentation.
    fn take_outcome(&self) -> Outcome<R> {
        // SAFETY: DONE is set, and the outcome is this thread's: the handle's in `wait`, or else that of the second of the
        // two who set DONE and DETACHED.
        match self.body.with_mut(|body| unsafe { replace(&mut *body, Body::Empty) }) {
            Body::Ended(outcome) => outcome,
            _ => unreachable!("a job that is done has an outcome, and it is taken once"),
        }
    }

    fn drop_outcome(&self) {
        let outcome = self.take_outcome();
        // The destructor of what the job returned may panic too.
        let panic = match outcome {
            Ok(value) => catch_unwind(AssertUnwindSafe(|| drop(value))).err(),
            Err(payload) => Some(payload),
        };
        if let Some(payload) = panic {
            self.owner.lost(payload);
        }
    }
}
