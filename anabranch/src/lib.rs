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
//! # What always holds
//! - *Serial equivalence*: the results are those of running the tasks one after the other, bit for bit.
//! - *No silent error*: a wrong declaration is an [`Error`] that names task, buffer, region and source line; a kernel that
//!   leaves its declared region fails its task.
//! - *Failure is data flow*: a task that panics or returns an error poisons what it was to write; tasks that need it are
//!   skipped, others go on, and the next [`wait`](Runtime::wait) tells. A complete overwrite heals a buffer.
//! - *Bounded memory*: who submits too fast is slowed down.
//!
//! The [guide] goes on from here.
//!
//! # Safety
//! `unsafe` is in `memory` (allocation), `view` (slices of shared memory: its documentation has the rules that make it
//! sound) and, as calls of those, in `access`, `task` and `fence`.

mod access;
mod barrier;
mod body;
mod books;
mod buffer;
mod cancel;
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
pub use barrier::Barrier;
pub use buffer::{Buffer, Initial, Label, Part};
pub use cancel::CancellationToken;
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
