//! Which GPUs there are, and how one is opened.

use crate::{device::Gpu, diagnosis, ready};
use anabranch::device::{Device, DeviceInfo, DeviceKind};
use std::sync::Arc;

/// A device that could be opened.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// What the device is. Drivers do not say how much memory they have for buffers.
    pub info: DeviceInfo,
    /// The interface of the driver, such as `Vulkan`.
    pub backend: String,
    /// The name and version of the driver.
    pub driver: String,
    /// The operands that one kernel may have.
    pub operands: u32,
}

/// Why no GPU can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no GPU that can be used.
    #[error("no GPU can be used: {why}")]
    None {
        /// What is missing, and what to do.
        why: String,
    },
    /// No device has this name.
    #[error("no device has `{name}` in its name; there are: {there}")]
    NoSuchDevice {
        /// The name.
        name: String,
        /// The names of the devices that there are.
        there: String,
    },
    /// The driver refuses to open the device.
    #[error("the driver does not open {device}: {why}")]
    Refused {
        /// The device.
        device: String,
        /// What the driver says.
        why: String,
    },
    /// The device that the environment variable `ANABRANCH_DEVICE` names cannot be opened.
    #[error("ANABRANCH_DEVICE is `{value}`: {why}")]
    Variable {
        /// The value of the variable.
        value: String,
        /// Why its device cannot be opened.
        why: Box<GpuError>,
    },
}

/// How a device is opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The bytes that buffers may take together. Drivers do not say reliably when their memory is in use, so without this number the
    /// first sign may be a batch that fails.
    pub memory: Option<u64>,
}

impl Settings {
    /// Limits the bytes that buffers may take together.
    pub fn memory(self, bytes: u64) -> Self {
        Self { memory: Some(bytes) }
    }
}

/// The devices that there are, also those that compute on the processor.
pub fn adapters() -> Vec<Adapter> {
    find().iter().map(describe).collect()
}

/// Opens a device: one with `name` in its name, in upper or lower case; or the first of discrete, integrated and other GPUs. The latter is
/// never a driver that computes on the processor.
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
    let all = find();
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
            Ok(Arc::new(Gpu::open(&all[at], info)?))
        }
        (None, Some(name)) if !all.is_empty() => {
            let there =
                described.iter().map(|adapter| adapter.info.name.as_str()).collect::<Vec<_>>().join(", ");
            Err(GpuError::NoSuchDevice { name: name.to_string(), there })
        }
        _ => Err(GpuError::None { why: diagnosis::explain(&described) }),
    }
}

/// The index of the device that [`open`] takes without a name: the first of discrete, integrated and other GPUs.
///
/// ```
/// let adapters = anabranch_gpu::adapters();
/// match anabranch_gpu::best(&adapters) {
///     Some(at) => println!("takes {}", adapters[at].info.name),
///     None => println!("there is no GPU"),
/// }
/// ```
pub fn best(adapters: &[Adapter]) -> Option<usize> {
    let first = |wanted| adapters.iter().position(|adapter| adapter.info.kind == wanted);
    [DeviceKind::Discrete, DeviceKind::Integrated, DeviceKind::Other].into_iter().find_map(first)
}

fn find() -> Vec<wgpu::Adapter> {
    let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    ready(instance.enumerate_adapters(backends)).unwrap_or_default()
}

fn describe(adapter: &wgpu::Adapter) -> Adapter {
    let (about, features, limits) = (adapter.get_info(), adapter.features(), adapter.limits());
    let info = DeviceInfo {
        name: about.name,
        kind: match about.device_type {
            wgpu::DeviceType::DiscreteGpu => DeviceKind::Discrete,
            wgpu::DeviceType::IntegratedGpu => DeviceKind::Integrated,
            wgpu::DeviceType::Cpu => DeviceKind::Software,
            wgpu::DeviceType::VirtualGpu | wgpu::DeviceType::Other => DeviceKind::Other,
        },
        memory: None,
        largest_buffer: limits.max_buffer_size.min(limits.max_storage_buffer_binding_size) / 4 * 4,
        has_f64: features.contains(wgpu::Features::SHADER_F64),
        has_i64: features.contains(wgpu::Features::SHADER_INT64),
    };
    Adapter {
        info,
        backend: format!("{:?}", about.backend),
        driver: format!("{} {}", about.driver, about.driver_info).trim().to_string(),
        operands: limits.max_storage_buffers_per_shader_stage,
    }
}
