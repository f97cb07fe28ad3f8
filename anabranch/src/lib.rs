//! A data-flow runtime for scientific programs.
//!
//! A program declares its data ([buffers](Buffer) and [host objects](HostObject)) and, for each task, the
//! data that the task reads, writes and changes. From these declarations the runtime derives the order of the
//! tasks, splits the work over threads and lets output run behind the computation. The program needs no
//! locks, no barriers and no `unsafe`.
//!
//! ```
//! use anabranch::prelude::*;
//!
//! let (rows, cols) = (64, 48);
//! let rt = Runtime::new()?;
//! let initial = ndarray::Array2::from_shape_fn((rows, cols), |(y, x)| (y * x) as f32);
//! let mut u = rt.buffer_from(&initial)?.named("u");
//! let mut u2 = rt.buffer::<f32, 2>([rows, cols]).named("u2");
//! let sums = rt.cluster_object(0, Vec::new)?; // an object of all nodes, which is on node 0
//!
//! for _step in 0..10 {
//!     rt.task("smooth")
//!         .over([rows, cols]) // the index space
//!         .read(&u, neighborhood([1, 0])) // declared accesses, in order …
//!         .write(&u2, one_to_one())
//!         .kernel(move |tile, (u, u2)| {
//!             // … arrive as typed views
//!             tile.points().for_each(|[y, x]| {
//!                 let (above, below) = (u[[y.max(1) - 1, x]], u[[(y + 1).min(rows - 1), x]]);
//!                 u2.set([y, x], 0.25 * above + 0.5 * u[[y, x]] + 0.25 * below);
//!             });
//!         })?;
//!     rt.task("note the sum")
//!         .once() // a host task
//!         .read(&u2, all())
//!         .effect(&sums, sequential()) // &mut: ordered, never at the same time
//!         .host(|(u2, sums)| sums.push(u2.as_array().sum()))?;
//!     std::mem::swap(&mut u, &mut u2); // swapping handles is free
//! }
//! let (last, sums) = rt.drain((u.capture(), sums.capture()))?;
//! assert!(sums.is_none_or(|sums| sums[9] == last.into_array().sum())); // `None` on the other nodes
//! # Ok::<(), anabranch::Error>(())
//! ```
//!
//! Continue with the [guide]: [orders, epochs and captures](guide::orders) with printed graphs, [reductions
//! and failures](guide::reductions), [recorded kernels](guide::recorded_kernels), [GPUs](guide::devices),
//! [small tasks](guide::small_tasks), [several nodes](guide::nodes), [from a laptop to a
//! cluster](guide::cluster), [logs and profiles](guide::profiling), and a list of examples.
//!
//! # What always holds
//! - *Serial equivalence*: the results are those of running the tasks one after the other, bit for bit. Only
//!   [exclusive] and [relaxed] effects may come in another order: by declaring them the program promises that
//!   the order does not matter.
//! - *Reductions* have the same bits on any number of threads, also sums of floating-point numbers: values
//!   are combined in the order of the index space, in a tree whose shape does not depend on the threads.
//! - *No silent error*: a wrong declaration is an [`Error`] that names task, buffer, region and source line.
//!   A kernel fails its task if a chunk leaves its declared region. With one thread a kernel has one chunk,
//!   whose region may be the whole buffer: test with two threads, or with
//!   [`chunks`](interface::TaskBuilder::chunks). In builds with debug assertions, a kernel that does not
//!   write all that it declared to [write](Builder::checked) fails, too. Waiting inside a task is an error,
//!   not a deadlock.
//! - *Failure is data flow*: a task that panics or returns an error poisons the data that it was to write.
//!   Tasks that need this data are skipped, other tasks run, and the next [`wait`](Runtime::wait) reports the
//!   failure; for a task in a [group](TaskGroup), the next wait of this group, and no other. A complete
//!   overwrite heals a buffer.
//! - *Cancellation* applies to tasks that have not begun, and to [replays](Sequence::replay). A cancelled
//!   task poisons the buffers that it was to write. It leaves host objects as they are; only replays that
//!   have begun poison them, too. `wait` does not report the cancellation. [Groups](TaskGroup::cancel) do not
//!   cancel fences, barriers and [`drain`](Runtime::drain), through which the program looks at the results
//!   that are left.
//! - *A waiting thread is delayed only by tasks that it waits for*: a thread that waits for one task runs
//!   that task or none, and no thread waits for a conflict. [A switch](Builder::help_while_waiting) keeps
//!   tasks off threads that wait.
//! - *No code of the program runs under a lock of the runtime*: range mappers, destructors, `Clone`,
//!   callbacks, wakers and subscribers of `tracing` may submit tasks.
//! - *Bounded memory*: a thread that submits too fast is slowed down, except inside tasks.
//!
//! # Graphs and dry runs
//! With `ANABRANCH_PRINT_GRAPHS=graphs.svg` in the environment, a program draws its task graph when the
//! runtime ends. With `ANABRANCH_DRY_RUN_NODES=16` it prints what sixteen nodes would execute and send. The
//! functions [`record_graphs`](Builder::record_graphs) and [`dry_run`](Builder::dry_run) do the same in the
//! program. [`seeded`](Builder::seeded) runs tasks in an order that can be repeated.
//!
//! # Features
//! - `print` (on by default): drawings of recorded graphs. Without it `ANABRANCH_PRINT_GRAPHS` is an error,
//!   and there is no `Runtime::task_graph`.
//! - `num-complex`: buffers of the complex numbers of `num-complex`, and their [`sum`] as a reduction.
//!
//! # Logging
//! Warnings (a task that runs for long, a standstill, too many waits, idle threads) and spans of tasks and
//! waits go through [`tracing`]. Programs that use the `log` crate get the warnings there. The guide has [a
//! page about both](guide::profiling).
//!
//! # Safety
//! All `unsafe` of this crate is in `data` (`allocation`; `view`, whose documentation has the rules that make
//! it sound; `host_object`, for the value behind its lock), in `execute` (`node` and `head`, for the pointer
//! of a task to its runtime; `transfer`, `exchange` and `partials`, for memory that transfers between nodes
//! use; `copy`, for memory that copies to and from devices use) and in `submit` (`reduce`, for the buffer of
//! a reduction; `access`, `body`, `batch`, `fence`, `parts` and `sequence`, which open accesses).

