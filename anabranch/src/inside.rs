//! Which runtime's task a thread is running: waiting for that runtime there would be waiting for itself.

use crate::core::Core;
use std::{cell::Cell, ptr};

thread_local! {
    static INSIDE: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Marks this thread as running a task of a runtime.
pub(crate) struct Inside {
    before: *const Core,
}

impl Inside {
    pub(crate) fn enter(core: &Core) -> Self {
        Self { before: INSIDE.replace(core) }
    }

    /// Whether this thread is running a task of `core`.
    pub(crate) fn is(core: &Core) -> bool {
        ptr::eq(INSIDE.get(), core)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}
