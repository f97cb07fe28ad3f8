//! The connection to the drivers, and their devices.
//!
//! Both stay open until the process ends:
//!
//! - When the last connection closes, the Vulkan loader unloads the drivers, and NVIDIA's finds no device or
//!   crashes when it is loaded again.
//! - When a thread closes a device while another one opens one, NVIDIA's driver may spin forever.
//! - When the process ends while a thread closes a device, the driver may use what the end of the process has
//!   freed.
//!
//! So all handles of one adapter share a device of the driver. A loss of the device, or an error that belongs
//! to no batch, loses all of them, and the next handle gets a new device.

use crate::{ready, threads::shared::Shared};
use parking_lot::Mutex;
use std::{
    sync::{Arc, OnceLock, Weak},
    thread,
};

/// The interfaces of drivers that are used.
const BACKENDS: wgpu::Backends =
    wgpu::Backends::VULKAN.union(wgpu::Backends::METAL).union(wgpu::Backends::DX12);

/// The adapters of all drivers: those that there were at the first call, so that their places never change.
pub(crate) fn adapters() -> &'static [wgpu::Adapter] {
    static ALL: OnceLock<(wgpu::Instance, Vec<wgpu::Adapter>)> = OnceLock::new();
    let (_, adapters) = ALL.get_or_init(|| {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: BACKENDS,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = ready(instance.enumerate_adapters(BACKENDS)).unwrap_or_default();
        (instance, adapters)
    });
    adapters
}

/// A device of a driver, and its queue. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Driver {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    /// The place of the adapter.
    at: usize,
    fate: Arc<Fate>,
}

/// What becomes of a device.
#[derive(Debug, Default)]
struct Fate {
    /// Why it is lost, if it is.
    lost: OnceLock<String>,
    handles: Mutex<Vec<Weak<Shared>>>,
}

impl Driver {
    /// The device of the adapter at this place, with all of its limits and with those of the `wanted`
    /// features that it has; `None` if it does not answer.
    pub(crate) fn open(at: usize, wanted: wgpu::Features) -> Option<Result<Self, wgpu::RequestDeviceError>> {
        // All that were opened. Those that are lost stay, so that nothing closes them.
        static OPEN: Mutex<Vec<Driver>> = Mutex::new(Vec::new());
        let mut open = OPEN.lock();
        if let Some(driver) = open.iter().find(|driver| driver.at == at && driver.fate.lost.get().is_none()) {
            return Some(Ok(driver.clone()));
        }
        let adapter = &adapters()[at];
        let opened = ready(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("anabranch"),
            required_features: adapter.features() & wanted,
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        }))?;
        Some(opened.map(|(device, queue)| {
            let driver = Self { device, queue, at, fate: Arc::default() };
            driver.watch();
            open.push(driver.clone());
            driver
        }))
    }

    /// Loses this handle when the device is lost.
    pub(crate) fn tell(&self, handle: &Arc<Shared>) {
        let mut handles = self.fate.handles.lock();
        handles.retain(|handle| handle.strong_count() > 0);
        handles.push(Arc::downgrade(handle));
        drop(handles);
        if let Some(why) = self.fate.lost.get() {
            handle.timeline.lose(why);
        }
    }

    /// What makes all handles give back the memory that they keep.
    pub(crate) fn make_room(&self) -> Box<dyn Fn() + Send + Sync> {
        let fate = Arc::clone(&self.fate);
        Box::new(move || {
            let handles = fate.handles.lock().clone();
            handles.iter().filter_map(Weak::upgrade).for_each(|handle| handle.budget.free_unused());
        })
    }

    fn watch(&self) {
        let [of_loss, of_error] = [(); 2].map(|()| Arc::clone(&self.fate));
        self.device.set_device_lost_callback(move |_, why| of_loss.lose(why));
        self.device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| of_error.lose(error.to_string())));
    }
}

impl Fate {
    /// Loses all handles, on a thread of its own: wgpu holds locks while it calls back, and what comes after
    /// a loss may use the device.
    fn lose(self: &Arc<Self>, why: String) {
        if self.lost.set(why.clone()).is_err() {
            return;
        }
        let fate = Arc::clone(self);
        let lose = move || {
            let handles = fate.handles.lock().clone();
            handles.iter().filter_map(Weak::upgrade).for_each(|handle| handle.timeline.lose(&why));
        };
        // Without a thread, the handles find the loss at their next batch.
        let _ = thread::Builder::new().name("gpu loss".into()).spawn(lose);
    }
}