mod agree;
mod builder;
mod cluster;
mod data;
pub mod device;
mod error;
mod events;
mod execute;
#[cfg(feature = "print")]
mod graphs;
mod group;
pub mod guide;
pub mod interface;
mod label;
mod local_nodes;
mod observe;
mod processors;
mod program_cache;
mod random;
pub mod recorded;
mod runtime;
mod settings;
mod stderr;
mod submit;
mod sync;
mod weights;

pub use self::{
    builder::Builder,
    data::{
        buffer::Buffer,
        cluster_object::ClusterObject,
        communicator::Communicator,
        element::Element,
        host_object::HostObject,
        initial::Initial,
        snapshot::Snapshot,
        view::{ReadView, UpdateView, WriteView},
    },
    error::{Cause, DeclarationError, Error, Failure, Failures, Mistake, NodeError},
    execute::{Status, TaskHandle},
    group::TaskGroup,
    label::{Label, TaskLabel},
    local_nodes::{LocalNodes, local_nodes},
    processors::default_threads,
    runtime::{Idle, Runtime},
    submit::{
        access::{
            effect::{exclusive, relaxed, sequential},
            operator::{Operator, and, max, min, operator, or, product, sum},
            reduce::Reduction,
        },
        capture::{barrier::Barrier, fence::Fence},
        sequence::{DeadlineExceeded, ReplayUntil, Sequence, SequenceBody},
        task::tile::Tile,
    },
};
pub use anabranch_graph as graph;
pub use anabranch_grid as grid;
pub use anabranch_par::{self as par, CancellationToken};
pub use anabranch_wire::{Launched, MpiComm, WireError};
pub use bytemuck;
pub use ndarray;
#[cfg(feature = "num-complex")]
pub use num_complex;

/// The names that most programs use.
pub mod prelude {
    pub use crate::{
        Buffer, CancellationToken, ClusterObject, Error, HostObject, ReadView, Runtime, Snapshot, Status,
        TaskGroup, TaskHandle, Tile, UpdateView, WriteView, and, exclusive,
        grid::{
            AnyBoxes, Cross, Extent, GridBox, OneBox, Point, Region, RegionShape, all, even_split, fixed,
            mapper, neighborhood, one_to_one, permuted, slice, transposed,
        },
        max, min, operator, or, product, relaxed, sequential, sum,
    };
}

/// The program in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
