//! Jobs whose outcome the program keeps itself.

use crate::{context::Marks, panic::discard};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Work that a worker of a pool or a lane runs some time after it was submitted.
///
/// A job is submitted as an `Arc`. So an object that exists already (a node of a graph, for example) can be the job itself,
/// and submitting it allocates nothing.
pub trait Job: Send + Sync {
    /// Does the work. A panic in here prints the message of the process's panic hook and goes no further: a job that can fail
    /// keeps its outcome itself.
    fn run(self: Arc<Self>);
}

/// A job that runs with the marks of the thread that submitted it.
struct MarkedJob {
    marks: Marks,
    job: Arc<dyn Job>,
}

impl Job for MarkedJob {
    fn run(self: Arc<Self>) {
        // The queue had the only reference. The destructor of the job runs with its marks, too.
        if let Some(Self { marks, job }) = Arc::into_inner(self) {
            marks.enter(|| job.run());
        }
    }
}

/// The job itself or, if marks are set for the calling thread, one that runs it with these marks.
#[inline]
pub(super) fn with_current_marks(job: Arc<dyn Job>) -> Arc<dyn Job> {
    let marks = Marks::current();
    if marks.is_empty() { job } else { Arc::new(MarkedJob { marks, job }) }
}

/// Runs a job. A panic ends here, after the panic hook has printed the message.
pub(crate) fn run_caught<J: Job + ?Sized>(job: Arc<J>) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| job.run())) {
        discard(payload);
    }
}
