//! Jobs: work that is handed to the pool and not waited for by whoever hands it over.

use super::fifo::Fifo;
use std::sync::Arc;

/// Work that a pool's worker or a lane runs some time after it was submitted.
///
/// A job is submitted as an `Arc`, so that something which exists already (a node of a graph, say) can be the job
/// itself and submitting allocates nothing.
pub trait Job: Send + Sync {
    /// Does the work. A panic in here ends in the process's panic message and nowhere else: a job that can fail keeps
    /// its outcome itself.
    fn run(self: Arc<Self>);
}

/// Jobs that wait for a worker or a lane: of what one thread hands over, first in, first out.
pub(crate) type Jobs<J = dyn Job> = Fifo<Arc<J>>;
