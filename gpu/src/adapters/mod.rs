//! Which GPUs there are.

pub(crate) mod by_name;
pub(crate) mod diagnosis;
pub(crate) mod driver;
pub(crate) mod open;

use anabranch::device::{DeviceInfo, DeviceKind};

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

/// The devices that there were at the first call in this process, also those that compute on the processor.
pub fn adapters() -> Vec<Adapter> {
    driver::adapters().iter().map(describe).collect()
}

/// The index of the device that [`open`](crate::open) takes without a name: the first of discrete, integrated
/// and other GPUs.
///
/// ```
/// let adapters = anabranch_gpu::adapters();
/// match anabranch_gpu::best(&adapters) {
///     Some(at) => println!("takes {}", adapters[at].info.name),
///     None => println!("there is no GPU"),
/// }
/// ```
pub fn best(adapters: &[Adapter]) -> Option<usize> {
    gpus(adapters).next()
}

/// The indices of all GPUs, discrete ones first.
pub(crate) fn gpus(adapters: &[Adapter]) -> impl Iterator<Item = usize> {
    let of = move |kind| (0..adapters.len()).filter(move |&at| adapters[at].info.kind == kind);
    [DeviceKind::Discrete, DeviceKind::Integrated, DeviceKind::Other].into_iter().flat_map(of)
}

/// What a device is.
pub(crate) fn describe(adapter: &wgpu::Adapter) -> Adapter {
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
