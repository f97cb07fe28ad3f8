//! The chain of critical sections and marks in the context of a thread.
//!
//! # Safety
//! A link lives in the stack frame of the thread that entered what it stands for, and is never changed. A
//! chain is a pointer to the innermost link. It is valid as long as that frame, and all frames of the links
//! around it. A thread is in a chain ([`CHAIN`]) only while these frames exist:
//!
//! - its own: [`enter`](crate::enter) calls a closure, and leaves the chain before the frame ends;
//! - that of a region, a half or a scope: the opener or owner waits until the thread has left, and its frame,
//!   which is inside of all these links, exists until then.
//!
//! A job that may outlive the thread that hands it over copies the keys: see [`Marks`](super::Marks).

use super::mark::Mark;
use std::{cell::Cell, ptr};

/// A critical section or mark in the context of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A critical section, by its number.
    Section(u64),
    Mark(Mark),
    /// A [callback](super::Marks::enter_callback): as if every mark were set.
    Callback,
}

/// One or several keys in the context of a thread.
pub(crate) struct Link {
    pub(crate) entry: Entry,
    pub(crate) outer: Chain,
}

pub(crate) enum Entry {
    One(Key),
    /// Keys in the copy of a job that the thread runs. The job is kept until it has run.
    Copied(*const [Key]),
}

/// A pointer to the innermost link of a chain; null if the chain is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain(*const Link);

// SAFETY: links are only read, by whichever threads are in the chain.
unsafe impl Send for Chain {}
// SAFETY: as above.
unsafe impl Sync for Chain {}

thread_local! {
    /// The chain that the calling thread is in. Without a destructor, so that it may be used while the thread
    /// ends.
    static CHAIN: Cell<Chain> = const { Cell::new(Chain::NONE) };
}

impl Chain {
    pub(crate) const NONE: Self = Self(ptr::null());

    /// The chain that the calling thread is in.
    #[inline]
    pub(crate) fn current() -> Self {
        CHAIN.get()
    }

    /// The chain that begins with `link`. It is valid as long as the link and the links around it.
    #[inline]
    pub(crate) fn of(link: &Link) -> Self {
        Self(link)
    }

    /// Makes this the calling thread's chain. Returns the former one.
    #[inline]
    pub(crate) fn replace_current(self) -> Self {
        CHAIN.replace(self)
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_null()
    }

    #[inline]
    pub(crate) fn is_same(self, other: Self) -> bool {
        ptr::eq(self.0, other.0)
    }

    /// Calls `f` with each key, the innermost first, until it returns `true`; returns whether it did.
    ///
    /// # Safety
    /// The chain must be valid.
    pub(super) unsafe fn any(self, mut f: impl FnMut(Key) -> bool) -> bool {
        let mut chain = self;
        // SAFETY: the caller guarantees it, and a link is not alive longer than the links around it.
        while let Some(link) = unsafe { chain.0.as_ref() } {
            let found = match link.entry {
                Entry::One(key) => f(key),
                // SAFETY: the frame of the link keeps the job, and so the copy.
                Entry::Copied(keys) => unsafe { &*keys }.iter().any(|&key| f(key)),
            };
            if found {
                return true;
            }
            chain = link.outer;
        }
        false
    }
}

/// Whether the chain of the calling thread has `key`. In a callback, the marks that are set around it do not
/// count.
#[inline]
pub(crate) fn is_inside(key: Key) -> bool {
    let chain = Chain::current();
    !chain.is_empty() && is_in_current(key)
}

#[cold]
#[inline(never)]
fn is_in_current(key: Key) -> bool {
    let mut is_found = false;
    let look = |other| {
        is_found = other == key;
        is_found || other == Key::Callback && matches!(key, Key::Mark(_))
    };
    // SAFETY: a thread is in a chain only while the chain is valid.
    unsafe { Chain::current().any(look) };
    is_found
}

/// Whether the calling thread counts as inside work with this mark.
#[inline]
pub(crate) fn is_marked(mark: Mark) -> bool {
    let chain = Chain::current();
    !chain.is_empty() && is_marked_in_current(mark)
}

#[cold]
#[inline(never)]
fn is_marked_in_current(mark: Mark) -> bool {
    // SAFETY: as in `is_in_current`.
    unsafe { Chain::current().any(|key| key == Key::Mark(mark) || key == Key::Callback) }
}

/// The keys of a valid chain that the chain of the calling thread does not have.
///
/// # Safety
/// The chain must be valid.
#[cold]
pub(crate) unsafe fn new_keys(chain: Chain) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut collect = |key| {
        if !is_inside(key) && !keys.contains(&key) {
            keys.push(key);
        }
        false
    };
    // SAFETY: the caller guarantees it.
    unsafe { chain.any(&mut collect) };
    keys
}

/// The keys of the calling thread's chain that `is_copied`, each once, the innermost first. If `of_callback`,
/// only as far as the innermost callback, which is the last.
#[cold]
pub(super) fn copy_current(of_callback: bool, is_copied: impl Fn(Key) -> bool) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut collect = |key| {
        if is_copied(key) && !keys.contains(&key) {
            keys.push(key);
        }
        of_callback && key == Key::Callback
    };
    // SAFETY: as in `is_in_current`.
    unsafe { Chain::current().any(&mut collect) };
    keys
}
