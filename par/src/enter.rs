//! How a thread gets into a chain, for the time of a call.
//!
//! The pending halves of the thread must know which chain they were made in: another thread may steal one
//! while this thread is further inside. So every change of the chain leaves a divider in the thread's list of
//! halves, and a join need not read the chain.

use crate::{
    context::{Chain, Entry, Key, Link, Mark, Marks, is_inside, is_marked, new_keys},
    join::local,
};

impl Mark {
    /// Calls `f` with the mark set: for the calling thread, and for all work that it hands to other threads
    /// meanwhile.
    #[inline]
    pub fn enter<R>(self, f: impl FnOnce() -> R) -> R {
        let key = Key::Mark(self);
        if is_inside(key) { f() } else { inside(key, f) }
    }

    /// Whether the calling code belongs to work with this mark, or to a [callback](Marks::enter_callback).
    /// Costs one load if no mark is set.
    #[inline]
    pub fn is_set(self) -> bool {
        is_marked(self)
    }
}

impl Marks {
    /// Calls `f` with these marks set, beside those that are set for the calling thread.
    #[inline]
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        match self.keys() {
            None => f(),
            Some(keys) => also_inside(keys, f),
        }
    }

    /// Calls `f`, a callback that the program has left where these marks were set: a function that is to be
    /// called at some end, or a waker. The thread that calls it may be in the middle of any other work.
    ///
    /// Every mark counts as set in `f`: a callback must not wait for the work that the thread is in the
    /// middle of, whatever that happens to be. Work that `f` hands over without waiting for it gets these
    /// marks: see [`current_without`](Self::current_without).
    ///
    /// ```
    /// use anabranch_par::{Mark, Marks};
    ///
    /// let (task, other) = (Mark::new(), Mark::new());
    /// let left = task.enter(Marks::current);
    /// left.enter_callback(|| {
    ///     assert!(task.is_set() && other.is_set());
    ///     let marks = Marks::current_without(other);
    ///     assert!(!marks.is_empty());
    /// });
    /// ```
    pub fn enter_callback<R>(&self, f: impl FnOnce() -> R) -> R {
        inside(Key::Callback, || match self.keys() {
            None => f(),
            // Not `also_inside`: these keys must be inside the callback, also those that the chain of the
            // thread has already.
            Some(keys) => {
                let link = Link { entry: Entry::Copied(keys), outer: Chain::current() };
                set(Chain::of(&link), f)
            }
        })
    }
}

/// Calls `f` with an empty chain: for work that does not belong to the work which the calling thread is in
/// the middle of.
#[inline]
pub(crate) fn outside_of_marks<R>(f: impl FnOnce() -> R) -> R {
    if Chain::current().is_empty() { f() } else { set(Chain::NONE, f) }
}

/// Calls `f` with `key` added to the chain.
#[inline]
pub(crate) fn inside<R>(key: Key, f: impl FnOnce() -> R) -> R {
    let link = Link { entry: Entry::One(key), outer: Chain::current() };
    set(Chain::of(&link), f)
}

/// Calls `f` with these keys added to the chain. They are kept until `f` has returned.
#[cold]
fn also_inside<R>(keys: &[Key], f: impl FnOnce() -> R) -> R {
    let outer = Chain::current();
    if outer.is_empty() {
        let link = Link { entry: Entry::Copied(keys), outer };
        return set(Chain::of(&link), f);
    }
    // A chain without duplicates is as short as the number of different keys.
    let new: Vec<Key> = keys.iter().copied().filter(|&key| !is_inside(key)).collect();
    if new.is_empty() {
        return f();
    }
    let link = Link { entry: Entry::Copied(&*new), outer };
    set(Chain::of(&link), f)
}

/// Calls `f` in `chain` and not in the chain that the calling thread is in: `chain` is a continuation of that
/// one, or that one is empty.
///
/// # Safety
/// The chain must be valid until `f` has done all that it does in the chain.
#[inline]
pub(crate) unsafe fn in_chain<R>(chain: Chain, f: impl FnOnce() -> R) -> R {
    if chain.is_same(Chain::current()) { f() } else { set(chain, f) }
}

/// Calls `f` in `chain` and also in the chain that the calling thread is in.
///
/// # Safety
/// The chain must be valid until `f` has returned.
#[inline]
pub(crate) unsafe fn also_in_chain<R>(chain: Chain, f: impl FnOnce() -> R) -> R {
    let current = Chain::current();
    if chain.is_empty() || chain.is_same(current) {
        f()
    } else if current.is_empty() {
        set(chain, f)
    } else {
        // SAFETY: the caller guarantees it.
        also_inside(&unsafe { new_keys(chain) }, f)
    }
}

/// Calls `f` in `chain`, which is valid at least until `f` has done all that it does in the chain.
#[inline]
fn set<R>(chain: Chain, f: impl FnOnce() -> R) -> R {
    /// Restores the former chain.
    struct Before(Chain);
    impl Drop for Before {
        #[inline]
        fn drop(&mut self) {
            self.0.replace_current();
        }
    }
    let _before = Before(chain.replace_current());
    if local::is_in_session() { local::in_chain(chain, f) } else { f() }
}
