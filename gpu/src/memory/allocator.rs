//! The allocation of buffers. If the driver has no memory left, all handles of its device return the buffers
//! that they keep, and the allocator tries once more.

use crate::ready;

/// Allocates the buffers of a handle.
pub(crate) struct Allocator {
    device: wgpu::Device,
    /// Makes all handles of the device return the buffers that they keep.
    make_room: Box<dyn Fn() + Send + Sync>,
}

impl Allocator {
    pub(crate) fn new(device: wgpu::Device, make_room: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { device, make_room }
    }

    /// A buffer. If the driver has no memory for it, the scopes around this call get the error, and the
    /// buffer is unusable.
    pub(crate) fn create(&self, descriptor: &wgpu::BufferDescriptor<'_>) -> wgpu::Buffer {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.device.create_buffer(descriptor);
        if ready(scope.pop()).flatten().is_none() {
            return buffer;
        }
        (self.make_room)();
        self.device.create_buffer(descriptor)
    }
}
