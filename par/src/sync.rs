//! The synchronisation types of this crate: the standard library's, or loom's when a model is checked.
//!
//! Everything that lock-free parts share between threads comes from here, so that the code that runs is the
//! code that loom checks.

#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic,
    thread::{self, Thread},
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic,
    thread::{self, Thread},
};

/// An `UnsafeCell` with loom's interface.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// A moment between two tries of an operation that other threads have got in the way of. (How a thread waits
/// for others: [`Patience`](crate::patience::Patience).) Under loom it yields, so that a model ends.
#[inline]
pub(crate) fn pause() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Locks and condition variables, with one interface for both.
pub(crate) mod lock {
    #[cfg(loom)]
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    #[cfg(not(loom))]
    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};

    /// Locks.
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        #[cfg(not(loom))]
        return mutex.lock();
        #[cfg(loom)]
        return mutex.lock().expect("nothing panics under this lock");
    }

    /// Sleeps until a notification, or spuriously.
    #[cfg_attr(loom, expect(unused_mut))]
    pub(crate) fn wait<'m, T>(condvar: &Condvar, mut guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        #[cfg(not(loom))]
        {
            condvar.wait(&mut guard);
            guard
        }
        #[cfg(loom)]
        return condvar.wait(guard).expect("nothing panics under this lock");
    }
}
