//! A data-flow runtime for scientific programs.
//!
//! A program declares its data ([buffers](Buffer) and [host objects](HostObject)) and, for each task, what it reads,
//! writes and touches. From that alone the runtime derives the order, splits the work over threads and lets output run
//! behind the computation: no lock, no barrier and no `unsafe` in the program.
//!
//! ```
//! use anabranch::prelude::*;
//!
//! let (rows, cols) = (64, 48);
//! let rt = Runtime::new()?;
//! let initial = ndarray::Array2::from_shape_fn((rows, cols), |(y, x)| (y * x) as f32);
//! let mut u = rt.buffer_from(&initial)?.named("u");
//! let mut u2 = rt.buffer::<f32, 2>([rows, cols]).named("u2");
//! let sums = rt.host_object(Vec::new());
//!
//! for _step in 0..10 {
//!     rt.task("smooth")
//!         .over([rows, cols]) // the index space
//!         .read(&u, neighborhood([1, 0])) // declared accesses, in order …
//!         .write(&u2, one_to_one())
//!         .kernel(move |tile, (u, u2)| {
//!             // … arrive as typed views
//!             for y in tile.rows() {
//!                 let (above, below) = (u.row(y.max(1) - 1), u.row((y + 1).min(rows - 1)));
//!                 let middle = u.row(y);
//!                 for (x, new) in u2.row_mut(y).iter_mut().enumerate() {
//!                     *new = 0.25 * above[x] + 0.5 * middle[x] + 0.25 * below[x];
//!                 }
//!             }
//!         })?;
//!     rt.task("note the sum")
//!         .once() // a host task
//!         .read(&u2, all())
//!         .effect(&sums, sequential()) // &mut: ordered, never at the same time
//!         .host(|(u2, sums)| sums.push(u2.as_array().sum()))?;
//!     std::mem::swap(&mut u, &mut u2); // swapping handles is free
//! }
//! let (last, sums) = rt.drain((u.capture(), sums.capture()))?;
//! assert_eq!(last.into_array().sum(), sums[9]);
//! # Ok::<(), anabranch::Error>(())
//! ```
//!
//! The [guide] goes on from here: [orders, epochs and captures](guide::orders) with printed graphs, [reductions and
//! failures](guide::reductions), and a list of examples.
//!
//! # What always holds
//! - *Serial equivalence*: the results are those of running the tasks one after the other, bit for bit. [Exclusive](exclusive)
//!   and [relaxed] effects may come in another order: they are the program's word that it does not matter.
//! - *Reductions* have the same bits on any number of threads, floating-point sums, too: values are combined in the order of
//!   the index space, in a tree whose shape does not depend on the threads.
//! - *No silent error*: a wrong declaration is an [`Error`] that names task, buffer, region and source line; a kernel that
//!   leaves its declared region fails its task; waiting inside a task is an error, not a standstill.
//! - *Failure is data flow*: a task that panics or returns an error poisons what it was to write; tasks that need it are
//!   skipped, others go on, and the next [`wait`](Runtime::wait) tells. A complete overwrite heals a buffer.
//! - *Cancellation* is for tasks that have not begun. A cancelled task poisons the buffers that it was to write, leaves host
//!   objects as they are, and is no failure that `wait` tells of. [Tokens](CancellationToken) are for tasks, not for fences,
//!   barriers and [`drain`](Runtime::drain), by which the program looks at what is left.
//! - *Who waits is not kept by others*: waiting for one task runs that one or none; no thread waits for a conflict.
//! - *Bounded memory*: who submits too fast is slowed down, but for tasks that submit tasks.
//!
//! # Graphs and dry runs
//! With `ANABRANCH_PRINT_GRAPHS=graphs.svg` in the environment a program draws its task graph when the runtime ends; with
//! `ANABRANCH_DRY_RUN_NODES=16` it says what sixteen nodes would execute and send. In the program:
//! [`record_graphs`](Builder::record_graphs) and [`dry_run`](Builder::dry_run). [`seeded`](Builder::seeded) runs tasks in
//! an order that can be had again.
//!
//! # Safety
//! `unsafe` is in `memory` (allocation), `view` (slices of shared memory: its documentation has the rules that make it
//! sound), `reduce` (the buffer that a reduction goes to), `host_object` (the value behind its lock), `node` (a task's pointer
//! to its runtime) and, as what those ask for or calls of it, in `access`, `body`, `fence` and `run`.

mod access;
mod barrier;
mod body;
mod books;
mod buffer;
mod capture;
mod conflicts;
mod core;
mod declare;
mod element;
mod error;
mod failures;
mod fence;
pub mod guide;
mod handle;
mod host_object;
mod inside;
mod lead;
mod memory;
mod node;
mod record;
mod reduce;
mod run;
mod runtime;
mod seeded;
mod snapshot;
mod sync;
mod task;
mod tile;
mod view;
mod watch;

pub use access::{
    Access, AccessList, Append, BoundBuffer, Effect, Exclusive, KernelAccess, KernelAccessList, Read,
    Relaxed, Sequential, Write, exclusive, relaxed, sequential,
};
pub use anabranch_graph as graph;
pub use anabranch_grid as grid;
pub use anabranch_par as par;
pub use anabranch_par::CancellationToken;
pub use barrier::Barrier;
pub use buffer::{Buffer, Initial, Label, Part};
pub use capture::{Capture, Captures, Copies, Fenceable, Moves};
pub use declare::Declaration;
pub use element::{Element, Rank, Shape};
pub use error::{Cause, DeclarationError, Error, Failure, Failures, HostResult, Mistake, TaskLabel};
pub use fence::Fence;
pub use handle::{Status, TaskHandle};
pub use host_object::{HostObject, Taken};
pub use reduce::{
    And, BoundReduction, Custom, Max, Min, Operator, Or, Product, Reduce, Reduction, Sum, and, max, min,
    operator, or, product, sum,
};
pub use runtime::{Builder, Idle, Runtime};
pub use snapshot::Snapshot;
pub use task::{Collective, IndexSpace, NewTask, Once, Over, TaskBuilder};
pub use tile::Tile;
pub use view::{ReadView, WriteView};

/// What most programs use.
pub mod prelude {
    pub use crate::{
        Buffer, CancellationToken, Error, HostObject, ReadView, Runtime, Snapshot, Status, TaskHandle, Tile,
        WriteView, and, exclusive,
        grid::{
            Extent, GridBox, Point, Region, all, even_split, fixed, mapper, neighborhood, one_to_one,
            permuted, slice, transposed,
        },
        max, min, operator, or, product, relaxed, sequential, sum,
    };
}
