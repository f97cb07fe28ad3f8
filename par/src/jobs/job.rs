//! Jobs whose outcome the program keeps itself.

use crate::panic::discard;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Work that a worker of a pool or a lane runs some time after it was submitted.
///
/// A job is submitted as an `Arc`. So an object that exists already (a node of a graph, for example) can be
/// the job itself, and submitting it allocates nothing.
pub trait Job: Send + Sync {
    /// Does the work. A panic in here prints the message of the process's panic hook and goes no further: a
    /// job that can fail keeps its outcome itself.
    fn run(self: Arc<Self>);
}

/// Runs a job. A panic ends here, after the panic hook has printed the message.
pub(crate) fn run_caught<J: Job + ?Sized>(job: Arc<J>) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| job.run())) {
        discard(payload);
    }
}
