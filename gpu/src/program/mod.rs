//! Programs: the shaders of recordings and those that a program has written. The device thread compiles them
//! at their first launch.

pub(crate) mod combine;
pub(crate) mod reduce;
pub(crate) mod status;
pub(crate) mod validate;

use crate::{ready, threads::shared::Shared};
use anabranch::device::{Launch, Shader};
use anabranch_kernel::{
    shader::{Printed, ShaderLaunch},
    wgsl::{BlockPlace, Combine, Dispatch, GROUP, Wgsl},
};
use smallvec::SmallVec;
use std::sync::OnceLock;

/// A program of a GPU.
#[derive(Debug)]
pub(crate) enum GpuProgram {
    Recording {
        code: Box<Code<Wgsl>>,
        /// The shaders that combine the results of leaves, for each reduction.
        combines: OnceLock<Result<Vec<Compiled>, String>>,
        /// The number of operands of the recording.
        operands: usize,
    },
    Shader {
        /// For launches in which each operand has one declared box.
        code: Box<Code<Printed>>,
        /// For the others. It is printed when it is needed.
        with_list: OnceLock<Box<Code<Printed>>>,
        shader: Shader,
        immediates: usize,
    },
}

/// A text in WGSL, and what the driver has made of it.
#[derive(Debug)]
pub(crate) struct Code<T> {
    pub(crate) text: T,
    /// Those of the text.
    bindings: Vec<Binding>,
    compiled: OnceLock<Result<Compiled, String>>,
}

/// A shader, as the driver has it.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

/// An operand that a program uses, as a storage buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    pub(crate) operand: usize,
    /// The bytes of an element.
    pub(crate) bytes: u64,
    pub(crate) is_written: bool,
}

const HAS_TEXT: &str = "a shader has a text for each launch";

/// What is needed to launch a program.
pub(crate) trait Launchable {
    fn text(&self) -> &str;
    /// The name of the entry point.
    fn entry(&self) -> &'static str;
    fn bindings(&self) -> Vec<Binding>;
    /// The buffers behind those of the bindings, for the results of leaves.
    fn reductions(&self) -> usize {
        0
    }
    fn block_place(&self) -> BlockPlace;
    fn block_bytes(&self) -> usize;
    /// Whether it has a status, as binding 0 of group 1.
    fn has_status(&self) -> bool;
    /// Whether the memory of a group is filled with zeros.
    fn zeroes_workgroup(&self) -> bool;
    fn dispatches(&self, launch: &Launch, most: u32) -> Result<Vec<Dispatch>, String>;
}

impl Launchable for Wgsl {
    fn text(&self) -> &str {
        Wgsl::text(self)
    }

    fn entry(&self) -> &'static str {
        "main"
    }

    fn bindings(&self) -> Vec<Binding> {
        use anabranch_kernel::Kind::{F64, I64, U64};
        let binding = |of: &anabranch_kernel::wgsl::Binding| Binding {
            operand: of.operand,
            bytes: if matches!(of.kind, F64 | I64 | U64) { 8 } else { 4 },
            is_written: of.is_written,
        };
        Wgsl::bindings(self).iter().map(binding).collect()
    }

    fn reductions(&self) -> usize {
        self.combines().len()
    }

    fn block_place(&self) -> BlockPlace {
        Wgsl::block_place(self)
    }

    fn block_bytes(&self) -> usize {
        Wgsl::block_bytes(self)
    }

    fn has_status(&self) -> bool {
        false
    }

    fn zeroes_workgroup(&self) -> bool {
        false
    }

    fn dispatches(&self, launch: &Launch, most: u32) -> Result<Vec<Dispatch>, String> {
        let extents: SmallVec<[_; 8]> = launch.operands.iter().map(|operand| operand.extent).collect();
        Wgsl::dispatches(self, launch.points, &extents, &launch.parameters, most)
            .map_err(|error| error.to_string())
    }
}

impl Launchable for Printed {
    fn text(&self) -> &str {
        Printed::text(self)
    }

