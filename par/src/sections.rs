//! Parts of a loop's closure that only one participant runs, or only one at a time.

use crate::{
    context::{Holding, Key, is_inside},
    enter::inside,
};
use parking_lot::Mutex;
use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::*},
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
/// A thread may run a loop inside the section. All work that is begun inside counts as inside, on whatever
/// thread: items of loops, closures of joins, spawned jobs. The thread that is inside may wait for such work,
/// so if it enters the section again it panics with a message, instead of waiting for itself. (Tasks of a
/// runtime, and jobs that are [submitted](crate::ThreadPool::submit), do not count as inside: the section
/// must not wait for them.)
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
    /// The number of this section, which no other has; 0 until a thread first enters it.
    number: AtomicU64,
    value: Mutex<T>,
}

impl<T> Critical<T> {
    /// Makes a critical section around `value`.
    pub const fn new(value: T) -> Self {
        Self { number: AtomicU64::new(0), value: Mutex::new(value) }
    }

    /// Waits until no other thread is inside, and calls `f` with the value.
    ///
    /// # Panics
    /// If the calling thread is inside already, or runs work that was begun inside.
    #[track_caller]
    pub fn enter<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let this = Key::Section(self.number());
        if is_inside(this) {
            panic!(
                "this critical section was entered from inside itself, and would wait for itself: enter it once, or begin the \
                 work that enters it outside"
            );
        }
        let mut value = self.value.lock();
        // A thread inside does not wait for a value of a bounded pool, because the threads that hold the
        // values may wait to enter.
        let _holding = Holding::begin();
        inside(this, || f(&mut value))
    }

    fn number(&self) -> u64 {
        // Relaxed: the number says nothing about anything else.
        match self.number.load(Relaxed) {
            0 => self.draw_number(),
            number => number,
        }
    }

    #[cold]
    fn draw_number(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        match self.number.compare_exchange(0, number, Relaxed, Relaxed) {
            Ok(_) => number,
            Err(drawn) => drawn,
        }
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
