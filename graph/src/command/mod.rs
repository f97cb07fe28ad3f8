//! The command graph: what each node does for the tasks of a program.
//!
//! Every node runs the same program, tells every task to a [`CommandGraph`] of its own, and gets only its own commands.
//! There is no master, and no message is needed to agree on transfers: the node that wrote a region last owns it and
//! *pushes* it to whoever reads it, once, and the receiver *awaits* the same push, because both derive it from the
//! same launches.
//!
//! ```
//! use anabranch_graph::{BufferId, Mode, TaskId, command::*};
//! use anabranch_grid::{Extent, GridBox, neighborhood, one_to_one};
//!
//! let extent = Extent([100, 100]);
//! let space = GridBox::full([100, 100, 1]);
//! let (u, v) = (BufferId(1), BufferId(2));
//! let access = |buffer, mode, mapper| BufferAccess { buffer, mode, mapper };
//! let points = erase(one_to_one(), extent);
//! let init = [access(u, Mode::Write, points.clone())];
//! let step = [access(u, Mode::Read, erase(neighborhood([1, 1]), extent)), access(v, Mode::Write, points)];
//!
//! // The second of four nodes.
//! let mut graph = CommandGraph::new(NodeId(1), 4);
//! graph.create_buffer(u, extent.cast(), false);
//! graph.create_buffer(v, extent.cast(), false);
//! graph.launch(&Launch { accesses: &init, ..Launch::new(TaskId(1), Work::Kernel { space }) })?;
//! let commands = graph.launch(&Launch { accesses: &step, ..Launch::new(TaskId(2), Work::Kernel { space }) })?;
//!
//! // Its border rows go to the neighbours, theirs come here, and then the second quarter is executed.
//! let CommandKind::Push { targets, .. } = &commands[0].kind else { panic!() };
//! assert_eq!(targets[0], Target { node: NodeId(0), region: GridBox::new([25, 0, 0], [26, 100, 1]).into() });
//! assert_eq!(targets[1].node, NodeId(2));
//! let CommandKind::AwaitPush { region, .. } = &commands[1].kind else { panic!() };
//! assert_eq!(region.to_string(), "[24..25, 0..100, 0..1] + [50..51, 0..100, 0..1]");
//! assert!(matches!(commands[2].kind, CommandKind::Execute { .. }));
//! assert_eq!(commands[2].dependencies.last().unwrap().on, commands[1].id);
//! # Ok::<(), CommandError>(())
//! ```
//!
//! # Ownership and transfers
//! Each node knows of each buffer which parts it owns, of which it has a current copy, what it has sent to whom, and
//! nothing about what others own: that takes no more memory with 4,096 nodes than with two. A task's writes make the
//! writers owners; all copies elsewhere become stale. Contents given from the start are current on every node, and
//! nobody owns them until they are overwritten. A node reads a region that it lacks after *one* await-push per buffer and
//! task; the owners send it with one push per buffer and task each, naming all targets.
//!
//! # Work
//! Chunks are computed, not listed, and range mappers are evaluated only for this node's chunks and along bisections that
//! find the others it must send to. Local accesses (a stencil) take a handful of mapper calls, whose number grows
//! with the logarithm of the number of nodes.
//! That needs monotonic mappers. Those that write must even be *exact*: chunks write disjoint regions whose union is
//! what the whole task writes. Each node checks that for the runs of chunks that hold its own, so that some node
//! notices every violation.
//!
//! A launch that repeats an earlier one (the same mappers on the same buffers) is not derived again where its buffers are in a
//! state of the same structure: its commands are replayed with new numbers.
//!
//! # Reductions
//! The index space of a task with reductions is cut into *leaves* in a way that does not depend on the number of nodes.
//! Each node computes partial results for its leaves; the buffer is then *pending*. The first task that reads it makes
//! every node that does so collect the partial results and [`combine`] them in a fixed tree. The first of these nodes is
//! the owner then. What is overwritten before it is read is never combined.
//!
//! # Horizons and epochs
//! A horizon depends on the whole execution front of its node. When the next one is told, the one before stands for all
//! commands that precede it, in dependencies and in conflicts, so that what is tracked stays bounded. An epoch does so at
//! once: no dependency reaches across it.

mod buffer;
mod derive;
mod effects;
mod error;
mod graph;
mod hash;
mod launch;
mod layout;
mod replay;
mod shape;
mod split;
mod tree;
mod types;

pub use error::CommandError;
pub use graph::CommandGraph;
pub use launch::{BufferAccess, Hints, Launch, Mapper, Reduction, Tiling, Work, erase};
pub use tree::{combine, subtrees};
pub use types::{Command, CommandDependency, CommandId, CommandKind, NodeId, Target};
