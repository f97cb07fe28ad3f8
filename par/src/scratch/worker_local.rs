//! Values that participants keep from loop to loop.

use std::fmt;

/// A value for each participant that is kept from loop to loop: scratch that is made once, or partial results
/// that the program reads when the loops are done.
///
/// A participant gets the value that the participant with the same [index](crate::Participant::index) had in
/// the loop before. If a loop's closure panics, the value that it was working on is dropped, because it may
/// be half changed.
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
    pub(super) values: Vec<Option<T>>,
}

impl<T> WorkerLocal<T> {
    /// Has no values yet: participants make them when they need them.
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

    /// The values. They may differ from run to run, because different participants may do different items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }

    /// The values, by exclusive reference.
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
