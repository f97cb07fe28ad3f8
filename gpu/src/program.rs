//! Programs: the shaders of recordings, which the device thread compiles at their first launch.

use crate::ready;
use anabranch_kernel::wgsl::{BlockPlace, Wgsl};
use std::sync::OnceLock;

/// A program of a GPU.
#[derive(Debug)]
pub(crate) struct GpuProgram {
    pub(crate) shader: Wgsl,
    /// The number of operands of the recording.
    pub(crate) operands: usize,
    compiled: OnceLock<Result<Compiled, String>>,
}

/// A shader, as the driver has it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

impl GpuProgram {
    pub(crate) fn new(shader: Wgsl, operands: usize) -> Self {
        Self { shader, operands, compiled: OnceLock::new() }
    }

    /// The shader, compiled; or what the compiler says, with the line.
    pub(crate) fn compiled(&self, device: &wgpu::Device) -> Result<&Compiled, String> {
        let compiled = self.compiled.get_or_init(|| {
            let errors = Scopes::push(device);
            let compiled = self.compile(device);
            errors.pop().map_or(Ok(compiled), Err)
        });
        compiled.as_ref().map_err(Clone::clone)
    }

    fn compile(&self, device: &wgpu::Device) -> Compiled {
        let entry = |binding: u32, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        };
        let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
        let block = match self.shader.block_place() {
            BlockPlace::Immediate => None,
            BlockPlace::Uniform => Some(entry(0, wgpu::BufferBindingType::Uniform)),
            BlockPlace::Storage => Some(entry(0, storage(true))),
        };
        let immediate_size = if block.is_none() { self.shader.block_bytes() as u32 } else { 0 };
        let operands = (1..).zip(self.shader.bindings()).map(|(at, of)| entry(at, storage(!of.is_written)));
        let entries = block.into_iter().chain(operands).collect::<Vec<_>>();
        let layout = device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size,
        });
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("recorded kernel"),
            source: wgpu::ShaderSource::Wgsl(self.shader.text().into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            // The bounds of memory are wgpu's to check; the shader has no memory of groups.
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        Compiled { pipeline, layout }
    }
}

/// Catches the errors that wgpu has meanwhile on this thread.
pub(crate) struct Scopes([wgpu::ErrorScopeGuard; 3]);

impl Scopes {
    pub(crate) fn push(device: &wgpu::Device) -> Self {
        use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
        Self([Validation, OutOfMemory, Internal].map(|filter| device.push_error_scope(filter)))
    }

    /// The first error.
    pub(crate) fn pop(self) -> Option<String> {
        let [first, second, third] = self.0;
        let errors = [third, second, first].map(|scope| ready(scope.pop()).flatten());
        errors.into_iter().flatten().next().map(|error| error.to_string())
    }
}
