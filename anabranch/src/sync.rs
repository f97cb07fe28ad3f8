//! The synchronisation types of nodes, latches and events: those that programs run with, or loom's when a
//! model is checked.
//!
//! The code that runs is the code that loom checks: see `execute/models.rs`.

#[cfg(not(loom))]
pub(crate) use {
    parking_lot::Mutex,
    std::{
        sync::atomic,
        thread::{self, Thread},
    },
};

#[cfg(loom)]
pub(crate) use {
    self::model::{Mutex, thread},
    loom::{sync::atomic, thread::Thread},
};

/// Loom's types, with the interfaces of the types that they stand for.
#[cfg(loom)]
mod model {
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("nothing panics under this lock")
        }
    }

    pub(crate) mod thread {
        pub(crate) use loom::thread::current;

        /// A model has no time, so a thread that nothing wakes is a deadlock, which loom reports.
        pub(crate) fn park_timeout(_: std::time::Duration) {
            loom::thread::park();
        }
    }
}
