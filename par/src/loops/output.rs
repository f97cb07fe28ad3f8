//! Memory that participants fill with results, each for its own items.

use crate::panic::discard;
use parking_lot::Mutex;
use std::{
    marker::PhantomData,
    mem::{needs_drop, take},
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Memory for `len` values, some of which may be written already.
pub(super) struct Output<'o, T> {
    start: *mut T,
    len: usize,
    /// The ranges that are written, of types that need to be dropped.
    written: Mutex<Vec<Range<usize>>>,
    _values: PhantomData<(&'o mut [T], T)>,
}

// SAFETY: through a shared reference values can only be written, and each of them by one thread.
unsafe impl<T: Send> Sync for Output<'_, T> {}

impl<'o, T> Output<'o, T> {
    /// Reserves memory for `len` more values behind those of `vec`. The caller sets the new length of `vec`
    /// after [`finish`](Self::finish).
    pub(super) fn behind(vec: &'o mut Vec<T>, len: usize) -> Self {
        vec.reserve_exact(len);
        let spare = vec.spare_capacity_mut();
        debug_assert!(spare.len() >= len);
        Self { start: spare.as_mut_ptr().cast(), len, written: Mutex::default(), _values: PhantomData }
    }

    /// A writer for the values in `range`.
    ///
    /// # Safety
    /// The ranges of all writers are disjoint.
    pub(super) unsafe fn writer(&self, range: Range<usize>) -> Writer<'_, 'o, T> {
        assert!(range.start <= range.end && range.end <= self.len);
        Writer { output: self, next: range.start, range }
    }

    /// Leaves the values to their owner: all of them are written.
    pub(super) fn finish(mut self) {
        self.written.get_mut().clear();
    }
}

impl<T> Drop for Output<'_, T> {
    fn drop(&mut self) {
        for range in take(self.written.get_mut()) {
            for i in range {
                // SAFETY: this value was written, and it has no other owner.
                let value = || unsafe { self.start.add(i).drop_in_place() };
                // A destructor is the program's code and may panic. The caller gets the failure that came
                // first.
                let _ = catch_unwind(AssertUnwindSafe(value)).map_err(discard);
            }
        }
    }
}

/// Writes consecutive values of an [`Output`].
pub(super) struct Writer<'w, 'o, T> {
    output: &'w Output<'o, T>,
    range: Range<usize>,
    next: usize,
}

impl<T> Writer<'_, '_, T> {
    /// Writes the next value.
    ///
    /// # Panics
    /// If the range is full.
    #[inline]
    pub(super) fn push(&mut self, value: T) {
        assert!(self.next < self.range.end);
        // SAFETY: the place is inside the output, and no other writer has it.
        unsafe { self.output.start.add(self.next).write(value) };
        self.next += 1;
    }
}

impl<T> Drop for Writer<'_, '_, T> {
    fn drop(&mut self) {
        if needs_drop::<T>() && self.next > self.range.start {
            self.output.written.lock().push(self.range.start..self.next);
        }
    }
}
