//! The data-flow graph: from declared accesses to dependencies.
//!
//! A program submits tasks one after the other. Each task declares which regions of which buffers it reads
//! and writes and which host objects it touches. From that, a [`TaskGraph`] derives the earlier tasks that it
//! depends on, so that running the tasks in any order that keeps the dependencies has the same result as
//! running them one by one. There are four kinds of dependencies:
//!
//! - a *true* dependency on the task that wrote what is read,
//! - an *anti-dependency* on tasks that still read what is overwritten,
//! - an *output* dependency on the task whose unread result is overwritten,
//! - a *serialisation* dependency between effects on one host object, and between tasks and epochs or
//!   horizons.
//!
//! Tasks that may run in any order but must not overlap in time are in *conflict*. The [`ConflictScheduler`]
//! decides which of them start when, and keeps no edges for that ([`schedule`]).
//!
//! The graph is pure: it uses no threads, no clock and no memory of the buffers, and the same calls give the
//! same answers. It treats buffers of any dimension as three-dimensional (`[n]` is `[n, 1, 1]`).
//!
//! The [command graph](command) derives what each of several nodes does for the tasks, transfers included.
//! Both graphs can be printed: see the module `print` (feature `print`, on by default).
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
//! Between two tasks that touch one host object the stricter [`Order`] decides. *Sequential* against anything
//! is a dependency, in the order of submission. *Exclusive* against exclusive or relaxed is a *conflict*: an
//! undirected edge between tasks that may run in any order but never overlap in time. *Relaxed* against
//! relaxed is nothing. If a dependency path leads from one task to the other, there is no conflict edge. The
//! graph derives conflict edges only if [`Settings::conflicts`] asks for them.
//!
//! A fourth order is for tasks that observe an object without changing it: [`Order::Observe`] comes after all
//! earlier effects and before all later ones, as a sequential effect does, but later effects do not depend on
//! the success of the observer ([`Kind::Anti`]).
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
//! An [epoch](TaskGraph::epoch) comes after everything before it and before everything after it, and may
//! capture the contents of buffers and host objects at that point. From then on it counts as the writer of
//! everything that was written, so that nothing depends across it. The root of the graph is an epoch. A task
//! that depends on nothing else depends on the last epoch, so that every node is reachable from the root.
//!
//! The graph must not grow with the length of the program. There are two ways to bound it. A runtime reports
//! which tasks are *done*, and the graph forgets them. Or the graph makes [`Horizons`] by itself: nodes that
//! come after everything before them. As soon as the next horizon is made, the one before stands for
//! everything older. Horizons suit graphs that must be the same wherever the same program is submitted: on
//! every node, and in dry runs. A runtime on one node leaves horizons off, because they make later work wait
//! for unrelated slow tasks.
//!
//! # Versions
//! A buffer with several [versions](TaskGraph::set_versions) is renamed instead of waited for: a task that
//! overwrites all of it while it is still being read goes to another version. Several tasks that overwrite
//! the buffer together, a band each, announce this with a [discard](TaskGraph::discard) before the first of
//! them.
//!
//! # Reductions
//! A reduction needs no mode of its own here. It overwrites the region of the reduced values
//! ([`Mode::Write`]), or changes it if the current contents are included ([`Mode::Update`]), and tasks that
//! read the result depend on it. The executor decides how to combine the partial results of the chunks. With
//! several nodes this takes transfers, which the [command graph](command#reductions) derives.
//!
//! # Memories
//! Tasks may run on the host and on devices, each with a memory of its own. The task graph does not know
//! where a task runs. A [`Residence`] says which memories have the current values of a buffer, and which
//! copies must come before a task ([`residence`]).

#![forbid(unsafe_code)]

pub mod command;
#[cfg(feature = "print")]
pub mod print;
pub mod repeat;
pub mod residence;
mod rolling_hash;
pub mod schedule;
mod task;
mod task_graph;

pub use residence::{MemoryCopy, MemoryId, Residence};
pub use rolling_hash::RollingHash;
pub use schedule::{ConflictScheduler, Contender, TaskState};
pub use task::{
    Access, BufferId, Dependency, Effect, GraphError, Horizon, Kind, Mode, ObjectId, Order, Origin,
    Submitted, TaskId,
};
pub use task_graph::{Horizons, Settings, TaskGraph};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
