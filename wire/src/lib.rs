//! The wire between the nodes of a program: messages, and boxes of memory.
//!
//! A program that runs on several nodes, each with memory of its own, needs four things of the network
//! between them, and this crate has them in [`Endpoint`]:
//!
//! - **transfers**: a node [sends](Endpoint::send) boxes of its memory, and another one
//!   [expects](Endpoint::expect) this number of bytes, and has them written into place. A transfer is named
//!   by a [`Tag`]; the receiver need not know the sender, and either side may come first. A node that cannot
//!   send them gives a [note](Endpoint::send_note) in their place;
//! - **posts**: [small messages](Endpoint::post), in order;
//! - **patterns** of all nodes: [`gather`](Endpoint::gather) (which is also a barrier) and
//!   [`broadcast`](Endpoint::broadcast), in which no node sends more messages than the binary
//!   logarithm of the number of nodes, rounded up;
//! - **an end**: [`finish`](Endpoint::finish), or the same error on every node, when one gives up, leaves,
//!   panics or does not answer.
//!
//! Nothing waits: what is begun makes progress in [`Endpoint::poll`], and is reported there as an [`Event`].
//!
//! Boxes are [`Layout`]s: rows of bytes at equal distances, in a [`Memory`]. They are sent without a copy
//! where that is faster. The memory that early messages take is bounded at each node.
//!
//! An endpoint stands on a [`Transport`]. [`connect`] finds out whether `mpirun` or `srun` has started the
//! program, and loads the MPI library that is installed: Open MPI, MPICH and its relatives, or one with the
//! MPI 5 ABI, from the same executable. The [`local`] transport connects nodes in one process, for tests and
//! for users who try their program; it can delay and reorder messages and silence nodes.
//!
//! ```
//! use anabranch_wire::{Begun, Event, Layout, MemoryMut, Pace, Tag, WireError, local::Network};
//!
//! // Every node computes a square, and all nodes get all of them.
//! let squares = Network::new(4).run(|mut wire| {
//!     let (node, mut all) = (usize::from(wire.place().node), [0_u64; 4]);
//!     all[node] = (node * node) as u64;
//!     // SAFETY: `all` lives, untouched, until the gather is done.
//!     let memory = unsafe { MemoryMut::new(all.as_mut_ptr().cast(), size_of_val(&all)) };
//!     let parts: Vec<_> = (0..4).map(|n| vec![Layout::contiguous(8 * n, 8)]).collect();
//!     if let Begun::Later(ticket) = wire.gather(Tag::new(1, 0, 0), memory, &parts)? {
//!         let (mut events, mut pace) = (Vec::new(), Pace::new());
//!         while !events.contains(&Event::Done(ticket)) {
//!             pace.after(wire.poll(&mut events)?);
//!         }
//!     }
//!     wire.finish()?;
//!     Ok::<_, WireError>(all)
//! });
//! assert!(squares.iter().all(|all| *all == Ok([0, 1, 4, 9])));
//! ```

#![deny(unsafe_code)]

mod communicator;
mod connect;
mod endpoint;
mod error;
mod launch;
mod layout;
pub mod local;
mod memory;
mod mpi;
mod mpi_ffi;
mod poll_interval;
mod tag;
mod transport;

pub use communicator::MpiComm;
pub use connect::{connect, launched};
pub use endpoint::{Endpoint, NOTE, Options, POST};
pub use error::WireError;
pub use launch::Launched;
pub use layout::Layout;
pub use memory::{Memory, MemoryMut};
pub use poll_interval::Pace;
pub use tag::{Begun, Event, Tag, Ticket};
pub use transport::{Arrival, Get, MESSAGE, Place, TRANSFER, Transport};
