//! Errors of spawning.

use crate::Forked;
use std::fmt;

/// A job that could not be given to the worker that was named.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such worker.
    #[error("worker {asked} was asked for, but this pool has {}", workers_there_are(*workers))]
    NoSuchWorker {
        /// The index that was asked for.
        asked: usize,
        /// The number of workers of the pool.
        workers: usize,
    },
    /// The calling thread is inside a region, a job or a scope. Two workers that waited for each other could
    /// never finish, so a job for one worker must come from outside.
    #[error(
        "a job for one worker was spawned from inside a region, a job or a scope, where two workers could wait for each other; \
         spawn it before, or use spawn"
    )]
    Inside,
    /// The pool has been stopped, and the worker has ended.
    #[error("the pool has been stopped and its workers have ended; spawn before stop")]
    Stopped,
    /// This process was forked after the pool was built: its workers are not here.
    #[error(transparent)]
    Forked(#[from] Forked),
}

/// Prints the message like `Display`, for `unwrap` and `main`.
impl fmt::Debug for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn workers_there_are(workers: usize) -> String {
    match workers.checked_sub(1) {
        None => "no workers; build it with some, or use spawn".into(),
        Some(last) => format!("{workers}: 0 to {last}"),
    }
}
