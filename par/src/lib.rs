//! Parallel loops, jobs and scratch memory, on threads that also others may bring along.
//!
//! - [`ThreadPool`] is a persistent team of threads.
//! - [`Loop`] is a data-parallel loop over slices, ranges and more: `xs.par().map(f).collect()`. The caller takes part, and
//!   a thread that waits inside a loop never starts other work.
//! - [`join`](join()) calls two closures, at the same time where a worker is free; it costs hardly more than calling them.
//! - [`ThreadPool::submit`] hands over a [`Job`] that nobody waits for.
//! - [`ThreadPool::spawn`] hands over a closure and gives a handle to its result; [`ThreadPool::scope`] does so for closures
//!   that borrow.
//! - [`Lanes`] are threads for jobs that may block, so that these never take a worker. Few are awake; more are added only
//!   where the queue stands still.
//! - [`foreign`]: any thread may do all this; it joins by itself, and [`ThreadPool::call`] returns panics as values.
//! - [`ParallelSort`] sorts slices on it, with the same result on any number of threads.
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
//! `unsafe` is in few files, which `ARCHITECTURE.md` lists; each block says why it is sound. The lock-free parts have models
//! that loom checks over every interleaving (`models`, in tests only).

mod cancel;
mod current;
mod denormals;
pub mod foreign;
mod fork;
mod join;
mod lanes;
mod loops;
mod region;
mod schedule;
pub mod scratch;
mod sections;
mod sort;
mod sync;
mod tasks;
mod team;
mod thread_pool;

#[cfg(all(test, loom))]
mod models;

pub use cancel::CancellationToken;
pub use current::{Participant, participant};
pub use denormals::{flush_denormals, keep_denormals};
pub use fork::Forked;
pub use join::join;
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
pub use sections::{Critical, OnlyOnce};
pub use sort::ParallelSort;
pub use tasks::{JobHandle, JobPanic, Scope, ScopedHandle, SpawnError, scope, spawn};
pub use team::{Member, TeamError};
pub use thread_pool::{Builder, Job, MAX_WORKERS, PoolError, ThreadPool, WaitPolicy, default_threads};

/// What a program that uses loops wants in scope: `use anabranch_par::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "ndarray")]
    pub use crate::ParallelArray;
    pub use crate::{
        IntoParallel, IntoStream, ParallelSlice, ParallelSort, Schedule, Split, ThreadPool, join,
        participant, scope, spawn,
    };
}
