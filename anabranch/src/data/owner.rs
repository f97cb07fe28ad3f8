//! The runtime, as far as its buffers and host objects know it.

use anabranch_graph::{BufferId, ObjectId};
use std::{
    ptr,
    sync::{Arc, Weak},
};

/// The owner of buffers and host objects: a runtime. Handles have a [`Weak`] reference to it, so that they
/// may outlive it.
pub(crate) trait Owner: Send + Sync {
    /// Whether there are several nodes, each of which has a part of a buffer.
    fn has_several_nodes(&self) -> bool;

    /// Allows the buffer this many allocations at a time.
    fn set_versions(&self, buffer: BufferId, versions: usize);

    /// Declares the contents of the buffer as no longer needed.
    fn discard(&self, buffer: BufferId);

    /// Removes a buffer whose last handle was dropped and that no task uses.
    fn remove_buffer(&self, buffer: BufferId);

    /// Removes a host object whose last handle was dropped and that no task uses.
    fn remove_object(&self, object: ObjectId);
}

/// Whether a handle with this owner belongs to `runtime`.
pub(crate) fn is_owned_by<O: Owner>(owner: &Weak<dyn Owner>, runtime: &Arc<O>) -> bool {
    ptr::addr_eq(owner.as_ptr(), Arc::as_ptr(runtime))
}
