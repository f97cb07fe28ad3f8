//! Which runtimes' tasks a thread is running: waiting for one of those runtimes there would be waiting for itself.

use crate::core::Core;
use std::{
    cell::{Cell, RefCell},
    ptr,
};

thread_local! {
    /// The runtime whose task runs.
    static INSIDE: Cell<*const Core> = const { Cell::new(ptr::null()) };
    /// Others, inside a task of which that one was begun.
    static AROUND: RefCell<Vec<*const Core>> = const { RefCell::new(Vec::new()) };
}

/// Marks this thread as running a task of a runtime.
pub(crate) struct Inside {
    before: *const Core,
    /// Whether `before` is another runtime.
    nested: bool,
}

impl Inside {
    pub(crate) fn enter(core: &Core) -> Self {
        let before = INSIDE.replace(core);
        let nested = !before.is_null() && !ptr::eq(before, core);
        if nested {
            AROUND.with_borrow_mut(|around| around.push(before));
        }
        Self { before, nested }
    }

    /// Whether this thread is running a task of `core`, perhaps inside one of another runtime.
    pub(crate) fn is(core: &Core) -> bool {
        Self::is_at(core)
    }

    /// The same for a runtime that may be gone.
    pub(crate) fn is_at(core: *const Core) -> bool {
        let inside = INSIDE.get();
        ptr::eq(inside, core) || !inside.is_null() && AROUND.with_borrow(|around| around.contains(&core))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.nested {
            AROUND.with_borrow_mut(Vec::pop);
        }
        INSIDE.set(self.before);
    }
}
