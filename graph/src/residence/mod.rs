//! The residence of buffers: which memories have the current values, and which copies an access needs.
//!
//! The elements of a buffer may be in the memory of the host and in those of devices. A [`Residence`] says
//! for one version of a buffer which memories are current where. It is pure: it copies nothing, and the same
//! calls give the same answers. The caller has one task graph for all memories. When it submits a task that
//! accesses a region in a memory, it
//!
//! 1. asks which copies the memory needs ([`missing`](Residence::missing)), unless the task only overwrites
//!    the region,
//! 2. submits each of them as a task that reads its region, lets it come after the copies that made its
//!    source current, and notes it ([`copied`](Residence::copied)),
//! 3. lets the task come after the copies that made the region current in its memory
//!    ([`made_by`](Residence::made_by)),
//! 4. notes what the task writes ([`written`](Residence::written)).
//!
//! When a copy ends, the caller reports that it is [`done`](Residence::done) or has
//! [`failed`](Residence::failed). The reports may come late and in any order. What follows from this:
//!
//! - No element is copied to a memory that is current there, or will be when a pending copy is done.
//! - The memory in which an element was written last is current until the next write. So every element is
//!   current in some memory, and a failed copy can be made again.
//! - A task reads current values if all that it came after has ended well.
//! - Boxes with the same state merge. An endless program needs memory for the boxes that it distinguishes,
//!   and for pending copies only until they are done or overwritten.

mod cell;
mod map;
mod memory;
#[cfg(test)]
mod tests;

pub use map::Residence;
pub use memory::{MemoryCopy, MemoryId};
