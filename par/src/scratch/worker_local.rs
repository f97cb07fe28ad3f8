//! Scratch that participants of a loop own: made for the time of a loop, or kept from loop to loop.

use crate::current::participant;
use parking_lot::Mutex;
use std::{fmt, thread};

/// Where participants get their scratch from.
pub trait Provide: Sync {
    /// The scratch.
    type Value;
    /// What is held meanwhile.
    #[doc(hidden)]
    type Lent<'s>
    where
        Self: 's;

    /// Scratch for the calling participant.
    #[doc(hidden)]
    fn lend(&self) -> Self::Lent<'_>;

    /// The scratch itself.
    #[doc(hidden)]
    fn value<'l>(lent: &'l mut Self::Lent<'_>) -> &'l mut Self::Value;

    /// Whether it was made just now.
    #[doc(hidden)]
    fn is_fresh(lent: &Self::Lent<'_>) -> bool;
}

/// Makes scratch for each participant of one loop: see [`Loop::scratch`](crate::Loop::scratch).
#[derive(Clone, Copy, Debug)]
pub struct Fresh<I>(pub(crate) I);

impl<T, I: Fn() -> T + Sync> Provide for Fresh<I> {
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

/// A value for each participant that is kept from loop to loop: scratch that is made once, or partial results that are
/// looked at when the loops are done.
///
/// A participant finds the value again that the one with its [index](crate::Participant::index) had in the loop before.
/// Where a loop's closure panics, the value that it was working on is dropped, because it may be half changed.
///
/// ```
/// use anabranch_par::{prelude::*, scratch::WorkerLocal};
///
/// let mut counts = WorkerLocal::new();
/// for _ in 0..3 {
///     (0..100).par().scratch_in(&mut counts, || 0).for_each(|count, _| *count += 1);
/// }
/// assert_eq!(counts.iter().sum::<i32>(), 300);
/// assert!(counts.len() <= ThreadPool::global().threads());
/// ```
#[derive(Clone)]
pub struct WorkerLocal<T> {
    /// By the participant's index.
    values: Vec<Option<T>>,
}

impl<T> WorkerLocal<T> {
    /// No values yet: they are made when participants need them.
    pub const fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// The number of values: at most the number of threads that have ever taken part at the same time.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values. Which participant did which items varies from run to run, and so do they.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }

    /// The values, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().flatten()
    }

    /// Takes all values out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.values.drain(..).flatten()
    }
}

impl<T> Default for WorkerLocal<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> IntoIterator for WorkerLocal<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Option<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter().flatten()
    }
}

impl<T: fmt::Debug> fmt::Debug for WorkerLocal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
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

impl<'w, T: Send, I: Fn() -> T + Sync> Provide for Kept<'w, T, I> {
    type Value = T;
    type Lent<'s>
        = Lent<'s, 'w, T>
    where
        Self: 's;

    fn lend(&self) -> Lent<'_, 'w, T> {
        let index = participant().map_or(0, |p| p.index());
        let found = self.values.lock().get_mut(index).and_then(Option::take);
        let fresh = found.is_none();
        Lent { value: Some(found.unwrap_or_else(&self.init)), fresh, index, values: &self.values }
    }

    #[inline]
    fn value<'l>(lent: &'l mut Lent<'_, 'w, T>) -> &'l mut T {
        lent.value.as_mut().expect("there until it is given back")
    }

    fn is_fresh(lent: &Lent<'_, 'w, T>) -> bool {
        lent.fresh
    }
}

/// A value that a participant works with.
pub struct Lent<'s, 'w, T> {
    value: Option<T>,
    fresh: bool,
    index: usize,
    values: &'s Mutex<&'w mut Vec<Option<T>>>,
}

impl<T> Drop for Lent<'_, '_, T> {
    fn drop(&mut self) {
        // What a panic went through may be half changed.
        let Some(value) = self.value.take().filter(|_| !thread::panicking()) else { return };
        let mut values = self.values.lock();
        if values.len() <= self.index {
            values.resize_with(self.index + 1, || None);
        }
        values[self.index] = Some(value);
    }
}
