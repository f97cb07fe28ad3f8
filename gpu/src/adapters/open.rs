//! Opening a device.

use super::{best, describe, diagnosis, driver};
use crate::{device::Gpu, error::GpuError};
use anabranch::device::Device;
use std::sync::Arc;

/// How a device is opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The bytes that buffers may take together. Drivers do not say reliably when their memory is in use, so
    /// without this number the first sign may be a batch that fails.
    pub memory: Option<u64>,
}

impl Settings {
    /// Limits the bytes that buffers may take together.
    pub fn memory(self, bytes: u64) -> Self {
        Self { memory: Some(bytes) }
    }
}

/// Opens a device: one with `name` in its name, in upper or lower case; or the first of discrete, integrated
/// and other GPUs. The latter is never a driver that computes on the processor.
///
/// # Errors
/// There is no such device, or its driver refuses it. The error says what is missing.
pub fn open(name: Option<&str>) -> Result<Arc<dyn Device>, GpuError> {
    open_with(name, Settings::default())
}

/// Opens a device as [`open`] does, with settings.
///
/// # Errors
/// See [`open`].
pub fn open_with(name: Option<&str>, settings: Settings) -> Result<Arc<dyn Device>, GpuError> {
    let all = driver::adapters();
    let described = all.iter().map(describe).collect::<Vec<_>>();
    let chosen = match name {
        Some(name) => {
            let wanted = name.to_lowercase();
            (0..all.len()).find(|&at| described[at].info.name.to_lowercase().contains(&wanted))
        }
        None => best(&described),
    };
    match (chosen, name) {
        (Some(at), _) => {
            let mut info = described[at].info.clone();
            info.memory = settings.memory;
            Ok(Arc::new(Gpu::open(at, info)?))
        }
        (None, Some(name)) if !all.is_empty() => {
            let there =
                described.iter().map(|adapter| adapter.info.name.as_str()).collect::<Vec<_>>().join(", ");
            Err(GpuError::NoSuchDevice { name: name.to_string(), there })
        }
        _ => Err(GpuError::None { why: diagnosis::explain(&described) }),
    }
}
