//! Marks: what a program is inside of, wherever its work goes.

use super::{
    chain::{Chain, Key, copy_current, is_inside},
    enter::{also_inside, inside, set},
};
use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

/// Marks the work of a program, so that code finds out whether it belongs to that work.
///
/// A mark goes with the work, through loops, joins, scopes, jobs, teams, streams and lanes of any pool, however deep they are
/// nested. A runtime of tasks marks its tasks like this: to wait for all tasks inside one of them is then an error on whatever
/// thread, and not a wait without end. A thread that the program starts by itself has no mark.
///
/// ```
/// use anabranch_par::{Mark, prelude::*};
///
/// let task = Mark::new();
/// task.enter(|| (0..100).par().for_each(|_| assert!(task.is_set())));
/// let job = task.enter(|| spawn(move || task.is_set()));
/// assert!(!task.is_set());
/// assert!(job.join()?);
/// # Ok::<(), anabranch_par::Panic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(NonZeroU32);

impl Mark {
    /// A mark that is different from all others. (After four thousand million marks the first ones come again.)
    #[expect(clippy::new_without_default, reason = "a mark is an identity, not a value")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        loop {
            if let Some(number) = NonZeroU32::new(NEXT.fetch_add(1, Relaxed)) {
                return Self(number);
            }
        }
    }

    /// Calls `f` with the mark set: for the calling thread, and for all work that it hands to other threads meanwhile.
    #[inline]
    pub fn enter<R>(self, f: impl FnOnce() -> R) -> R {
        if self.is_set() { f() } else { inside(Key::Mark(self), f) }
    }

    /// Whether the calling code belongs to work with this mark. Costs one load if no mark is set.
    #[inline]
    pub fn is_set(self) -> bool {
        is_inside(Key::Mark(self))
    }
}

/// A copy of the marks that were set for a thread, for work that may outlive the call which hands it over.
///
/// Jobs of pools and lanes keep such a copy by themselves. A program needs one only if it hands work to threads of its own.
///
/// ```
/// use anabranch_par::{Mark, Marks};
///
/// let task = Mark::new();
/// let marks = task.enter(Marks::current);
/// std::thread::spawn(move || marks.enter(|| assert!(task.is_set()))).join().unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Marks(Option<Box<Keys>>);

#[derive(Debug)]
struct Keys(Box<[Key]>);

impl Marks {
    /// The marks that are set for the calling thread. Allocates nothing if there is none.
    #[inline]
    pub fn current() -> Self {
        if Chain::current().is_empty() { Self(None) } else { Self::copy(|key| matches!(key, Key::Mark(_))) }
    }

    /// The marks that are set for the calling thread, without `mark`.
    #[inline]
    pub fn current_without(mark: Mark) -> Self {
        if Chain::current().is_empty() {
            return Self(None);
        }
        Self::copy(|key| matches!(key, Key::Mark(other) if other != mark))
    }

    /// Everything that the calling thread is inside of, for a job in a scope whose opener is in the chain `outer`: nothing if
    /// that is the same.
    #[inline]
    pub(crate) fn beyond(outer: Chain) -> Self {
        let current = Chain::current();
        if current.is_empty() || current.is_same(outer) { Self(None) } else { Self::copy(|_| true) }
    }

    fn copy(is_copied: impl Fn(Key) -> bool) -> Self {
        let keys = copy_current(is_copied);
        Self((!keys.is_empty()).then(|| Box::new(Keys(keys.into()))))
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Calls `f` with these marks set, beside those that are set for the calling thread.
    #[inline]
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        match &self.0 {
            None => f(),
            Some(keys) => also_inside(&keys.0, f),
        }
    }

    /// Whether each mark that is set for the calling thread is among these, or is `mark`: then work with these marks, and with
    /// `mark`, is marked in the same way on this thread as on any other.
    #[inline]
    pub fn contain_current_except(&self, mark: Mark) -> bool {
        Chain::current().is_empty() || self.contains_all(Self::current_without(mark))
    }

    #[cold]
    fn contains_all(&self, others: Self) -> bool {
        let keys = |marks: &Self| marks.0.as_ref().map_or_else(Vec::new, |keys| keys.0.to_vec());
        let mine = keys(self);
        keys(&others).iter().all(|key| mine.contains(key))
    }
}

/// Calls `f` with no mark set: for work that is handed over from inside other work and does not belong to it.
#[inline]
pub fn outside_of_marks<R>(f: impl FnOnce() -> R) -> R {
    if Chain::current().is_empty() { f() } else { set(Chain::NONE, f) }
}