    fn entry(&self) -> &'static str {
        Self::ENTRY
    }

    fn bindings(&self) -> Vec<Binding> {
        let binding = |(of, bytes): (anabranch_kernel::wgsl::Binding, u64)| Binding {
            operand: of.operand,
            bytes,
            is_written: of.is_written,
        };
        Printed::bindings(self).map(binding).collect()
    }

    fn block_place(&self) -> BlockPlace {
        Printed::block_place(self)
    }

    fn block_bytes(&self) -> usize {
        Printed::block_bytes(self)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn zeroes_workgroup(&self) -> bool {
        Printed::zeroes_workgroup(self)
    }

    fn dispatches(&self, launch: &Launch, most: u32) -> Result<Vec<Dispatch>, String> {
        let (extents, declared): (Vec<_>, Vec<_>) =
            launch.operands.iter().map(|operand| (operand.extent, operand.declared.clone())).unzip();
        let launch = ShaderLaunch {
            points: launch.points,
            extents: &extents,
            declared: &declared,
            parameters: &launch.parameters,
            groups: launch.groups,
        };
        Printed::dispatches(self, &launch, most).map_err(|error| error.to_string())
    }
}

impl GpuProgram {
    pub(crate) fn of_recording(shader: Wgsl, operands: usize) -> Self {
        Self::Recording { code: Box::new(Code::new(shader)), combines: OnceLock::new(), operands }
    }

    pub(crate) fn of_shader(shader: Shader, immediates: usize) -> Self {
        let code = Box::new(Code::new(shader.print(immediates, false)));
        Self::Shader { code, with_list: OnceLock::new(), shader, immediates }
    }

    /// The number of operands of a launch.
    pub(crate) fn operands(&self) -> usize {
        match self {
            Self::Recording { operands, .. } => *operands,
            Self::Shader { shader, .. } => shader.source().operands.len(),
        }
    }

    /// What a launch needs, and its bindings.
    pub(crate) fn of_launch(&self, launch: &Launch) -> (&dyn Launchable, &[Binding]) {
        match (self, self.code_of_shader(launch)) {
            (_, Some(code)) => (&code.text, &code.bindings),
            (Self::Recording { code, .. }, None) => (&code.text, &code.bindings),
            (Self::Shader { .. }, None) => unreachable!("{HAS_TEXT}"),
        }
    }

    /// The text for a launch, compiled; or what the compiler says, with the line.
    pub(crate) fn compiled(&self, launch: &Launch, shared: &Shared) -> Result<Compiled, String> {
        match (self, self.code_of_shader(launch)) {
            (_, Some(code)) => code.compiled(shared),
            (Self::Recording { code, .. }, None) => code.compiled(shared),
            (Self::Shader { .. }, None) => unreachable!("{HAS_TEXT}"),
        }
    }

    /// The shader of a recording, and those that combine the results of leaves, for each of its reductions
    /// unless it ends at leaves; `None` if it is none. Or what the compiler says.
    pub(crate) fn combines(&self, device: &wgpu::Device) -> Result<Option<(&Wgsl, &[Compiled])>, String> {
        let Self::Recording { code, combines, .. } = self else { return Ok(None) };
        let compiled = combines.get_or_init(|| {
            let errors = Scopes::push(device);
            let needed = code.text.combines().iter().filter(|_| !code.text.ends_at_leaves());
            let compiled = needed.map(|combine| compile_combine(combine, device)).collect();
            errors.pop().map_or(Ok(compiled), Err)
        });
        compiled.as_deref().map(|compiled| Some((&code.text, compiled))).map_err(Clone::clone)
    }

    fn code_of_shader(&self, launch: &Launch) -> Option<&Code<Printed>> {
        let Self::Shader { code, with_list, shader, immediates } = self else { return None };
        let has_one_box = launch.operands.iter().all(|operand| operand.declared.len() <= 1);
        let new = || Box::new(Code::new(shader.print(*immediates, true)));
        Some(if has_one_box { code } else { with_list.get_or_init(new) })
    }
}

impl<T: Launchable> Code<T> {
    fn new(text: T) -> Self {
        Self { bindings: text.bindings(), text, compiled: OnceLock::new() }
    }

    fn compiled(&self, shared: &Shared) -> Result<Compiled, String> {
        let compiled = self.compiled.get_or_init(|| {
            let errors = Scopes::push(&shared.device);
            let compiled = compile(&self.text, &self.bindings, shared);
            errors.pop().map_or(Ok(compiled), Err)
        });
        compiled.clone()
    }
}

