//! A GPU as a device of the runtime.

#[cfg(test)]
mod tests;

use crate::{
    adapters::driver::{self, Driver},
    error::GpuError,
    memory::{Budget, allocator::Allocator},
    program::{GpuProgram, Needs, status, validate::validate},
    threads::{LosesOnPanic, complete, encode, shared::Shared},
};
use anabranch::device::{
    Batch, Device, DeviceError, DeviceInfo, DeviceMemory, DeviceProgram, Source, Timeline,
};
use anabranch_kernel::wgsl::Wgsl;
use parking_lot::Mutex;
use std::{
    mem,
    sync::{
        Arc,
        atomic::AtomicUsize,
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
};

/// A GPU.
pub(crate) struct Gpu {
    shared: Arc<Shared>,
    /// Batches on their way to the device thread. The lock keeps them in the order of the timeline.
    batches: Mutex<Option<Sender<(u64, Batch)>>>,
    threads: Vec<JoinHandle<()>>,
}

/// What a thread of a device does.
type Work = Box<dyn FnOnce(&Arc<Shared>) + Send>;

impl Gpu {
    /// Opens the adapter at this place.
    pub(crate) fn open(at: usize, info: DeviceInfo) -> Result<Self, GpuError> {
        let adapter = &driver::adapters()[at];
        let refused = |why: String| GpuError::Refused { device: info.name.clone(), why };
        let wanted = wgpu::Features::SHADER_F64 | wgpu::Features::SHADER_INT64 | wgpu::Features::IMMEDIATES;
        let limits = adapter.limits();
        let has_immediates = adapter.features().contains(wgpu::Features::IMMEDIATES);
        let immediates = if has_immediates { limits.max_immediate_size as usize } else { 0 };
        let driver = Driver::open(at, wanted)
            .ok_or_else(|| refused("it does not answer".to_string()))?
            .map_err(|error| refused(error.to_string()))?;
        let shared = Arc::new(Shared {
            timeline: Timeline::new(&info.name),
            budget: Budget::new(info.name.clone(), info.memory),
            info: info.clone(),
            device: driver.device.clone(),
            queue: driver.queue.clone(),
            allocator: Allocator::new(driver.device.clone(), driver.make_room()),
            staging: Arc::default(),
            immediates,
            alignment: limits
                .min_uniform_buffer_offset_alignment
                .max(limits.min_storage_buffer_offset_alignment)
                .max(16) as usize,
            limits,
            status_layout: status::layout(&driver.device),
            in_flight: AtomicUsize::new(0),
        });
        driver.tell(&shared);
        let (batches, to_encode) = mpsc::channel();
        let (encoded, to_complete) = mpsc::channel();
        let start = |name: &str, run: Work| {
            let shared = Arc::clone(&shared);
            let run = move || {
                let _loses = LosesOnPanic(&shared.timeline);
                run(&shared);
            };
            let started = thread::Builder::new().name(name.to_string()).spawn(run);
            started.map_err(|error| refused(error.to_string()))
        };
        let threads = vec![
            start("gpu", Box::new(move |shared| encode::run(shared, &to_encode, &encoded)))?,
            start("gpu completion", Box::new(move |shared| complete::run(shared, &to_complete)))?,
        ];
        Ok(Self { shared, batches: Mutex::new(Some(batches)), threads })
    }
}

impl Device for Gpu {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn timeline(&self) -> &Timeline {
        &self.shared.timeline
    }

    fn allocate(&self, bytes: u64) -> Result<DeviceMemory, DeviceError> {
        let Shared { info, timeline, budget, .. } = &*self.shared;
        if let Some(lost) = timeline.is_lost() {
            return Err(lost);
        }
        if bytes > info.largest_buffer {
            let (device, most) = (info.name.clone(), info.largest_buffer);
            return Err(DeviceError::TooLarge { device, bytes, most });
        }
        Ok(DeviceMemory::new(bytes, budget.take(bytes)?))
    }

    fn compile(&self, source: Source<'_>) -> Result<DeviceProgram, DeviceError> {
        let Shared { info, limits, immediates, .. } = &*self.shared;
        let unsupported = |why: String| DeviceError::Unsupported { device: info.name.clone(), why };
        let program = match source {
            Source::Recording(recording) => {
                let shader = Wgsl::with_immediates(recording, *immediates);
                let shader = shader.map_err(|error| unsupported(error.to_string()))?;
                GpuProgram::of_recording(shader, recording.operands().count())
            }
            Source::Shader(shader) => GpuProgram::of_shader(shader.clone(), *immediates),
            _ => return Err(unsupported("it is a program of another sort".to_string())),
        };
        let has = Needs { has_f64: info.has_f64, has_i64: info.has_i64, limits };
        has.check(&program).map_err(unsupported)?;
        if let Source::Shader(shader) = source {
            let device = info.name.clone();
            validate(&shader.print(*immediates, false), info)
                .map_err(|why| DeviceError::Shader { device, why })?;
        }
        Ok(DeviceProgram::new(program))
    }

    fn submit(&self, batch: Batch) -> u64 {
        let batches = self.batches.lock();
        let value = self.shared.timeline.begin();
        let refused = match &*batches {
            Some(batches) => batches.send((value, batch)).map_err(|error| error.0).err(),
            None => Some((value, batch)),
        };
        // The functions of the batch and the callbacks of the timeline are the program's, and may submit.
        drop(batches);
        if let Some(refused) = refused {
            drop(refused);
            self.shared.timeline.lose("its thread has ended");
        }
        value
    }
}

impl Drop for Gpu {
    /// Waits for the batches in flight. A closure of a batch may hold the last handle: then nothing waits,
    /// because the thread that drops the device is one of those that compute the batches.
    fn drop(&mut self) {
        *self.batches.lock() = None;
        let (threads, here) = (mem::take(&mut self.threads), thread::current().id());
        if threads.iter().any(|thread| thread.thread().id() == here) {
            return;
        }
        for thread in threads {
            // A thread that has panicked has lost the device.
            let _ = thread.join();
        }
    }
}
