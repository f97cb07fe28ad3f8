//! The copy of its marks that a job keeps.

use super::{
    chain::{Chain, Key, copy_current},
    mark::Mark,
};

/// A copy of the marks that were set for a thread, for work that may outlive the call which hands it over.
///
/// Jobs of pools and lanes keep such a copy by themselves. A program needs one only if it hands work to
/// threads of its own.
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
        if Chain::current().is_empty() {
            return Self(None);
        }
        Self::copy(true, |key| matches!(key, Key::Mark(_) | Key::Callback))
    }

    /// The marks that are set for the calling thread, without `mark`. In a [callback](Self::enter_callback),
    /// the marks of the callback: for work that the callback begins and does not wait for.
    #[inline]
    pub fn current_without(mark: Mark) -> Self {
        if Chain::current().is_empty() {
            return Self(None);
        }
        Self::copy(true, |key| matches!(key, Key::Mark(other) if other != mark))
    }

    /// The keys in the chain of the calling thread, for a job in a scope whose opener is in the chain
    /// `outer`: none if both are the same chain.
    #[inline]
    pub(crate) fn beyond(outer: Chain) -> Self {
        let current = Chain::current();
        if current.is_empty() || current.is_same(outer) { Self(None) } else { Self::copy(false, |_| true) }
    }

    fn copy(of_callback: bool, is_copied: impl Fn(Key) -> bool) -> Self {
        let keys = copy_current(of_callback, is_copied);
        Self((!keys.is_empty()).then(|| Box::new(Keys(keys.into()))))
    }

    /// The copied keys.
    #[inline]
    pub(crate) fn keys(&self) -> Option<&[Key]> {
        self.0.as_ref().map(|keys| &*keys.0)
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether each mark that is set for the calling thread is among these, or is `mark`: then work with
    /// these marks, and with `mark`, is marked in the same way on this thread as on any other.
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