fn compile(shader: &dyn Launchable, bindings: &[Binding], shared: &Shared) -> Compiled {
    let device = &shared.device;
    let entry = |binding: u32, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    };
    let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
    let block = match shader.block_place() {
        BlockPlace::Immediate => None,
        BlockPlace::Uniform => Some(entry(0, wgpu::BufferBindingType::Uniform)),
        BlockPlace::Storage => Some(entry(0, storage(true))),
    };
    let immediate_size = if block.is_none() { shader.block_bytes() as u32 } else { 0 };
    let operands = (1..).zip(bindings).map(|(at, of)| entry(at, storage(!of.is_written)));
    let leaves = (1..).skip(bindings.len()).take(shader.reductions()).map(|at| entry(at, storage(false)));
    let entries = block.into_iter().chain(operands).chain(leaves).collect::<Vec<_>>();
    let layout =
        device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
    let with_status = [Some(&layout), Some(&shared.status_layout)];
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: if shader.has_status() { &with_status } else { &with_status[..1] },
        immediate_size,
    });
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("kernel"),
        source: wgpu::ShaderSource::Wgsl(shader.text().into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some(shader.entry()),
        // The bounds of memory are wgpu's to check.
        compilation_options: wgpu::PipelineCompilationOptions {
            zero_initialize_workgroup_memory: shader.zeroes_workgroup(),
            ..wgpu::PipelineCompilationOptions::default()
        },
        cache: None,
    });
    Compiled { pipeline, layout }
}

/// What a device has.
pub(crate) struct Needs<'a> {
    pub(crate) has_f64: bool,
    pub(crate) has_i64: bool,
    pub(crate) limits: &'a wgpu::Limits,
}

impl Needs<'_> {
    /// Checks that the device has what a program needs.
    pub(crate) fn check(&self, program: &GpuProgram) -> Result<(), String> {
        let (needs_f64, needs_i64) = match program {
            GpuProgram::Recording { code, .. } => (code.text.needs_f64(), code.text.needs_i64()),
            GpuProgram::Shader { code, .. } => (code.text.needs_f64(), code.text.needs_i64()),
        };
        if needs_f64 && !self.has_f64 {
            return Err("it has no 64-bit floating-point numbers".to_string());
        }
        if needs_i64 && !self.has_i64 {
            return Err("it has no 64-bit integers".to_string());
        }
        let buffers = match program {
            GpuProgram::Recording { code, .. } => {
                let block = usize::from(code.text.block_place() == BlockPlace::Storage);
                code.bindings.len() + code.text.reductions() + block
            }
            // The status, and perhaps the block.
            GpuProgram::Shader { code, .. } => code.bindings.len() + 2,
        };
        let most = self.limits.max_storage_buffers_per_shader_stage;
        if buffers > most as usize {
            return Err(format!(
                "the kernel needs {buffers} storage buffers, and the device permits {most}: use fewer operands, or run the task on the host"
            ));
        }
        let [x, y, z] = match program {
            GpuProgram::Recording { .. } => [GROUP, 1, 1],
            GpuProgram::Shader { code, .. } => code.text.group(),
        };
        let limits = self.limits;
        let most = [
            limits.max_compute_workgroup_size_x,
            limits.max_compute_workgroup_size_y,
            limits.max_compute_workgroup_size_z,
        ];
        let all = limits.max_compute_invocations_per_workgroup;
        let product = u64::from(x) * u64::from(y) * u64::from(z);
        if [x, y, z].iter().zip(most).any(|(&size, most)| size > most) || product > u64::from(all) {
            let [most_x, most_y, most_z] = most;
            return Err(format!(
                "its groups have {z} × {y} × {x} invocations, and the device takes {most_z} × {most_y} × {most_x} or fewer, and {all} in all"
            ));
        }
        Ok(())
    }
}

/// Compiles a shader that combines.
fn compile_combine(combine: &Combine, device: &wgpu::Device) -> Compiled {
    let entry = |binding: u32, read_only| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &[entry(0, true), entry(1, false)],
    });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("results of leaves"),
        source: wgpu::ShaderSource::Wgsl(combine.text().into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("main"),
        // The shader reads no memory of the group that it has not set.
        compilation_options: wgpu::PipelineCompilationOptions {
            zero_initialize_workgroup_memory: false,
            ..wgpu::PipelineCompilationOptions::default()
        },
        cache: None,
    });
    Compiled { pipeline, layout }
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
