//! Host objects: state that the program owns and the runtime guards.

use crate::{core::Core, error::Error, lead::Padded};
use anabranch_graph::ObjectId;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::{
    cell::UnsafeCell,
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, OnceLock, Weak},
};

/// A handle to a value that only tasks can reach: a file, a solver, a counter.
///
/// A task declares its effect on the object with an order, and between two tasks the stricter order decides:
///
/// | order | the task gets | against other tasks with an effect on the same object |
/// |---|---|---|
/// | [`sequential()`](crate::sequential) | `&mut T` | in the order of submission |
/// | [`exclusive()`](crate::exclusive) | `&mut T` | in any order, one at a time |
/// | [`relaxed()`](crate::relaxed) | `&T` | in any order, at the same time |
///
/// The value is dropped when the last handle is gone and the last task that uses it has ended;
/// [`drain`](crate::Runtime::drain) moves it out instead.
///
/// ```
/// use anabranch::prelude::*;
///
/// let rt = Runtime::new()?;
/// let log = rt.host_object(Vec::new());
/// for i in 0..3 {
///     rt.task("note").once().effect(&log, sequential()).host(move |(log,)| log.push(i))?;
/// }
/// assert_eq!(rt.drain(log.capture())?, [0, 1, 2]);
/// # Ok::<(), anabranch::Error>(())
/// ```
pub struct HostObject<T> {
    pub(crate) inner: Arc<Inner<T>>,
}

impl<T> Clone for HostObject<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

pub(crate) struct Inner<T> {
    pub(crate) id: ObjectId,
    /// The how manieth of the runtime's buffers and objects it is.
    number: u64,
    pub(crate) core: Weak<Core>,
    name: OnceLock<String>,
    /// Away from the reference counts, which submitters change while tasks run.
    guarded: Padded<Guarded<T>>,
}

struct Guarded<T> {
    /// The order of the tasks sees to it that this is free whenever it is taken.
    lock: RwLock<()>,
    /// `None` after it was moved out.
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is reached under `lock` only: by one thread at a time, for which `T: Send` suffices, or by several
// that share it, which `Inner::share` offers where `T: Sync`.
unsafe impl<T: Send> Sync for Inner<T> {}

/// The value, for a task that nobody else shares it with.
pub struct Unique<'a, T> {
    value: &'a mut Option<T>,
    object: &'a Inner<T>,
    _lock: RwLockWriteGuard<'a, ()>,
}

impl<T> Unique<'_, T> {
    /// The error of whoever finds nothing here.
    pub(crate) fn moved_out(&self) -> Error {
        Error::MovedOut { what: self.object.label() }
    }
}

impl<T> Deref for Unique<'_, T> {
    type Target = Option<T>;
    fn deref(&self) -> &Option<T> {
        self.value
    }
}

impl<T> DerefMut for Unique<'_, T> {
    fn deref_mut(&mut self) -> &mut Option<T> {
        self.value
    }
}

/// The value, for a task that may share it with others.
pub struct Shared<'a, T> {
    value: &'a Option<T>,
    _lock: RwLockReadGuard<'a, ()>,
}

impl<T> Deref for Shared<'_, T> {
    type Target = Option<T>;
    fn deref(&self) -> &Option<T> {
        self.value
    }
}

impl<T: Send> Inner<T> {
    /// The value, for the task whose turn it is.
    pub(crate) fn lock(&self) -> Unique<'_, T> {
        // A task that panicked may have left the value half changed; those that depend on it are skipped, and what
        // the program does with the value afterwards is its decision.
        debug_assert!(!self.guarded.0.lock.is_locked(), "{} is used by two tasks at a time", self.label());
        let lock = self.guarded.0.lock.write();
        // SAFETY: the write lock is held as long as the reference lives.
        Unique { value: unsafe { &mut *self.guarded.0.value.get() }, object: self, _lock: lock }
    }

    /// The value, for one of the tasks whose turn it is.
    pub(crate) fn share(&self) -> Shared<'_, T>
    where
        T: Sync,
    {
        debug_assert!(
            !self.guarded.0.lock.is_locked_exclusive(),
            "{} is used by two tasks at a time",
            self.label()
        );
        let lock = self.guarded.0.lock.read();
        // SAFETY: a read lock is held as long as the reference lives, and `T` may be shared.
        Shared { value: unsafe { &*self.guarded.0.value.get() }, _lock: lock }
    }
}

impl<T> Inner<T> {
    /// The object as error messages call it.
    pub(crate) fn label(&self) -> String {
        match self.name.get() {
            Some(name) => format!("host object \"{name}\""),
            None => format!("host object {} ({})", self.number, std::any::type_name::<T>()),
        }
    }
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.remove_object(self.id);
        }
    }
}

impl<T: Send + 'static> HostObject<T> {
    pub(crate) fn new(id: ObjectId, number: u64, value: T, core: &Arc<Core>) -> Self {
        let inner = Inner {
            id,
            number,
            core: Arc::downgrade(core),
            name: OnceLock::new(),
            guarded: Padded(Guarded { lock: RwLock::new(()), value: UnsafeCell::new(Some(value)) }),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Gives the object a name for error messages and printed graphs; the first one stays.
    pub fn named(self, name: impl fmt::Display) -> Self {
        // A second name would contradict messages that were made with the first.
        let _ = self.inner.name.set(name.to_string());
        self
    }

    /// The value after all tasks submitted so far (itself, or at a barrier a clone of it), for [`drain`](crate::Runtime::drain) and [`barrier_with`](crate::Runtime::barrier_with).
    pub fn capture(&self) -> Taken<T> {
        Taken { object: self.clone() }
    }

    /// Takes the value back, if no task and no other handle has it any more: to save what can be saved when `drain`
    /// has reported an error.
    ///
    /// # Errors
    /// The handle, where the value is in use or was moved out already.
    pub fn into_inner(self) -> Result<T, Self> {
        if Arc::strong_count(&self.inner) > 1 {
            return Err(self);
        }
        let value = self.inner.lock().take();
        value.ok_or(self)
    }
}

impl<T> fmt::Debug for HostObject<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.label())
    }
}

/// A host object that is to be moved out.
#[derive(Debug)]
pub struct Taken<T> {
    pub(crate) object: HostObject<T>,
}
