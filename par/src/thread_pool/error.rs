//! The errors of building a pool.

use std::{fmt, io};

/// The most workers that a pool may have.
pub const MAX_WORKERS: usize = 1024;

/// A pool that could not be built.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// More threads than [`MAX_WORKERS`] were asked for, or none.
    #[error("a pool of {asked} threads was asked for; choose between 1 and {MAX_WORKERS}")]
    Threads {
        /// The number that was asked for.
        asked: usize,
    },
    /// The operating system refused a thread.
    #[error("the system refused worker thread {started}: {source}; ask for fewer threads")]
    Spawn {
        /// How many workers had been started.
        started: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// Workers cannot be bound to processors on this system.
    #[error(
        "the system cannot bind worker threads to processors: {source}; build the pool without `pin`, and unset ANABRANCH_PIN"
    )]
    Pin {
        /// The error of the system.
        source: io::Error,
    },
    /// An environment variable has a value that is not allowed: see [`Builder`](super::Builder).
    #[error("the environment variable {variable} is {value:?}; it must be {allowed}")]
    Environment {
        /// The variable's name.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The values that are allowed.
        allowed: &'static str,
    },
}

/// Prints the message like `Display`, for `unwrap` and `main`.
impl fmt::Debug for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
