//! How the participants of a loop get their scratch: made for one loop, or kept from loop to loop.

use super::WorkerLocal;
use crate::current::participant;
use parking_lot::Mutex;
use std::{fmt, thread};

/// Gives scratch to participants. Only this crate implements it.
pub trait Provider: Sync {
    /// The type of the scratch.
    type Value;
    /// The scratch while a participant has it.
    #[doc(hidden)]
    type Lent<'s>
    where
        Self: 's;

    /// Gives scratch to the calling participant.
    #[doc(hidden)]
    fn lend(&self) -> Self::Lent<'_>;

    /// The scratch itself.
    #[doc(hidden)]
    fn value<'l>(lent: &'l mut Self::Lent<'_>) -> &'l mut Self::Value;

    /// Whether `lend` has made it.
    #[doc(hidden)]
    fn is_fresh(lent: &Self::Lent<'_>) -> bool;
}

/// Makes scratch for each participant of one loop: see [`Loop::scratch`](crate::Loop::scratch).
#[derive(Clone, Copy, Debug)]
pub struct Fresh<I>(pub(crate) I);

impl<T, I: Fn() -> T + Sync> Provider for Fresh<I> {
    type Value = T;
    type Lent<'s>
        = T
    where
        Self: 's;

    #[inline]
    fn lend(&self) -> T {
        (self.0)()
    }

    #[inline]
    fn value(lent: &mut T) -> &mut T {
        lent
    }

    fn is_fresh(_: &T) -> bool {
        true
    }
}

/// Lends the values of a [`WorkerLocal`]: see [`Loop::scratch_in`](crate::Loop::scratch_in).
pub struct Kept<'w, T, I> {
    values: Mutex<&'w mut Vec<Option<T>>>,
    init: I,
}

impl<'w, T, I> Kept<'w, T, I> {
    pub(crate) fn new(local: &'w mut WorkerLocal<T>, init: I) -> Self {
        Self { values: Mutex::new(&mut local.values), init }
    }
}

impl<T, I> fmt::Debug for Kept<'_, T, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl<'w, T: Send, I: Fn() -> T + Sync> Provider for Kept<'w, T, I> {
    type Value = T;
    type Lent<'s>
        = KeptValue<'s, 'w, T>
    where
        Self: 's;

    fn lend(&self) -> KeptValue<'_, 'w, T> {
        let index = participant().map_or(0, |p| p.index());
        let found = self.values.lock().get_mut(index).and_then(Option::take);
        let fresh = found.is_none();
        let value = Some(found.unwrap_or_else(&self.init));
        KeptValue { value, fresh, panicking: thread::panicking(), index, values: &self.values }
    }

    #[inline]
    fn value<'l>(lent: &'l mut KeptValue<'_, 'w, T>) -> &'l mut T {
        lent.value.as_mut().expect("only `drop` takes the value")
    }

    fn is_fresh(lent: &KeptValue<'_, 'w, T>) -> bool {
        lent.fresh
    }
}

/// A value of a [`WorkerLocal`] while a participant works with it. Dropping it puts it back.
pub struct KeptValue<'s, 'w, T> {
    value: Option<T>,
    fresh: bool,
    /// Whether the thread was panicking already when it took the value: a destructor may run a loop.
    panicking: bool,
    index: usize,
    values: &'s Mutex<&'w mut Vec<Option<T>>>,
}

impl<T> Drop for KeptValue<'_, '_, T> {
    fn drop(&mut self) {
        // A value that a panic has unwound through may be half changed.
        let Some(value) = self.value.take().filter(|_| self.panicking || !thread::panicking()) else {
            return;
        };
        let mut values = self.values.lock();
        if values.len() <= self.index {
            values.resize_with(self.index + 1, || None);
        }
        values[self.index] = Some(value);
    }
}
