//! Parts of a loop's closure that only one participant runs, or only one at a time.

use crate::held::Holding;
use parking_lot::Mutex;
use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::*},
};

/// A closure that only the first thread to arrive runs.
///
/// Other threads skip it and do not wait.
///
/// ```
/// use anabranch_par::{OnlyOnce, prelude::*};
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// let (first, greetings) = (OnlyOnce::new(), AtomicUsize::new(0));
/// (0..1000).par().for_each(|_| {
///     first.run(|| greetings.fetch_add(1, Relaxed));
/// });
/// assert_eq!(greetings.into_inner(), 1);
/// ```
#[derive(Debug, Default)]
pub struct OnlyOnce(AtomicBool);

impl OnlyOnce {
    /// No thread has arrived yet.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Calls `f` if no thread has called this before.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        // Relaxed: a thread that skips `f` does not rely on its effects.
        (!self.0.load(Relaxed) && !self.0.swap(true, Relaxed)).then(f)
    }

    /// Forgets that a thread has arrived.
    pub fn reset(&mut self) {
        *self.0.get_mut() = false;
    }
}

/// A value that one thread at a time can use: a critical section.
///
/// A thread may run a loop inside the section. Threads that wait in a loop run nothing else, so none of them can arrive here a
/// second time. A thread that enters the section while it is inside panics with a message, instead of waiting for itself.
///
/// ```
/// use anabranch_par::{Critical, prelude::*};
///
/// let found = Critical::new(Vec::new());
/// (0..100).par().for_each(|i| {
///     if i % 40 == 7 {
///         found.enter(|found| found.push(i));
///     }
/// });
/// let mut found = found.into_inner();
/// found.sort();
/// assert_eq!(found, [7, 47, 87]);
/// ```
pub struct Critical<T> {
    /// The thread inside, as the address of one of its thread-local variables; 0 if there is none.
    owner: AtomicUsize,
    value: Mutex<T>,
}

/// A number that is different for all threads that are alive, and never 0.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

impl<T> Critical<T> {
    /// Makes a critical section around `value`.
    pub const fn new(value: T) -> Self {
        Self { owner: AtomicUsize::new(0), value: Mutex::new(value) }
    }

    /// Waits until no other thread is inside, and calls `f` with the value.
    ///
    /// # Panics
    /// If the calling thread is inside already.
    #[track_caller]
    pub fn enter<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        struct Leave<'a>(&'a AtomicUsize);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.store(0, Relaxed);
            }
        }
        let me = this_thread();
        // Relaxed: only this thread writes its number, so it reads its number exactly if it is inside.
        if self.owner.load(Relaxed) == me {
            panic!("this thread is inside this critical section already, and would wait for itself");
        }
        let mut value = self.value.lock();
        self.owner.store(me, Relaxed);
        // A thread inside does not wait for a value of a bounded pool, because the threads that hold the values may wait to
        // enter.
        let _holding = Holding::begin();
        // Dropped before the lock.
        let _leave = Leave(&self.owner);
        f(&mut value)
    }

    /// The value, by exclusive reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> fmt::Debug for Critical<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Critical").finish_non_exhaustive()
    }
}
