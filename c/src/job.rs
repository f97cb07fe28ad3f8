//! A job that somebody waits for: whoever comes first runs it, a worker or the one who waits.
//!
//! Nobody waits for a job that has not begun, so a thread that waits runs that one job or none.

use crate::{anabranch_status::ANABRANCH_FORKED, error::Failure};
use anabranch_par::Job;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

type Work = Box<dyn FnOnce() + Send>;

/// A job and how far it is.
pub(crate) struct Waitable {
    state: Mutex<State>,
    ended: Condvar,
    /// The process that it was made in: in another one nobody runs it.
    process: u32,
}

struct State {
    /// There until somebody begins.
    work: Option<Work>,
    /// There when the job has ended.
    outcome: Option<Result<(), Failure>>,
}

impl Waitable {
    pub(crate) fn new(work: impl FnOnce() + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { work: Some(Box::new(work)), outcome: None }),
            ended: Condvar::new(),
            process: process::id(),
        })
    }

    /// Waits until the job has ended, and runs it where nobody has begun it. To be called once, by the last one who asks.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        self.check_fork()?;
        self.run_unless_begun();
        let mut state = self.lock();
        loop {
            if let Some(outcome) = state.outcome.take() {
                return outcome;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn is_done(&self) -> Result<bool, Failure> {
        self.check_fork()?;
        Ok(self.lock().outcome.is_some())
    }

    /// To be called before the lock is taken, which another thread may have held at the fork.
    fn check_fork(&self) -> Result<(), Failure> {
        if process::id() == self.process {
            return Ok(());
        }
        let message = "the job was submitted before this process was forked: it is run in the parent process";
        Err(Failure::new(ANABRANCH_FORKED, message))
    }

    fn run_unless_begun(&self) {
        let Some(work) = self.lock().work.take() else { return };
        let outcome = catch_unwind(AssertUnwindSafe(work)).map_err(Failure::caught);
        self.lock().outcome = Some(outcome);
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job for Waitable {
    fn run(self: Arc<Self>) {
        self.run_unless_begun();
    }
}
