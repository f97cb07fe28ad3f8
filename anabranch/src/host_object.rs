//! Host objects: state that the program owns and the runtime guards.

use crate::core::Core;
use anabranch_graph::ObjectId;
use parking_lot::{Mutex, MutexGuard};
use std::{
    fmt,
    sync::{Arc, Weak},
};

/// A handle to a value that only tasks can reach: a file, a solver, a counter.
///
/// A task that declares a [sequential](crate::sequential) effect gets `&mut T`; the tasks with such effects run one
/// after the other, in the order of their submission. The value is dropped when the last handle is gone and the last
/// task that uses it has ended; [`drain`](crate::Runtime::drain) moves it out instead.
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
    pub(crate) core: Weak<Core>,
    /// `None` after it was moved out. The order of the tasks sees to it that the lock is free whenever it is taken.
    value: Mutex<Option<T>>,
}

impl<T> Inner<T> {
    /// The value, for the task whose turn it is.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<T>> {
        // A task that panicked may have left the value half changed; those that depend on it are skipped, and what
        // the program does with the value afterwards is its decision.
        self.value.lock()
    }

    /// The object as error messages call it.
    pub(crate) fn label(&self) -> String {
        format!("host object {} ({})", self.id.0, std::any::type_name::<T>())
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
    pub(crate) fn new(id: ObjectId, value: T, core: &Arc<Core>) -> Self {
        let inner = Inner { id, core: Arc::downgrade(core), value: Mutex::new(Some(value)) };
        Self { inner: Arc::new(inner) }
    }

    /// The value itself after all tasks submitted so far, for [`drain`](crate::Runtime::drain).
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
