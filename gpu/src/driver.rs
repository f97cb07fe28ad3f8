//! The connection to the drivers, and their devices.
//!
//! Both stay open until the process ends:
//!
//! - When the last connection closes, the Vulkan loader unloads the drivers, and NVIDIA's finds no device or crashes when it is loaded again.
//! - When a thread closes a device while another one opens one, NVIDIA's driver may spin forever.
//! - When the process ends while a thread closes a device, the driver may use what the end of the process has freed.
//!
//! So all handles of one adapter share a device of the driver. They have nothing else in common.

use crate::{ready, shared::Shared};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock, Weak};

/// The interfaces of drivers that are used.
const BACKENDS: wgpu::Backends =
    wgpu::Backends::VULKAN.union(wgpu::Backends::METAL).union(wgpu::Backends::DX12);

/// The adapters of all drivers, in an order that does not change.
pub(crate) fn adapters() -> Vec<wgpu::Adapter> {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    let instance = INSTANCE.get_or_init(|| {
        wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: BACKENDS,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        })
    });
    let _one_at_a_time = OPEN.lock();
    ready(instance.enumerate_adapters(BACKENDS)).unwrap_or_default()
}

/// The devices that are open.
static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

struct Open {
    /// The place among the adapters.
    at: usize,
    driver: Driver,
}

/// A device of a driver, and its queue. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Driver {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    users: Arc<Mutex<Vec<Weak<Shared>>>>,
}

impl Driver {
    /// The device of the adapter at this place, with all of its limits and with those of `wanted` features that it has; `None` if it does not answer.
    pub(crate) fn open(
        at: usize,
        adapter: &wgpu::Adapter,
        wanted: wgpu::Features,
    ) -> Option<Result<Self, wgpu::RequestDeviceError>> {
        let mut open = OPEN.lock();
        if let Some(open) = open.iter().find(|open| open.at == at) {
            return Some(Ok(open.driver.clone()));
        }
        let opened = ready(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("anabranch"),
            required_features: adapter.features() & wanted,
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        }))?;
        Some(opened.map(|(device, queue)| {
            let driver = Self { device, queue, users: Arc::default() };
            driver.watch(at);
            open.push(Open { at, driver: driver.clone() });
            driver
        }))
    }

    /// Tells this handle of the losses of the device.
    pub(crate) fn tell(&self, shared: &Arc<Shared>) {
        let mut users = self.users.lock();
        users.retain(|user| user.strong_count() > 0);
        users.push(Arc::downgrade(shared));
    }

    /// Loses the timelines of all handles when the driver loses the device, or reports an error that belongs to no batch.
    fn watch(&self, at: usize) {
        let users = Arc::clone(&self.users);
        let lose = move |why: String| {
            // The next handle gets a new device. If another thread opens one just now, this one stays, and is found lost again.
            if let Some(mut open) = OPEN.try_lock() {
                open.retain(|open| open.at != at);
            }
            let users = users.lock().clone();
            users.iter().filter_map(Weak::upgrade).for_each(|user| user.timeline.lose(&why));
        };
        let of_error = lose.clone();
        self.device.set_device_lost_callback(move |_, why| lose(why));
        self.device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| of_error(error.to_string())));
    }
}
