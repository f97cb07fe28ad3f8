//! What can go wrong with a job.

use crate::Forked;
use std::fmt;

/// A job that could not be given to the worker that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such worker.
    NoSuchWorker {
        /// The index that was asked for.
        asked: usize,
        /// How many workers the pool has.
        workers: usize,
    },
    /// The calling thread is inside a region, a job or a scope. Two workers that waited for each other could never finish,
    /// so a worker's own jobs come from outside.
    Inside,
    /// The pool has been stopped, and the worker has ended.
    Stopped,
    /// This process was forked after the pool was built: its workers are not here.
    Forked(Forked),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchWorker { asked, workers: 0 } => {
                write!(f, "worker {asked} was asked for, but this pool has no workers; build it with some, or use spawn")
            }
            Self::NoSuchWorker { asked, workers } => {
                write!(f, "worker {asked} was asked for, but this pool has {workers}: 0 to {}", workers - 1)
            }
            Self::Inside => f.write_str(
                "a job for one worker was spawned from inside a region, a job or a scope, where two workers could come to \
                 wait for each other; spawn it before, or use spawn",
            ),
            Self::Forked(forked) => forked.fmt(f),
            Self::Stopped => f.write_str("the pool has been stopped and its workers have ended; spawn before stop"),
        }
    }
}

impl std::error::Error for SpawnError {}
