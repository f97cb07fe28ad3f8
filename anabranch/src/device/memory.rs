//! Handles to what belongs to a device.

use std::{any::Any, fmt, sync::Arc};

/// Memory of a device.
#[derive(Clone)]
pub struct DeviceMemory {
    bytes: u64,
    inner: Arc<dyn Any + Send + Sync>,
}

impl DeviceMemory {
    /// Memory of this number of bytes. `inner` is what the device knows it by; its destructor frees the
    /// memory.
    pub fn new(bytes: u64, inner: impl Any + Send + Sync) -> Self {
        Self { bytes, inner: Arc::new(inner) }
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the device knows the memory by; `None` if that has another type: the memory belongs to another
    /// device.
    pub fn inner<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.inner.downcast_ref()
    }
}

impl fmt::Debug for DeviceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceMemory({} bytes)", self.bytes)
    }
}

/// A program of a device: a recording or shader that it has prepared.
#[derive(Clone)]
pub struct DeviceProgram(Arc<dyn Any + Send + Sync>);

impl DeviceProgram {
    /// A program. `inner` is what the device knows it by.
    pub fn new(inner: impl Any + Send + Sync) -> Self {
        Self(Arc::new(inner))
    }

    /// What the device knows the program by; `None` if that has another type: the program belongs to another
    /// device.
    pub fn inner<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for DeviceProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceProgram")
    }
}
