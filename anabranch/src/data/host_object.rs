//! Host objects: state that the program owns and the runtime guards.

use super::owner::Owner;
use crate::error::Error;
use anabranch_graph::ObjectId;
use crossbeam_utils::CachePadded;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::{
    any::type_name,
    cell::UnsafeCell,
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, OnceLock, Weak},
};

/// A handle to a value that only tasks, fences and captures can reach: a file, a solver, a counter.
///
/// A task declares its effect on the object with an order. Between two tasks the stricter order decides:
///
/// | order | the task gets | against other tasks with an effect on the same object |
/// |---|---|---|
/// | [`sequential()`](crate::sequential) | `&mut T` | in the order of submission |
/// | [`exclusive()`](crate::exclusive) | `&mut T` | in any order, one at a time |
/// | [`relaxed()`](crate::relaxed) | `&T` | in any order, at the same time |
///
/// The value is dropped when the last handle is dropped and the last task that uses it has ended;
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
    pub(crate) inner: Arc<ObjectInner<T>>,
}

impl<T> Clone for HostObject<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

/// The state that all handles of a host object share.
pub(crate) struct ObjectInner<T> {
    pub(crate) id: ObjectId,
    /// Names the object in messages, if the program does not: the first buffer or object of a runtime is
    /// number 1.
    number: u64,
    pub(crate) owner: Weak<dyn Owner>,
    name: OnceLock<String>,
    /// For an object of the whole cluster: the node that has the value.
    pub(crate) home: Option<u16>,
    /// Whether this node has, or had, the value.
    pub(crate) is_here: bool,
    /// Away from the reference counts, which submitters change while tasks run.
    guarded: CachePadded<Guarded<T>>,
}

struct Guarded<T> {
    /// Never contended: the order of the tasks makes sure of that.
    lock: RwLock<()>,
    /// `None` after the value was moved out, and on nodes that never had it.
    value: UnsafeCell<Option<T>>,
}

// SAFETY: threads reach the value under `lock` only: one thread at a time, for which `T: Send` suffices, or
// several that share it, which `ObjectInner::share` offers only for `T: Sync`.
unsafe impl<T: Send> Sync for ObjectInner<T> {}

/// The value of a host object, for a task that does not share it.
pub struct ObjectMut<'a, T> {
    value: &'a mut Option<T>,
    object: &'a ObjectInner<T>,
    _lock: RwLockWriteGuard<'a, ()>,
}

impl<T> ObjectMut<'_, T> {
    /// The error of a task that finds no value here.
    pub(crate) fn moved_out(&self) -> Error {
        Error::MovedOut { what: self.object.label() }
    }

    /// An error if this node has had the value, and it was moved out.
    pub(crate) fn check_home(&self) -> Result<(), Error> {
        if self.value.is_none() && self.object.is_here { Err(self.moved_out()) } else { Ok(()) }
    }
}

impl<T> Deref for ObjectMut<'_, T> {
    type Target = Option<T>;
    fn deref(&self) -> &Option<T> {
        self.value
    }
}

impl<T> DerefMut for ObjectMut<'_, T> {
    fn deref_mut(&mut self) -> &mut Option<T> {
        self.value
    }
}

/// The value of a host object, for a task that may share it with other tasks.
pub struct ObjectRef<'a, T> {
    value: &'a Option<T>,
    _lock: RwLockReadGuard<'a, ()>,
}

impl<T> Deref for ObjectRef<'_, T> {
    type Target = Option<T>;
    fn deref(&self) -> &Option<T> {
        self.value
    }
}

impl<T: Send> ObjectInner<T> {
    /// The value, for the task whose turn it is.
    pub(crate) fn lock(&self) -> ObjectMut<'_, T> {
        // A task that panicked may have left the value half changed. Tasks that depend on it are skipped, and
        // the program decides what it does with the value afterwards.
        debug_assert!(!self.guarded.lock.is_locked(), "{} is used by two tasks at a time", self.label());
        let lock = self.guarded.lock.write();
        // SAFETY: the write lock is held as long as the reference lives.
        ObjectMut { value: unsafe { &mut *self.guarded.value.get() }, object: self, _lock: lock }
    }

    /// The value, for one of the tasks whose turn it is.
    pub(crate) fn share(&self) -> ObjectRef<'_, T>
    where
        T: Sync,
    {
        debug_assert!(
            !self.guarded.lock.is_locked_exclusive(),
            "{} is used by two tasks at a time",
            self.label()
        );
        let lock = self.guarded.lock.read();
        // SAFETY: a read lock is held as long as the reference lives, and `T` may be shared.
        ObjectRef { value: unsafe { &*self.guarded.value.get() }, _lock: lock }
    }
}

impl<T> ObjectInner<T> {
    /// The name of the object in messages.
    pub(crate) fn label(&self) -> String {
        match self.name.get() {
            Some(name) => format!("host object \"{name}\""),
            None => format!("host object {} ({})", self.number, type_name::<T>()),
        }
    }
}

impl<T> Drop for ObjectInner<T> {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.upgrade() {
            owner.remove_object(self.id);
        }
    }
}

impl<T: Send + 'static> HostObject<T> {
    pub(crate) fn new(id: ObjectId, number: u64, value: T, owner: Weak<dyn Owner>) -> Self {
        Self::with(id, number, Some(value), None, owner)
    }

    /// An object of the whole cluster, with its value if this node is its home.
    pub(crate) fn with(
        id: ObjectId,
        number: u64,
        value: Option<T>,
        home: Option<u16>,
        owner: Weak<dyn Owner>,
    ) -> Self {
        let is_here = value.is_some();
        let guarded = Guarded { lock: RwLock::new(()), value: UnsafeCell::new(value) };
        let (name, guarded) = (OnceLock::new(), CachePadded::new(guarded));
        Self { inner: Arc::new(ObjectInner { id, number, owner, name, home, is_here, guarded }) }
    }

    /// Names the object, for messages and printed graphs. Only the first call has an effect.
    pub fn named(self, name: impl fmt::Display) -> Self {
        // A second name would contradict messages that were made with the first.
        let _ = self.inner.name.set(name.to_string());
        self
    }

    /// The value after all tasks submitted so far: itself for [`drain`](crate::Runtime::drain), a clone for
    /// [`barrier_with`](crate::Runtime::barrier_with).
    pub fn capture(&self) -> ObjectCapture<T> {
        ObjectCapture { object: self.clone() }
    }

    /// Takes the value back, if no task and no other handle uses it: to save the value when `drain` has
    /// reported an error.
    ///
    /// # Errors
    /// The handle, if the value is in use or was already moved out.
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

/// A host object, to be captured: see [`HostObject::capture`].
#[derive(Debug)]
pub struct ObjectCapture<T> {
    pub(crate) object: HostObject<T>,
}
