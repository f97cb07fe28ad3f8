//! Where arrays are.

use crate::error::{ArrayError, Call};
use anabranch::{
    device::Device,
    interface::{Over, TaskBuilder},
};
use std::{fmt, sync::Arc};

/// Where the operations on an array run.
#[derive(Clone)]
pub(crate) enum Place {
    Host,
    /// The device of the runtime; the host for what that device cannot run.
    Default(Arc<dyn Device>),
    Device(Arc<dyn Device>),
}

impl Place {
    /// The device, if it is one.
    pub(crate) fn device(&self) -> Option<&Arc<dyn Device>> {
        match self {
            Self::Host => None,
            Self::Default(device) | Self::Device(device) => Some(device),
        }
    }

    /// Places a task.
    pub(crate) fn of<'rt, const K: usize, L>(
        &'rt self,
        task: TaskBuilder<'rt, K, Over, L>,
    ) -> TaskBuilder<'rt, K, Over, L> {
        match self {
            Self::Host => task.on_host(),
            Self::Default(_) => task,
            Self::Device(device) => task.on(device),
        }
    }

    /// Checks that an operation finds both of its arrays in one place.
    pub(crate) fn check(&self, other: &Self, call: Call) -> Result<(), ArrayError> {
        let is_same = match (self.device(), other.device()) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        Err(ArrayError::Places { call, left: self.to_string(), right: other.to_string() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device() {
            None => f.write_str("the host"),
            Some(device) => write!(f, "the device {}", device.info().name),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
