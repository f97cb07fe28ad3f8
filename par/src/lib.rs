//! Parallel loops, jobs and scratch memory, on a pool of threads and on any thread of the program.
//!
//! - A [`Loop`] over slices, ranges, arrays and more ([`par`](IntoParallel::par),
//!   [`par_mut`](ParallelSlice::par_mut)) runs on all threads of a pool. The caller takes part, and a thread
//!   that waits inside a loop never starts other work. The results have the same bits on any number of
//!   threads. A [`Stream`] is a loop over an iterator of unknown length.
//! - [`join`](join()) calls two closures, at the same time if a worker is free. It costs hardly more than
//!   calling them. [`scope`](scope()) and [`spawn`] hand over closures and return handles to their results.
//! - [`ParallelSort`] sorts slices, with the same result on any number of threads.
//! - [`ThreadPool`] is a set of persistent threads. [`ThreadPool::team`] calls a closure on several of them
//!   at the same time, with a barrier.
//! - [`scratch`] is memory for the body of a loop: per participant, from a bounded pool, or at the cost of
//!   moving a pointer.
//! - [`foreign`]: any thread may do all this. It attaches by itself, and [`ThreadPool::call`] returns panics
//!   as values.
//! - [`Critical`] and [`OnlyOnce`] are for work that one participant at a time, or only one, may do.
//! - A [`Mark`] goes with work to whichever threads do it.
//! - [`ThreadPool::submit`] hands over a [`Job`] that keeps its own outcome. [`Lanes`] are threads for jobs
//!   that may block.
//! - [`flush_denormals`](flush_denormals()) makes computations with decaying fields fast.
//! - A panic of the program's code that a loop, a job or a call returns is a [`Panic`].
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
//! `unsafe` is in few files, which `ARCHITECTURE.md` lists. Each block says why it is sound. The lock-free
//! parts have models that loom checks over every interleaving (`models`, in tests only).

mod cancel;
mod context;
mod current;
mod denormals;
mod enter;
pub mod foreign;
mod fork;
pub mod guide;
mod jobs;
mod join;
mod lanes;
mod loops;
mod panic;
mod patience;
mod region;
mod schedule;
pub mod scratch;
mod sections;
mod sort;
mod sync;
mod team;
mod thread_pool;

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom), target_os = "linux"))]
mod one_processor;

pub use cancel::CancellationToken;
pub use context::{Mark, Marks};
pub use current::{Participant, participant};
pub use denormals::{flush_denormals, keep_denormals};
pub use fork::{Forked, Process};
pub use jobs::{Job, JobHandle, Scope, ScopedHandle, SpawnError, scope, spawn};
pub use join::join;
pub use lanes::Lanes;
#[cfg(feature = "ndarray")]
pub use loops::source::{ParallelArray, Shaped};
pub use loops::{
    IntoStream, Loop, LoopError, Number, ParticipantStatistics, Producer, Progress, ScratchLoop, SharedIter,
    Statistics, Stream,
    source::{self, IntoParallel, ParallelSlice, Source, UnequalLengths},
    step::Step,
};
pub use panic::{Panic, discard as discard_payload};
pub use patience::Patience;
pub use schedule::{Consecutive, RoundRobin, Schedule, Split};
pub use sections::{Critical, OnlyOnce};
pub use sort::ParallelSort;
pub use team::{Member, TeamError};
pub use thread_pool::{Builder, MAX_WORKERS, PoolError, ThreadPool, WaitPolicy, default_threads};

/// The programs in the README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The names that most programs with loops need: `use anabranch_par::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "ndarray")]
    pub use crate::ParallelArray;
    pub use crate::{
        CancellationToken, Critical, IntoParallel, IntoStream, LoopError, OnlyOnce, ParallelSlice,
        ParallelSort, Schedule, Split, ThreadPool, join, participant, scope, spawn,
    };
}
