//! The memory of one version of a buffer on one device.

use crate::{
    data::stored::Stored,
    device::{Device, DeviceMemory},
    error::Error,
    label::Label,
};
use parking_lot::Mutex;
use std::{fmt, sync::Arc};

/// The place of a version of a buffer on a device. Its memory is allocated by the first task that uses it,
/// and freed when the buffer is gone and no task uses it any more.
pub(crate) struct Slot {
    pub(crate) device: Arc<dyn Device>,
    buffer: Label,
    bytes: u64,
    memory: Mutex<Option<DeviceMemory>>,
}

impl Slot {
    pub(super) fn new(device: &Arc<dyn Device>, buffer: &dyn Stored) -> Arc<Self> {
        let (device, bytes) = (Arc::clone(device), buffer.bytes() as u64);
        Arc::new(Self { device, buffer: buffer.label(), bytes, memory: Mutex::default() })
    }

    /// The memory.
    ///
    /// # Errors
    /// [`Error::DeviceMemory`] if the device refuses it. The next task asks again.
    pub(super) fn memory(&self) -> Result<DeviceMemory, Error> {
        let mut memory = self.memory.lock();
        if let Some(memory) = &*memory {
            return Ok(memory.clone());
        }
        Ok(memory.insert(self.allocate(self.bytes)?).clone())
    }

    /// Other memory, for what a launch leaves for the buffer.
    ///
    /// # Errors
    /// See [`memory`](Self::memory).
    pub(super) fn allocate(&self, bytes: u64) -> Result<DeviceMemory, Error> {
        let new = self.device.allocate(bytes);
        new.map_err(|error| Error::DeviceMemory { buffer: self.buffer.clone(), error })
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.buffer, self.device.info().name)
    }
}
