//! The data-flow graph: from declared accesses to dependencies.
//!
//! A program submits tasks one after the other; each says which regions of which buffers it reads and writes and
//! which host objects it touches. From that [`TaskGraph`] derives on which earlier tasks it depends, so that running
//! the tasks in any order that keeps the dependencies gives what running them one by one would have given:
//!
//! - a *true* dependency on the task that wrote what is read,
//! - an *anti-dependency* on tasks that still read what is overwritten,
//! - an *output* dependency on the task whose result is overwritten unread,
//! - a *serialisation* dependency between effects on one host object, and on and from epochs and horizons.
//!
//! Tasks that may come in any order but must not overlap are in *conflict*; the [`ConflictScheduler`] says which of them
//! start when, and keeps no edges for that ([`schedule`]).
//!
//! The graph is pure: no threads, no clock, no memory of the buffers. What is told in the same order gives the same
//! answers. Buffers of any rank are seen as three-dimensional (`[n]` is `[n, 1, 1]`).
//!
//! What each of several nodes does for the tasks, transfers included, is the [command graph](command). Both graphs can be
//! [printed](mod@print).
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
//!
//! # Host objects
//! Between two tasks that touch one host object the stricter [`Order`] decides. *Sequential* against anything is a
//! dependency, in the order of submission. *Exclusive* against exclusive or relaxed is a *conflict*: an undirected
//! edge between tasks that may come in any order but never overlap in time. *Relaxed* against relaxed is nothing.
//! Where a dependency path leads from one task to the other there is no conflict edge. Conflict edges are derived only where
//! [`Settings::conflicts`] asks for them.
//!
//! A fourth order is for those who look without a change: [`Order::Observe`] comes after all earlier effects and before all
//! later ones, as a sequential one does, but what is later depends on its end and not on what it did ([`Kind::Anti`]).
//!
//! ```
//! use anabranch_graph::{Effect, Order, Settings, TaskGraph};
//!
//! let mut graph = TaskGraph::with(Settings { conflicts: true, ..Settings::default() });
//! let object = graph.create_object();
//! let mut touch = |order| graph.submit(&[], &[Effect { object, order }], &|_| false).unwrap();
//! let first = touch(Order::Exclusive);
//! let second = touch(Order::Relaxed);
//! assert_eq!(second.conflicts[..], [first.id]);
//! let third = touch(Order::Sequential);
//! assert!(third.conflicts.is_empty());
//! assert_eq!(third.dependencies.iter().map(|d| d.on).collect::<Vec<_>>(), [first.id, second.id]);
//! ```
//!
//! # Epochs and horizons
//! An [epoch](TaskGraph::epoch) comes after everything before it and before everything after it, and may capture what
//! is in buffers and host objects at that point. From then on it counts as the writer of all that was written, so that
//! nothing depends across it. The root of the graph is an epoch: a task that depends on nothing else depends on the last
//! one, so that every node is reachable from it.
//!
//! What the graph has to remember must not grow with the length of the program. Either it is told which tasks are
//! *done*: that is for a runtime that knows what has finished. Or it makes [`Horizons`] by itself: nodes that come
//! after everything before them, each of which stands for all that is older as soon as the next one is made. That
//! is for graphs that must be the same wherever the same program is submitted: on every node, and in dry runs. A
//! runtime on one node leaves horizons off, as they make later work wait for a slow task that has nothing to do with
//! it.
//!
//! # Versions
//! A buffer with several [versions](TaskGraph::set_versions) is renamed rather than waited for: a task that
//! overwrites all of it while it is still being read goes to another version. Several tasks that overwrite it
//! together, a band each, say so by a [discard](TaskGraph::discard) before.
//!
//! # Reductions
//! A reduction needs no mode of its own here. It overwrites the region of the reduced values ([`Mode::Write`]), or
//! changes it where the current contents are included ([`Mode::Update`]), and whoever reads the result depends on it.
//! How the partial results of its chunks are combined is up to those who execute it. Among several nodes it takes
//! transfers, which the [command graph](command#reductions) derives.

#![forbid(unsafe_code)]

mod ancestry;
pub mod command;
mod front;
mod graph;
mod horizon;
mod names;
mod object;
pub mod print;
pub mod schedule;
mod task;
mod tracker;

pub use graph::TaskGraph;
pub use horizon::{Horizons, Settings};
pub use schedule::{ConflictScheduler, TaskState};
pub use task::{
    Access, BufferId, Dependency, Effect, GraphError, Horizon, Kind, Mode, ObjectId, Order, Origin,
    Submitted, TaskId,
};
