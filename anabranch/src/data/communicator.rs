//! Communicators: how tasks call libraries that use MPI.

use super::host_object::HostObject;
use anabranch_wire::MpiComm;
use std::fmt;

/// A communicator of MPI for collective tasks, which call functions of MPI, or of a library that uses it: see
/// [`Runtime::communicator`](crate::Runtime::communicator).
///
/// A [`collective`](crate::interface::NewTask::collective) task declares a
/// [`sequential()`](crate::sequential) effect on it, and gets the handle: an `Option<`[`MpiComm`]`>`, which
/// is `None` if there is no MPI, because the program runs on one node or on
/// [`local_nodes`](crate::local_nodes).
///
/// - The tasks of one communicator run in the order in which they were submitted, so all nodes make its calls
///   in the same order. Tasks of different communicators may run at the same time.
/// - Such a task begins on all nodes or on none. A node in a call of MPI waits for all others, and no error
///   of the program can wake it. So before the task begins, all nodes meet. If something that it needs has
///   failed on any of them, or it was cancelled on any of them, all of them skip it. Only the end of the
///   whole run may come between: see [`node_timeout`](crate::Builder::node_timeout).
/// - All effects of such a task are sequential. Its function must not wait for a lock that a task of another
///   communicator may hold. On another node the two tasks may run in the other order, and then both wait for
///   ever.
/// - A task that fails breaks the communicator: later tasks of it are skipped on all nodes. The function must
///   make sure that an error on one node does not leave the other nodes in a call.
#[derive(Clone)]
pub struct Communicator {
    pub(crate) object: HostObject<Option<MpiComm>>,
}

impl Communicator {
    /// Names the communicator, for messages and printed graphs. Only the first call has an effect.
    pub fn named(self, name: impl fmt::Display) -> Self {
        Self { object: self.object.named(name) }
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}
