//! A kernel on a GPU as a program launches it that uses wgpu directly: buffers, pipeline and bindings are made once.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Reads an element, doubles it, and writes it.
const DOUBLE: &str = "
@group(0) @binding(0) var<storage, read> u: array<f32>;
@group(0) @binding(1) var<storage, read_write> v: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3u) {
    if at.x < arrayLength(&v) { v[at.x] = u[at.x] * 2.0; }
}
";

/// A device of wgpu, with a kernel on some elements.
pub struct BareWgpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
    groups: u32,
}

impl BareWgpu {
    /// Opens the device of this name.
    ///
    /// # Errors
    /// What is missing.
    pub fn open(name: &str, elements: usize) -> Result<Self, String> {
        let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = ready(instance.enumerate_adapters(backends)).unwrap_or_default();
        let adapter = adapters.into_iter().find(|adapter| adapter.get_info().name == name);
        let adapter = adapter.ok_or_else(|| format!("no adapter has the name {name}"))?;
        let opened = ready(adapter.request_device(&wgpu::DeviceDescriptor::default()));
        let (device, queue) =
            opened.ok_or("the driver does not answer")?.map_err(|error| error.to_string())?;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(DOUBLE.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let [u, v] = [(); 2].map(|()| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 4 * elements as u64,
                usage: wgpu::BufferUsages::STORAGE,
                mapped_at_creation: false,
            })
        });
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: u.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: v.as_entire_binding() },
            ],
        });
        Ok(Self { device, queue, pipeline, bindings, groups: elements.div_ceil(64) as u32 })
    }

    /// Launches the kernel `times` times, each after the one before, and blocks until the last has ended.
    ///
    /// # Errors
    /// The device is lost.
    pub fn launch_and_wait(&self, times: usize) -> Result<(), wgpu::PollError> {
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.bindings, &[]);
            (0..times).for_each(|_| pass.dispatch_workgroups(self.groups, 1, 1));
        }
        let index = self.queue.submit([encoder.finish()]);
        self.device.poll(wgpu::PollType::Wait { submission_index: Some(index), timeout: None }).map(drop)
    }
}

/// The result of a future of wgpu. Outside of browsers they are ready at once.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
