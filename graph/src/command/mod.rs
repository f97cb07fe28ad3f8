//! The command graph: what each node does for the tasks of a program.
//!
//! Every node runs the same program, submits every task to a [`CommandGraph`] of its own, and gets only its
//! own commands. There is no master, and no message is needed to agree on transfers. The node that wrote a
//! region last owns it and *pushes* it, once, to each node that reads it. The receiver *awaits* the same
//! push, because both nodes derive it from the same launches.
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
//! // The node sends its border rows to its neighbours, receives theirs, and executes the second quarter.
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
//! For each buffer a node records which parts it owns, of which parts it has a current copy, and what it has
//! sent to which node. It does not record the parts that other nodes own (but for what
//! [exchanges](#exchanges) need), so the state takes no more memory with 4,096 nodes than with two. The
//! writes of a task make the writing nodes owners; all copies elsewhere become stale. Contents given from the
//! start are current on every node, and no node owns them until they are overwritten. For each buffer and
//! task, a node that lacks what it reads awaits *one* push, and an owner sends one push that names all
//! receivers.
//!
//! # Exchanges
//! After a launch that overwrites all of a buffer, every node knows the part of each node. If the next launch
//! that reads the buffer reads the same region on every node, all nodes have the same list of parts
//! (`source`): the push and the await-push then say so, and the nodes may exchange the parts in a number of
//! messages that grows with the logarithm of the nodes. This is the case if the mapper that wrote is one of
//! those that are known to be exact or one node wrote, and if the task that reads is a fence of the same on
//! all nodes or reads with [`all`](anabranch_grid::all) or [`fixed`](anabranch_grid::fixed) on every node.
//!
//! # Reductions
//! The index space of a task with reductions is cut into *leaves* in a way that does not depend on the number
//! of nodes. Each node computes partial results for its leaves; the buffer is then *pending*. The first task
//! that reads the buffer makes every node that does so collect the partial results and [`combine`] them in a
//! fixed tree. The first of these nodes becomes the owner. A result that is overwritten before it is read is
//! never combined.
//!
//! # Host objects
//! Each node has a [host object](CommandGraph::create_object) of its own, unless the object is one of the
//! [whole cluster](CommandGraph::create_cluster_object). That one exists once, on its home. All parts of a
//! task with an effect on it come after all parts of the last such task, on whatever nodes: these nodes [pass
//! the turn](CommandKind::PassTurn) to the next ones, in messages without data. Its snapshot is on all nodes,
//! so that a failure of the object reaches them all.
//!
//! # Versions and discards
//! A node may have [several memories](CommandGraph::set_versions) of a buffer. A launch that overwrites all
//! of the buffer goes to another memory if commands of this node still read the contents (a frame that is
//! being stored, say), instead of waiting for them. Several launches that overwrite the buffer together
//! announce this with a [discard](CommandGraph::discard). All commands of a launch use the memory that is the
//! [current one](CommandGraph::version) after the launch. Each node decides for itself: the transfers do not
//! depend on it.
//!
//! # Horizons and epochs
//! A horizon depends on the whole execution front of its node. When the next one is submitted, the one before
//! is *applied*: it stands for all commands that precede it, in dependencies and in conflicts, so that the
//! state stays bounded. An epoch is applied at once: no dependency crosses it.
//!
//! # The steps of a launch
//! [`CommandGraph::launch`] takes these steps. Steps 1 to 4 are skipped for a fence, epoch or horizon without
//! accesses.
//!
//! 1. **Memoization.** A launch that repeats an earlier one (equal mappers on the same buffers, divided in
//!    the same way), on buffers whose states have the same structure as before, is not derived again: its
//!    commands are recalled, with new numbers (`memo`, `interned`). Otherwise:
//! 2. **Split.** The index space is split by arithmetic, evenly or by [weights](CommandGraph::set_weights):
//!    chunks and pieces are computed, not listed (`split`).
//! 3. **Find what is needed.** The range mappers are evaluated for this node's chunk, its pieces, and the
//!    whole index space, and the launch is checked (`shape`). Nodes that read a region are found by bisection
//!    over runs of chunks (`shape::readers`). Local accesses such as a stencil take a handful of mapper
//!    calls, whose number grows with the logarithm of the number of nodes.
//! 4. **Derive** (`derive`), from and into the states of the buffers (`buffer`, in `slots`):
//!    1. for each buffer: resolve a pending reduction, push what other nodes lack, await what this node
//!       lacks;
//!    2. mark what the task writes as overwritten, and execute the pieces of this node's chunk;
//!    3. make the buffers that the task reduces to pending.
//! 5. **Effects.** Effects on host objects add dependencies and conflicts (`effects`), and those on host
//!    objects of the whole cluster commands that come before all others (`turn`).
//! 6. **Number.** The edges of the new commands are finished, and the commands join the execution front
//!    (`front`).
//!
//! A rolling hash of everything that was submitted (`hash`) shows whether two nodes run the same program.
//!
//! The graph generates commands; it does not execute them.
//!
//! # Checks
//! Range mappers must be monotonic. Those that write must also be *exact*: pieces write disjoint regions
//! whose union is the region that the whole task writes. Everything that the whole task reads must have been
//! written. Every node finds the same error, because it checks the whole task and not its own part. That
//! costs nothing for mappers that are known to be exact (one-to-one, permuted, and the even split of rows),
//! and a call for each piece on all nodes for other mappers that write, unless the launch repeats an earlier
//! one. One mistake is noticed only by nodes that it concerns: a mapper that *reads* and is not monotonic.
//!
//! # Sources
//! Ownership, push and await-push, and the command graph itself follow Celerity: F. Knorr, P. Thoman, T.
//! Fahringer, "Declarative Data Flow in a Graph-Based Distributed Memory Runtime System", 2022,
//! <https://doi.org/10.1007/s10766-022-00743-4>, and P. Salzmann et al., "An Asynchronous Dataflow-Driven Execution Model For
//! Distributed Accelerator Computing", 2023, <https://doi.org/10.1109/CCGrid57682.2023.00018>. Horizons are
//! described in P. Thoman, P. Salzmann, "Command Horizons: Coalescing Data Dependencies while Maintaining
//! Asynchronicity", 2023,
//! <https://doi.org/10.1007/978-3-031-32316-4_2>.

mod buffer;
mod derive;
mod digest;
mod effects;
mod error;
mod front;
mod graph;
mod interned;
mod launch;
mod mapper;
mod memo;
mod part;
mod shape;
mod slots;
mod source;
mod split;
mod tree;
mod turn;
mod types;
mod versions;
mod weights;

pub use error::CommandError;
pub use graph::CommandGraph;
pub use launch::{BufferAccess, Hints, Launch, Reduction, Tiling, Work};
pub use mapper::{Mapper, erase};
pub use part::{Part, leaves_by_node, part_of_node, pieces_of_node};
pub use tree::{combine, default_leaves, subtrees};
pub use types::{
    Command, CommandDependency, CommandId, CommandKind, NodeId, Pass, Target, TransferKind, TransferName,
};
pub use weights::Weights;
