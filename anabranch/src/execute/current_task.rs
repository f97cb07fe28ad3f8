//! The runtimes whose tasks the current thread is running. Waiting for one of them there would be waiting for itself.

use std::cell::{Cell, RefCell};

/// Identifies a runtime by its address, also after the runtime is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeId(usize);

impl RuntimeId {
    /// Not the id of any runtime.
    const NONE: Self = Self(0);

    pub(super) fn of<T>(runtime: *const T) -> Self {
        Self(runtime.addr())
    }
}

thread_local! {
    /// The runtime of the innermost task that this thread runs.
    static INNERMOST: Cell<RuntimeId> = const { Cell::new(RuntimeId::NONE) };
    /// Other runtimes, of the tasks around that one.
    static OUTER: RefCell<Vec<RuntimeId>> = const { RefCell::new(Vec::new()) };
}

/// Marks this thread as running a task of a runtime, until it is dropped.
pub(super) struct CurrentTask {
    before: RuntimeId,
    /// Whether `before` is another runtime.
    nested: bool,
}

impl CurrentTask {
    pub(super) fn enter(runtime: RuntimeId) -> Self {
        let before = INNERMOST.replace(runtime);
        let nested = before != RuntimeId::NONE && before != runtime;
        if nested {
            OUTER.with_borrow_mut(|outer| outer.push(before));
        }
        Self { before, nested }
    }

    /// Whether this thread is running a task of `runtime`, perhaps around a task of another runtime.
    pub(super) fn is_of(runtime: RuntimeId) -> bool {
        let innermost = INNERMOST.get();
        innermost == runtime
            || innermost != RuntimeId::NONE && OUTER.with_borrow(|outer| outer.contains(&runtime))
    }
}

impl Drop for CurrentTask {
    fn drop(&mut self) {
        if self.nested {
            OUTER.with_borrow_mut(Vec::pop);
        }
        INNERMOST.set(self.before);
    }
}
