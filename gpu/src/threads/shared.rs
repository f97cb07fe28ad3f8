//! What the threads of a device share.

use crate::memory::{Budget, allocator::Allocator, staging::Staging};
use anabranch::device::{DeviceInfo, Timeline};
use std::sync::{Arc, atomic::AtomicUsize};

/// What the threads of a GPU share.
pub(crate) struct Shared {
    pub(crate) info: DeviceInfo,
    pub(crate) timeline: Timeline,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) allocator: Allocator,
    pub(crate) staging: Arc<Staging>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) limits: wgpu::Limits,
    /// The layout of the group of bindings that has the status of a launch.
    pub(crate) status_layout: wgpu::BindGroupLayout,
    /// The groups of batches that are submitted and that the device has not done, as far as its two threads
    /// know.
    pub(crate) in_flight: AtomicUsize,
    /// The bytes that a dispatch takes as immediate data.
    pub(crate) immediates: usize,
    /// What the offsets of blocks are multiples of.
    pub(crate) alignment: usize,
}
