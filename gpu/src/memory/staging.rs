//! Buffers that the processor and the device both reach: they are kept and used again.

use super::allocator::Allocator;
use parking_lot::Mutex;
use std::sync::Arc;

/// The bytes that are kept of each sort. A driver takes longer to make such a buffer than a device to copy
/// it.
const KEPT: u64 = 256 << 20;

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// The processor writes it, the device copies from it. It is mapped while it is not in use.
    Upload,
    /// The device copies to it, the processor reads it.
    Download,
    /// The blocks of launches.
    Blocks,
    /// Results of the leaves of reductions.
    Results,
    /// The statuses of launches of shaders, which the device fills with zeros.
    Status,
}

/// The buffers that are not in use.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    free: Mutex<Vec<(Sort, wgpu::Buffer)>>,
}

impl Staging {
    /// A buffer of at least this many bytes.
    pub(crate) fn take(&self, allocator: &Allocator, sort: Sort, bytes: u64) -> wgpu::Buffer {
        let size = bytes.next_power_of_two().max(4096);
        let mut free = self.free.lock();
        if let Some(at) = free.iter().position(|(of, buffer)| *of == sort && buffer.size() == size) {
            return free.swap_remove(at).1;
        }
        drop(free);
        use wgpu::BufferUsages as Usages;
        allocator.create(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: match sort {
                Sort::Upload => Usages::MAP_WRITE | Usages::COPY_SRC,
                Sort::Download => Usages::MAP_READ | Usages::COPY_DST,
                Sort::Results => Usages::STORAGE,
                Sort::Blocks => Usages::UNIFORM | Usages::STORAGE | Usages::COPY_DST,
                Sort::Status => Usages::STORAGE | Usages::COPY_DST | Usages::COPY_SRC,
            },
            mapped_at_creation: sort == Sort::Upload,
        })
    }

    /// Takes a buffer back that the device uses no more.
    pub(crate) fn give_back(self: &Arc<Self>, sort: Sort, buffer: wgpu::Buffer) {
        if sort != Sort::Upload {
            return self.keep(sort, buffer);
        }
        let (staging, mapped) = (Arc::clone(self), buffer.clone());
        buffer.map_async(wgpu::MapMode::Write, .., move |result| {
            if result.is_ok() {
                staging.keep(Sort::Upload, mapped);
            }
        });
    }

    fn keep(&self, sort: Sort, buffer: wgpu::Buffer) {
        let mut free = self.free.lock();
        let kept: u64 = free.iter().filter(|(of, _)| *of == sort).map(|(_, buffer)| buffer.size()).sum();
        if kept + buffer.size() <= KEPT {
            free.push((sort, buffer));
        }
    }
}
