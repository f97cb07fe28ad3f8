//! Tasks on devices, and the copies that bring their data to them and back.
//!
//! # How data is kept coherent
//! 1. [`Residents`] is a part of the state that submissions change under the lock. It knows the buffers that
//!    have met a device. For each version of these buffers, [`Residence`](anabranch_graph::Residence) says
//!    which memories have the current value of which part.
//! 2. Before the graph gets a task, [`Core::accept`](super::Core::accept) asks what the task lacks in the
//!    memory where it runs ([`prepare`](mod@prepare)). For each missing part it submits a [copy](copy), which
//!    is a task: in the graph it *reads* that part. So it comes after the tasks that write the part, later
//!    writers come after it, and its failure has a place in the chain of causes.
//! 3. The task depends on the copies that made current what it reads, those of earlier tasks included.
//! 4. What the task writes is current in its memory only.
//!
//! With several nodes, the copies come between the commands of the node: see [`on_nodes`].
//!
//! A program without devices pays one comparison for each submission. A buffer that meets no device has no
//! entry.
//!
//! The body of a copy or [launch](launch) hands work to the device and returns. The timeline of the device
//! ends the task [later](super::task::later). No thread of the runtime waits for a device. Copies to and from
//! a device and its launches have one [queue](super::task::queued): one that depends on another one of the
//! same device is handed over without waiting for its end.

mod copy;
mod ended_copies;
mod launch;
mod leaves;
mod on_nodes;
mod planned_copy;
mod prepare;
mod residents;
mod slot;
mod writers;

pub(crate) use self::launch::{LaunchBody, LaunchOperand, LaunchOperands, LaunchParts};
pub(crate) use self::leaves::LeavesOnHost;
pub(crate) use self::slot::Slot;
pub(super) use self::{
    copy::CopyBody,
    on_nodes::{NewCopy, Predecessors},
    prepare::{Prepared, note_writes, prepare},
    residents::{Predecessor, Residents},
};

use crate::{data::stored::Stored, device::Device};
use smallvec::SmallVec;
use std::sync::Arc;

/// The buffers of the accesses of a task, in their order.
pub(crate) type Buffers = SmallVec<[Arc<dyn Stored>; 4]>;

/// The device that a task runs on, and the buffers of its accesses, in their order.
#[derive(Clone, Copy)]
pub(crate) struct OnDevice<'a> {
    pub(crate) device: &'a Arc<dyn Device>,
    pub(crate) buffers: &'a [Arc<dyn Stored>],
}
