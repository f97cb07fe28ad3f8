//! The reference that a runtime leaves behind when the program drops it inside one of its own tasks: see
//! [`shutdown`](super::shutdown).

use parking_lot::Mutex;
use std::sync::{Arc, atomic::AtomicBool};

/// The reference that such a runtime leaves for its last task, or for itself. `R` is
/// [`Core`](super::core::Core), which has this as a field.
pub(super) struct DeferredShutdown<R> {
    pub(super) core: Mutex<Option<Arc<R>>>,
    pub(super) is_deferred: AtomicBool,
}

impl<R> Default for DeferredShutdown<R> {
    fn default() -> Self {
        Self { core: Mutex::new(None), is_deferred: AtomicBool::new(false) }
    }
}
