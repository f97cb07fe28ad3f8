//! A GPU as a program uses it that calls wgpu directly: buffers, pipelines and bindings are made once.

use std::{
    future::Future,
    pin::pin,
    sync::mpsc,
    task::{Context, Poll, Waker},
};

use wgpu::BufferUsages as Usages;

use crate::harness::Failure;

/// Reads an element, doubles it, and writes it. Each invocation takes elements with a stride, so that any
/// number of groups computes all.
pub const DOUBLE: &str = "
@group(0) @binding(0) var<storage, read> u: array<f32>;
@group(0) @binding(1) var<storage, read_write> v: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) at: vec3u, @builtin(num_workgroups) groups: vec3u) {
    for (var i = at.x; i < arrayLength(&v); i += groups.x * 256) { v[i] = u[i] * 2.0; }
}
";

/// A device of wgpu.
pub struct BareWgpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

/// A kernel with its buffers.
pub struct Kernel {
    pipeline: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
    groups: [u32; 2],
}

impl BareWgpu {
    /// Opens the device of this name.
    ///
    /// # Errors
    /// What is missing.
    pub fn open(name: &str) -> Result<Self, String> {
        let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = ready(instance.enumerate_adapters(backends)).unwrap_or_default();
        let adapter = adapters.into_iter().find(|adapter| adapter.get_info().name == name);
        let adapter = adapter.ok_or_else(|| format!("no adapter has the name {name}"))?;
        let opened = ready(adapter.request_device(&wgpu::DeviceDescriptor {
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        }));
        let (device, queue) =
            opened.ok_or("the driver does not answer")?.map_err(|error| error.to_string())?;
        Ok(Self { device, queue })
    }

    /// A buffer of `f32` for kernels and copies.
    pub fn buffer(&self, elements: usize) -> wgpu::Buffer {
        self.buffer_for(elements, Usages::STORAGE | Usages::COPY_SRC | Usages::COPY_DST)
    }

    /// A buffer of `f32` that the processor writes.
    pub fn to_upload(&self, elements: usize) -> wgpu::Buffer {
        self.buffer_for(elements, Usages::MAP_WRITE | Usages::COPY_SRC)
    }

    /// A buffer of `f32` that the processor reads.
    pub fn to_download(&self, elements: usize) -> wgpu::Buffer {
        self.buffer_for(elements, Usages::MAP_READ | Usages::COPY_DST)
    }

    fn buffer_for(&self, elements: usize, usage: Usages) -> wgpu::Buffer {
        let size = 4 * elements as u64;
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    }

    /// A kernel whose bindings are these buffers in their order.
    pub fn kernel(&self, shader: &str, buffers: &[&wgpu::Buffer], groups: [u32; 2]) -> Kernel {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(shader.into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let entries = (0..)
            .zip(buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() });
        let bindings = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries.collect::<Vec<_>>(),
        });
        Kernel { pipeline, bindings, groups }
    }

    /// Launches kernels one after the other, this many in all, and blocks until the last has ended. They take
    /// turns.
    ///
    /// # Errors
    /// The device is lost.
    pub fn launch_and_wait(&self, kernels: &[Kernel], launches: usize) -> Result<(), Failure> {
        self.run_and_wait(|encoder| {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for kernel in kernels.iter().cycle().take(launches) {
                pass.set_pipeline(&kernel.pipeline);
                pass.set_bind_group(0, &kernel.bindings, &[]);
                pass.dispatch_workgroups(kernel.groups[0], kernel.groups[1], 1);
            }
        })
    }

    /// Copies one buffer to another, this many times, and blocks until the last copy has ended.
    ///
    /// # Errors
    /// The device is lost.
    pub fn copy_and_wait(&self, from: &wgpu::Buffer, to: &wgpu::Buffer, times: usize) -> Result<(), Failure> {
        self.run_and_wait(|encoder| {
            (0..times).for_each(|_| encoder.copy_buffer_to_buffer(from, 0, to, 0, from.size()));
        })
    }

    /// Copies elements to the device in pieces, by way of a buffer for each piece, and blocks until they are
    /// there. While the device copies a piece, the processor writes the next one.
    ///
    /// # Errors
    /// The device is lost.
    pub fn upload(&self, from: &[f32], by: &[wgpu::Buffer], to: &wgpu::Buffer) -> Result<(), Failure> {
        let (mut at, mut last) = (0, None);
        for buffer in by {
            let bytes = bytemuck::cast_slice(&from[(at / 4) as usize..][..(buffer.size() / 4) as usize]);
            buffer.slice(..).get_mapped_range_mut()?.copy_from_slice(bytes);
            buffer.unmap();
            last = Some(self.run(|encoder| encoder.copy_buffer_to_buffer(buffer, 0, to, at, buffer.size())));
            at += buffer.size();
        }
        self.wait(last)?;
        Ok(())
    }

    /// Maps the buffers of an upload again, which takes no time that an upload has to wait for.
    ///
    /// # Errors
    /// The device is lost.
    pub fn map(&self, by: &[wgpu::Buffer]) -> Result<(), Failure> {
        by.iter().for_each(|buffer| buffer.map_async(wgpu::MapMode::Write, .., |_| ()));
        self.wait(None)
    }

    /// Copies elements from the device in pieces, by way of a buffer for each piece. While the device copies
    /// a piece, the processor reads the one before.
    ///
    /// # Errors
    /// The device is lost.
    pub fn download(&self, from: &wgpu::Buffer, by: &[wgpu::Buffer], to: &mut [f32]) -> Result<(), Failure> {
        let mut at = 0;
        let mut pieces = Vec::with_capacity(by.len());
        for buffer in by {
            let submitted =
                self.run(|encoder| encoder.copy_buffer_to_buffer(from, at, buffer, 0, buffer.size()));
            at += buffer.size();
            let (done, mapped) = mpsc::channel();
            buffer.map_async(wgpu::MapMode::Read, .., move |result| {
                // The receiver is there until the buffer is mapped.
                let _ = done.send(result);
            });
            pieces.push((submitted, mapped));
        }
        let mut rest = to;
        for (buffer, (submitted, mapped)) in by.iter().zip(pieces) {
            self.wait(Some(submitted))?;
            mapped.recv()??;
            let (piece, behind) = rest.split_at_mut((buffer.size() / 4) as usize);
            piece.copy_from_slice(bytemuck::cast_slice(&buffer.slice(..).get_mapped_range()?));
            buffer.unmap();
            rest = behind;
        }
        Ok(())
    }

    fn run(&self, encode: impl FnOnce(&mut wgpu::CommandEncoder)) -> wgpu::SubmissionIndex {
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encode(&mut encoder);
        self.queue.submit([encoder.finish()])
    }

    fn run_and_wait(&self, encode: impl FnOnce(&mut wgpu::CommandEncoder)) -> Result<(), Failure> {
        let index = self.run(encode);
        self.wait(Some(index))
    }

    /// Waits for a submission, or for all.
    fn wait(&self, submission_index: Option<wgpu::SubmissionIndex>) -> Result<(), Failure> {
        self.device.poll(wgpu::PollType::Wait { submission_index, timeout: None })?;
        Ok(())
    }
}

/// The result of a future of wgpu. Outside of browsers they are ready at once.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
