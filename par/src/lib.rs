//! Parallel loops, worker threads and scratch memory.
//!
//! - A [`Loop`] over a slice or a range ([`par`](IntoParallel::par), [`par_mut`](ParallelSlice::par_mut)) runs on all threads
//!   of a pool: the caller takes part, nothing is allocated, and a thread that waits inside a loop never starts other work.
//!   Its results have the same bits on any number of threads.
//! - [`ThreadPool`] is a persistent team of threads. [`ThreadPool::team`] calls a closure on several of them at the same time,
//!   with a barrier; [`ThreadPool::submit`] hands over a [`Job`] that nobody waits for.
//! - [`Lanes`] are threads for jobs that may block, so that these never take a worker. Few are awake; more are added only
//!   where the queue stands still.
//! - [`scratch`] is memory for the body of a loop.
//! - [`Critical`] and [`OnlyOnce`] are for what one participant at a time, or only one, may do.
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
//! The [guide] explains loops and scratch storage step by step.
//!
//! # Safety
//! `unsafe` is in `region/slot` (the region's body is shared with the threads that have joined), `region` (the body's types
//! are erased) and its one call in `thread_pool`, `current` (a thread's pointer to its pool), `loops` (each item is asked for
//! once, and each result written once), `scratch/bump` (slices of raw memory) and `denormals` (the processor's control
//! word). The lock-free parts have models that loom checks over every interleaving (`models`, in tests
//! only).

mod cancel;
mod current;
mod denormals;
pub mod guide;
mod lanes;
mod loops;
mod region;
mod schedule;
pub mod scratch;
mod sections;
mod sync;
mod team;
mod thread_pool;

#[cfg(all(test, loom))]
mod models;

pub use cancel::CancellationToken;
pub use current::{Participant, participant};
pub use denormals::{flush_denormals, keep_denormals};
pub use lanes::Lanes;
pub use loops::{
    Loop, LoopError, LoopPanic, Number, ParticipantStatistics, Progress, ScratchLoop, Statistics,
    source::{IntoParallel, ParallelSlice, Source, UnequalLengths},
    step::Step,
};
pub use schedule::{Consecutive, RoundRobin, Schedule, Split};
pub use sections::{Critical, OnlyOnce};
pub use team::{Member, TeamError};
pub use thread_pool::{Builder, Job, MAX_WORKERS, PoolError, ThreadPool};

/// The programs in the README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What a program that uses loops wants in scope: `use anabranch_par::prelude::*;`.
pub mod prelude {
    pub use crate::{IntoParallel, ParallelSlice, Schedule, Split, ThreadPool, participant};
}

fn join<RA, RB>(a: impl FnOnce() -> RA, b: impl FnOnce() -> RB) -> (RA, RB) {
    (a(), b())
}
