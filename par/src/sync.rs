//! The synchronisation types of this crate: the standard library's, or loom's when a model is checked.
//!
//! Everything that [`slot`](crate::region::slot), [`sleep`](crate::thread_pool::sleep) and a job's cell share between threads
//! comes from here, so that the code that runs is the code that is modelled.

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

/// One turn of a waiting loop. Under loom every turn gives way, so that a model ends.
#[inline]
pub(crate) fn pause() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// A value alone on its cache lines (two of them: adjacent lines are fetched in pairs), against false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}
