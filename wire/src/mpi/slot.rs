//! The place where the connection of this process waits for its next endpoint.

use crate::{Transport, WireError};
use parking_lot::Mutex;
use std::mem;

/// A connection that no endpoint has.
pub(super) trait Idle: Send {
    /// An error unless MPI permits calls by several threads at the same time.
    fn check_threads(&self) -> Result<(), WireError>;

    /// The transport of the next endpoint.
    fn open(self: Box<Self>) -> Box<dyn Transport>;

    /// Ends MPI.
    fn end(self: Box<Self>);
}

pub(super) enum Slot {
    Empty,
    Idle(Box<dyn Idle>),
    /// An endpoint has the connection, or a thread makes it.
    Taken,
    /// An endpoint had the connection when the communication failed.
    Failed,
}

static SLOT: Mutex<Slot> = Mutex::new(Slot::Empty);

/// Takes the connection, or the right to make one. A caller that does not make one puts the right back.
pub(super) fn take() -> Slot {
    mem::replace(&mut *SLOT.lock(), Slot::Taken)
}

pub(super) fn put(slot: Slot) {
    *SLOT.lock() = slot;
}
