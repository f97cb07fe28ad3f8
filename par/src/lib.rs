//! Worker threads, parallel regions and scratch memory.
//!
//! - [`ThreadPool`] is a persistent team of threads.
//! - [`ThreadPool::region`] runs a loop on it: the caller takes part, nothing is allocated, and a thread that waits inside a
//!   region never starts other work.
//! - [`ThreadPool::submit`] hands over a [`Job`] that nobody waits for.
//! - [`ThreadPool::spawn`] hands over a closure and gives a handle to its result; [`ThreadPool::scope`] does so for closures
//!   that borrow.
//! - [`Lanes`] are threads for jobs that may block, so that these never take a worker. Few are awake; more are added only
//!   where the queue stands still.
//! - [`scratch`] is memory for the body of a region, at the cost of moving a pointer.
//! - [`flush_denormals`](flush_denormals()) makes decaying fields as fast as others.
//!
//! ```
//! use anabranch_par::{ThreadPool, Schedule};
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! let pool = ThreadPool::new(2)?;
//! let squares: Vec<AtomicU64> = (0..100).map(|_| AtomicU64::new(0)).collect();
//! pool.region(squares.len())
//!     .schedule(Schedule::Static)
//!     .run(|i| squares[i].store((i * i) as u64, Relaxed));
//! assert_eq!(squares[9].load(Relaxed), 81);
//! # Ok::<(), anabranch_par::PoolError>(())
//! ```
//!
//! # Safety
//! `unsafe` is in `slot` (the region's body is shared with the threads that have joined), `region` (the
//! body's types are erased) and its one call in `pool`, `tasks/cell` (a job's closure and result pass between threads),
//! `tasks/scope` (the lifetime of its jobs is erased), `scratch/bump` (slices of raw memory) and `denormals` (the
//! processor's control word). The lock-free parts have models that loom checks over every interleaving (`models`, in tests
//! only).

mod current;
mod denormals;
mod lanes;
mod region;
pub mod scratch;
mod sync;
mod tasks;
mod thread_pool;

#[cfg(all(test, loom))]
mod models;

pub use current::{Participant, participant};
pub use denormals::{flush_denormals, keep_denormals};
pub use lanes::Lanes;
pub use region::{Region, RegionPanic, Schedule};
pub use tasks::{JobHandle, JobPanic, Scope, ScopedHandle, SpawnError, scope, spawn};
pub use thread_pool::{Builder, Job, MAX_WORKERS, PoolError, ThreadPool};
