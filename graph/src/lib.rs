//! The data-flow graph: from declared accesses to dependencies.
//!
//! A program submits tasks one after the other; each says which regions of which buffers it reads and writes and
//! which host objects it touches. From that [`TaskGraph`] derives on which earlier tasks it depends, so that running
//! the tasks in any order that keeps the dependencies gives what running them one by one would have given:
//!
//! - a *true* dependency on the task that wrote what is read,
//! - an *anti-dependency* on tasks that still read what is overwritten,
//! - an *output* dependency on the task whose result is overwritten unread,
//! - a *serialisation* dependency between sequential effects on one host object, and on the epoch at the graph's root.
//!
//! The graph is pure: no threads, no clock, no memory of the buffers. What is told in the same order gives the same
//! answers. Buffers of any rank are seen as three-dimensional (`[n]` is `[n, 1, 1]`).
//!
//! What each of several nodes does for the tasks, transfers included, is the [command graph](command).
//!
//! ```
//! use anabranch_graph::{Access, Kind, TaskGraph};
//! use anabranch_grid::{Extent, GridBox};
//!
//! let mut graph = TaskGraph::new();
//! let u = graph.create_buffer(Extent([10, 1, 1]), false);
//! let left = GridBox::new([0, 0, 0], [5, 1, 1]);
//! let writer = graph.submit(&[Access::write(u, left)], &[], &|_| false)?;
//! let reader = graph.submit(&[Access::read(u, left)], &[], &|_| false)?;
//! assert_eq!(reader.dependencies[0].on, writer.id);
//! assert_eq!(reader.dependencies[0].kind, Kind::True);
//!
//! let right = GridBox::new([5, 0, 0], [10, 1, 1]);
//! assert!(graph.submit(&[Access::read(u, right)], &[], &|_| false).is_err()); // never written
//! # Ok::<(), anabranch_graph::GraphError>(())
//! ```

#![forbid(unsafe_code)]

mod ancestry;
pub mod command;
mod front;
mod graph;
mod horizon;
mod object;
pub mod print;
pub mod schedule;
mod slab;
mod task;
mod tracker;

pub use graph::TaskGraph;
pub use horizon::{Horizons, Settings};
pub use schedule::{ConflictScheduler, TaskState};
pub use task::{
    Access, BufferId, Dependency, Effect, GraphError, Horizon, Kind, Mode, ObjectId, Order, Origin,
    Submitted, TaskId,
};
