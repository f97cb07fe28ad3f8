//! The memory of a device, and how much of it may be in use.

pub(crate) mod allocator;
pub(crate) mod bind_groups;
pub(crate) mod copies;
pub(crate) mod downloads;
pub(crate) mod pieces;
mod pool;
pub(crate) mod staging;

use self::{allocator::Allocator, bind_groups::BindGroups, pool::Pool};
use anabranch::device::{DeviceError, DeviceMemory};
use parking_lot::Mutex;
use std::{
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Counts the bytes of the program, and keeps buffers and bind groups that a driver would take long to make
/// again.
#[derive(Debug)]
pub(crate) struct Budget {
    device: String,
    most: u64,
    used: AtomicU64,
    pool: Mutex<Pool<wgpu::Buffer>>,
    pub(crate) bind_groups: BindGroups,
}

impl Budget {
    pub(crate) fn new(device: String, most: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            device,
            most: most.unwrap_or(u64::MAX),
            used: AtomicU64::new(0),
            pool: Mutex::default(),
            bind_groups: BindGroups::default(),
        })
    }

    /// Takes bytes until the memory that is returned is dropped.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Result<GpuMemory, DeviceError> {
        let add = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.most);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(GpuMemory {
                bytes,
                buffer: OnceLock::new(),
                is_broken: AtomicBool::new(false),
                budget: Arc::clone(self),
            }),
            Err(used) => {
                Err(DeviceError::OutOfMemory { device: self.device.clone(), bytes, used, budget: self.most })
            }
        }
    }

    /// Returns unused buffers to the driver.
    pub(crate) fn free_unused(&self) {
        let unused = self.pool.lock().clear();
        self.drop_buffers(unused);
    }

    /// Returns unused buffers to the driver, and keeps none until the program has work again.
    pub(crate) fn rest(&self) {
        let unused = self.pool.lock().rest();
        self.drop_buffers(unused);
    }

    /// Drops buffers, and the bind groups that have them.
    fn drop_buffers(&self, buffers: Vec<wgpu::Buffer>) {
        if !buffers.is_empty() {
            self.bind_groups.forget(&buffers);
        }
    }

    /// Marks these memories as broken, after an error of the driver in a batch that uses them: buffers and
    /// bind groups that were made in the batch may be unusable.
    pub(crate) fn distrust<'m>(&self, memories: impl Iterator<Item = &'m DeviceMemory>) {
        let known = memories.filter_map(|memory| memory.inner::<GpuMemory>());
        known.for_each(|memory| memory.is_broken.store(true, Ordering::Relaxed));
        self.bind_groups.clear();
    }
}

/// A buffer, which the device thread takes or creates at its first use. The driver may make another thread
/// wait for that.
#[derive(Debug)]
pub(crate) struct GpuMemory {
    bytes: u64,
    buffer: OnceLock<wgpu::Buffer>,
    /// Whether the buffer may be unusable, so that no other memory gets it.
    is_broken: AtomicBool,
    budget: Arc<Budget>,
}

impl GpuMemory {
    /// The buffer: with eight bytes at least, because a shader wants room for one number. What is in it is
    /// unspecified.
    pub(crate) fn buffer(&self, allocator: &Allocator) -> &wgpu::Buffer {
        self.buffer.get_or_init(|| {
            let size = self.bytes.next_multiple_of(4).max(8);
            let used = self.budget.used.load(Ordering::Relaxed);
            let (taken, surplus) = self.budget.pool.lock().take(size, used);
            self.budget.drop_buffers(surplus);
            taken.unwrap_or_else(|| {
                allocator.create(&wgpu::BufferDescriptor {
                    label: None,
                    size,
                    usage: wgpu::BufferUsages::STORAGE
                        | wgpu::BufferUsages::COPY_DST
                        | wgpu::BufferUsages::COPY_SRC,
                    mapped_at_creation: false,
                })
            })
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The memory, if it belongs to the device with this budget.
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
        let used = self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed) - self.bytes;
        if let Some(buffer) = self.buffer.take() {
            let surplus = match *self.is_broken.get_mut() {
                true => vec![buffer],
                false => self.budget.pool.lock().give_back(buffer.size(), buffer, used),
            };
            self.budget.drop_buffers(surplus);
        }
    }
}
