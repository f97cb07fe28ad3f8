//! The statuses of launches of shaders, in which a shader notes an access outside of its declaration.
//!
//! All launches of a submission have theirs in one buffer. It is filled with zeros before the first command,
//! because a copy between two launches would end their pass. It is copied behind the last one. The buffer has
//! one bind group, which each launch sets with the offset of its own status. So the bind groups of operands
//! are the same in each submission.

use crate::{
    memory::{bind_groups, staging::Sort},
    threads::shared::Shared,
};
use anabranch::device::DeviceError;
use anabranch_kernel::shader::{Outside, Printed};
use std::{iter, num::NonZeroU64};

/// The layout of the bind group of a status.
pub(crate) fn layout(device: &wgpu::Device) -> wgpu::BindGroupLayout {
    let status = wgpu::BindGroupLayoutEntry {
        binding: 0,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: false },
            has_dynamic_offset: true,
            min_binding_size: NonZeroU64::new(Printed::STATUS_BYTES),
        },
        count: None,
    };
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &[status] })
}

/// The statuses of a submission.
pub(crate) struct Statuses {
    device: wgpu::Buffer,
    bound: wgpu::BindGroup,
    staging: wgpu::Buffer,
    stride: u64,
    used: u64,
}

impl Statuses {
    /// Room for the statuses of this number of launches, filled with zeros.
    pub(crate) fn new(shared: &Shared, encoder: &mut wgpu::CommandEncoder, launches: u64) -> Option<Self> {
        if launches == 0 {
            return None;
        }
        let stride = Printed::STATUS_BYTES.next_multiple_of(shared.alignment as u64);
        let take = |sort| shared.staging.take(&shared.allocator, sort, launches * stride);
        let (device, staging) = (take(Sort::Status), take(Sort::Download));
        encoder.clear_buffer(&device, 0, Some(launches * stride));
        let size = NonZeroU64::new(Printed::STATUS_BYTES);
        let status = wgpu::BufferBinding { buffer: &device, offset: 0, size };
        let entry = wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(status) };
        let bound = bind_groups::create(&shared.device, &shared.status_layout, iter::once(entry));
        Some(Self { device, bound, staging, stride, used: 0 })
    }

    /// Takes the next status: where it begins.
    pub(crate) fn next(&mut self) -> u64 {
        self.used += 1;
        (self.used - 1) * self.stride
    }

    /// The bind group of a status, which takes the place where the status begins as its offset.
    pub(crate) fn bound(&self) -> &wgpu::BindGroup {
        &self.bound
    }

    /// Copies the statuses, behind all launches.
    pub(crate) fn copy(&self, encoder: &mut wgpu::CommandEncoder) {
        if self.used > 0 {
            encoder.copy_buffer_to_buffer(&self.device, 0, &self.staging, 0, self.used * self.stride);
        }
    }

    /// Asks for the statuses: they can be read when the submission is done.
    pub(crate) fn map(&self) {
        if self.used > 0 {
            self.staging.slice(..self.used * self.stride).map_async(wgpu::MapMode::Read, |_| ());
        }
    }

    /// The bytes of all statuses, when the submission is done.
    fn read(&self) -> Result<Vec<u8>, String> {
        if self.used == 0 {
            return Ok(Vec::new());
        }
        let slice = self.staging.slice(..self.used * self.stride);
        let bytes = slice.get_mapped_range().map_err(|error| error.to_string())?.to_vec();
        self.staging.unmap();
        Ok(bytes)
    }

    /// Reads the statuses, and gives the buffers back.
    pub(crate) fn end(self, shared: &Shared) -> Result<Vec<u8>, String> {
        let read = self.read();
        // A buffer that could not be mapped may be mapped yet.
        if read.is_ok() {
            shared.staging.give_back(Sort::Download, self.staging);
        }
        shared.staging.give_back(Sort::Status, self.device);
        read
    }
}

/// The error of a batch whose shaders have these statuses.
pub(crate) fn check(shared: &Shared, all: &Result<Vec<u8>, String>, at: &[u64]) -> Result<(), DeviceError> {
    let device = || shared.info.name.clone();
    if at.is_empty() {
        return Ok(());
    }
    let all = all.as_ref().map_err(|why| DeviceError::Failed { device: device(), why: why.clone() })?;
    let outside = |&at: &u64| Outside::of(&all[at as usize..][..Printed::STATUS_BYTES as usize]);
    match at.iter().find_map(outside) {
        None => Ok(()),
        Some(Outside { operand, index }) => Err(DeviceError::Outside { device: device(), operand, index }),
    }
}
