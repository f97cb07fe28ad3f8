//! How many values of bounded pools the calling thread holds.
//!
//! A thread that holds one must not wait for another: two threads could wait for each other. A value that is
//! held by a thread counts for every thread whose work it waits for, too. The count is in a cell without a
//! destructor, so it may be used at any time, also while the thread ends.

use std::{cell::Cell, marker::PhantomData};

thread_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// A number of held values. A critical section that the thread has entered counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeldValues(u32);

impl HeldValues {
    /// For work that no thread waits for.
    pub(crate) const NONE: Self = Self(0);
}

/// The values that count as held by the calling thread.
#[inline]
pub(crate) fn held_values() -> HeldValues {
    HeldValues(HELD.get())
}

/// Whether a value counts as held by the calling thread.
pub(crate) fn is_holding() -> bool {
    held_values().0 > 0
}

/// Counts one more value as held by the calling thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct Holding(PhantomData<*const ()>);

impl Holding {
    pub(crate) fn begin() -> Self {
        HELD.set(HELD.get() + 1);
        Self(PhantomData)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HELD.set(HELD.get().saturating_sub(1));
    }
}

/// The calling thread begins work for a thread that holds `values`: they count as its own until the guard is
/// dropped.
#[inline]
pub(crate) fn hold_for(values: HeldValues) -> HoldingFor {
    let before = HELD.get();
    HELD.set(before.max(values.0));
    HoldingFor { before, _of_this_thread: PhantomData }
}

/// Restores the former count when it is dropped.
#[must_use]
#[derive(Debug)]
pub(crate) struct HoldingFor {
    before: u32,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for HoldingFor {
    #[inline]
    fn drop(&mut self) {
        HELD.set(self.before);
    }
}
