//! Memory, and how much of it may be in use.

pub(crate) mod copies;
pub(crate) mod staging;

use anabranch::device::{DeviceError, DeviceMemory};
use std::{
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Counts bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    device: String,
    most: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) fn new(device: String, most: Option<u64>) -> Arc<Self> {
        Arc::new(Self { device, most: most.unwrap_or(u64::MAX), used: AtomicU64::new(0) })
    }

    /// Takes bytes until the memory that is returned is dropped.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Result<GpuMemory, DeviceError> {
        let add = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.most);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(GpuMemory { bytes, buffer: OnceLock::new(), budget: Arc::clone(self) }),
            Err(used) => {
                Err(DeviceError::OutOfMemory { device: self.device.clone(), bytes, used, budget: self.most })
            }
        }
    }
}

/// A buffer, which the device thread creates at its first use. The driver may make another thread wait for that.
#[derive(Debug)]
pub(crate) struct GpuMemory {
    bytes: u64,
    buffer: OnceLock<wgpu::Buffer>,
    budget: Arc<Budget>,
}

impl GpuMemory {
    /// The buffer: with eight bytes at least, because a shader wants room for one number. wgpu fills it with zeros.
    pub(crate) fn buffer(&self, device: &wgpu::Device) -> &wgpu::Buffer {
        self.buffer.get_or_init(|| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: self.bytes.next_multiple_of(4).max(8),
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_DST
                    | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            })
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The memory, as the device with this budget knows it.
pub(crate) fn known<'m>(memory: &'m DeviceMemory, budget: &Arc<Budget>) -> Result<&'m GpuMemory, String> {
    let known = memory.inner::<GpuMemory>().filter(|known| Arc::ptr_eq(&known.budget, budget));
    known.ok_or_else(|| "a step uses memory of another device".to_string())
}

/// Whether two memories of this device are the same.
pub(crate) fn is_same(a: &DeviceMemory, b: &DeviceMemory) -> bool {
    a.inner::<GpuMemory>().map(ptr::from_ref) == b.inner::<GpuMemory>().map(ptr::from_ref)
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
