//! Parts of a loop's closure that not every participant may do, or not two at a time.

use crate::current::Holding;
use parking_lot::Mutex;
use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::*},
};

/// Something that is done by the first who comes to it, and by nobody else.
///
/// The others do not wait for it.
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
    /// Not done yet.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Calls `f` if nobody has come here before.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        // Relaxed: nobody learns from this what `f` has done.
        (!self.0.load(Relaxed) && !self.0.swap(true, Relaxed)).then(f)
    }

    /// As if nobody had come.
    pub fn reset(&mut self) {
        *self.0.get_mut() = false;
    }
}

/// A value that one participant at a time may work with.
///
/// It may be held around an inner loop: threads that wait in a loop do nothing else, so none of them can come back here. A
/// thread that enters while it is inside gets a panic that says so, instead of waiting for itself.
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
    /// The thread that is inside, by the address of one of its thread-locals; 0 for none.
    owner: AtomicUsize,
    value: Mutex<T>,
}

/// Different for threads that are alive at the same time, and never 0.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

impl<T> Critical<T> {
    /// Around `value`.
    pub const fn new(value: T) -> Self {
        Self { owner: AtomicUsize::new(0), value: Mutex::new(value) }
    }

    /// Calls `f` with the value when nobody else is inside.
    ///
    /// # Panics
    /// If the calling thread is inside.
    #[track_caller]
    pub fn enter<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        struct Leave<'a>(&'a AtomicUsize);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.store(0, Relaxed);
            }
        }
        let me = this_thread();
        // Relaxed: only this thread writes its own number, so it sees it if and only if it is inside.
        if self.owner.load(Relaxed) == me {
            panic!("this thread is inside this critical section already, and would wait for itself");
        }
        let mut value = self.value.lock();
        self.owner.store(me, Relaxed);
        // Who is in here does not wait for a value of a bounded pool: those who hold the values may wait to come in.
        let _holding = Holding::begin();
        // Dropped before the lock is.
        let _leave = Leave(&self.owner);
        f(&mut value)
    }

    /// The value, for its only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> fmt::Debug for Critical<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Critical").finish_non_exhaustive()
    }
}
