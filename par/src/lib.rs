//! Worker threads, parallel regions and scratch memory.
//!
//! - [`ThreadPool`] is a persistent team of threads.
//! - [`ThreadPool::region`] runs a loop on it: the caller takes part, nothing is allocated, and a thread that waits inside a
//!   region never starts other work.
//! - [`ThreadPool::submit`] hands over a [`Job`] that nobody waits for.
//! - [`Lanes`] are threads for jobs that may block, so that these never take a worker. Few are awake; more are added only
//!   where the queue stands still.
//! - [`scratch`] is memory for the body of a region, at the cost of moving a pointer.
//! - [`flush_denormals`](flush_denormals()) makes decaying fields as fast as others.
//!
//! ```
//! use anabranch_par::prelude::*;
//!
//! let pool = ThreadPool::new(2)?;
//! let squares: Vec<u64> = (0..100).par().on(&pool).map(|i| i * i).collect();
//! assert_eq!(squares[9], 81);
//! # Ok::<(), anabranch_par::PoolError>(())
//! ```
//!
//! # Safety
//! `unsafe` is in `slot` (the region's body is shared with the threads that have joined), `region` (the
//! body's types are erased) and its one call in `pool`, `scratch/bump` (slices of raw memory) and `denormals` (the
//! processor's control word). The lock-free parts have models that loom checks over every interleaving (`models`, in tests
//! only).

mod cancel;
mod current;
mod denormals;
mod lanes;
mod loops;
mod region;
mod schedule;
pub mod scratch;
mod sync;
mod thread_pool;

#[cfg(all(test, loom))]
mod models;

pub use cancel::CancellationToken;
pub use current::{Participant, participant};
pub use denormals::{flush_denormals, keep_denormals};
pub use lanes::Lanes;
#[cfg(feature = "ndarray")]
pub use loops::source::{ParallelArray, Shaped};
pub use loops::{
    IntoStream, Loop, LoopError, LoopPanic, Number, ParticipantStatistics, Progress, ScratchLoop,
    ScratchStream, Statistics, Stream,
    source::{self, IntoParallel, ParallelSlice, Source, UnequalLengths},
    step::Step,
};
pub use schedule::{Consecutive, RoundRobin, Schedule, Split};
pub use thread_pool::{Builder, Job, MAX_WORKERS, PoolError, ThreadPool};

/// What a program that uses loops wants in scope: `use anabranch_par::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "ndarray")]
    pub use crate::ParallelArray;
    pub use crate::{IntoParallel, IntoStream, ParallelSlice, Schedule, Split, ThreadPool, participant};
}

fn join<RA, RB>(a: impl FnOnce() -> RA, b: impl FnOnce() -> RB) -> (RA, RB) {
    (a(), b())
}
