//! The steps of a batch, checked: nothing of a batch is done if one of its steps is wrong. What the functions
//! of its copies do is seen later.

use super::shared::Shared;
use crate::{
    memory::{self, known},
    program::{
        Compiled, GpuProgram,
        reduce::{self, PreparedReduction},
    },
};
use anabranch::device::{Batch, DeviceError, DeviceMemory, DeviceStep, Download, Launch, Run, Upload};
use anabranch_kernel::wgsl::{BlockPlace, Dispatch};

/// A step that can be encoded.
pub(crate) enum Prepared {
    Upload(Upload),
    Download(Download),
    Launch(PreparedLaunch),
}

/// A launch that can be encoded.
pub(crate) struct PreparedLaunch {
    pub(crate) compiled: Compiled,
    pub(crate) dispatches: Vec<Dispatch>,
    /// Whether the blocks of the dispatches are in the commands, and need no buffer.
    pub(crate) has_immediates: bool,
    /// Whether the program has a status.
    pub(crate) has_status: bool,
    /// The memory of each binding, and a second memory which it is copied to before: wgpu binds no buffer as
    /// read and as written.
    pub(crate) operands: Vec<(DeviceMemory, Option<DeviceMemory>)>,
    pub(crate) reductions: Vec<PreparedReduction>,
}

impl PreparedLaunch {
    /// Whether the launch has a status, which it copies back.
    pub(crate) fn reports(&self) -> bool {
        self.has_status && !self.dispatches.is_empty()
    }
}

/// Checks the steps, and compiles the programs of launches.
pub(crate) fn prepare(shared: &Shared, batch: Batch) -> Result<Vec<Prepared>, DeviceError> {
    let failed = |why: String| DeviceError::Failed { device: shared.info.name.clone(), why };
    let prepared = batch.steps.into_iter().map(|step| match step {
        DeviceStep::Launch(launch) => prepare_launch(shared, launch).map(Prepared::Launch),
        DeviceStep::Upload(step) => {
            check(shared, &step.to, &step.runs).map(|()| Prepared::Upload(step)).map_err(failed)
        }
        DeviceStep::Download(step) => {
            check(shared, &step.from, &step.runs).map(|()| Prepared::Download(step)).map_err(failed)
        }
    });
    prepared.collect()
}

fn check(shared: &Shared, memory: &DeviceMemory, runs: &[Run]) -> Result<(), String> {
    let bytes = known(memory, &shared.budget)?.bytes();
    for run in runs {
        let is_inside = run.offset.checked_add(run.bytes).is_some_and(|end| end <= bytes);
        if !is_inside || run.offset % 4 != 0 || run.bytes % 4 != 0 {
            return Err(format!(
                "{} bytes from {} on are no run of a memory of {bytes} bytes: a run is inside, and its numbers are multiples of 4",
                run.bytes, run.offset
            ));
        }
    }
    Ok(())
}

fn prepare_launch(shared: &Shared, launch: Launch) -> Result<PreparedLaunch, DeviceError> {
    let failed = |why: String| DeviceError::Failed { device: shared.info.name.clone(), why };
    let Some(program) = launch.program.inner::<GpuProgram>() else {
        return Err(failed("a launch has a program of another device".to_string()));
    };
    if launch.operands.len() != program.operands() {
        let (has, expects) = (launch.operands.len(), program.operands());
        return Err(failed(format!("a launch has {has} operands, and its program has {expects}")));
    }
    let compiled = program.compiled(&launch, shared).map_err(failed)?;
    let (of_launch, bindings) = program.of_launch(&launch);
    let most = shared.limits.max_compute_workgroups_per_dimension;
    let dispatches = of_launch.dispatches(&launch, most).map_err(failed)?;
    let is_same =
        |a: usize, b: usize| memory::is_same(&launch.operands[a].memory, &launch.operands[b].memory);
    let mut operands = Vec::with_capacity(bindings.len());
    for binding in bindings {
        let operand = &launch.operands[binding.operand];
        let memory = known(&operand.memory, &shared.budget).map_err(failed)?;
        let elements = operand.extent.iter();
        let needed = elements.fold(binding.bytes, |bytes, &size| bytes.saturating_mul(size as u64));
        if needed > memory.bytes() {
            let (number, has) = (binding.operand, memory.bytes());
            return Err(failed(format!("operand {number} has {needed} bytes, and its memory has {has}")));
        }
        let mut others = bindings.iter().filter(|other| other.operand != binding.operand);
        let twice = others.find(|other| other.is_written && is_same(other.operand, binding.operand));
        let copy = match twice {
            Some(other) if binding.is_written => {
                let (one, two) = (binding.operand, other.operand);
                return Err(failed(format!(
                    "a launch writes operands {one} and {two}, which are one buffer"
                )));
            }
            Some(_) => Some(DeviceMemory::new(memory.bytes(), shared.budget.take(memory.bytes())?)),
            None => None,
        };
        operands.push((operand.memory.clone(), copy));
    }
    let has_immediates = of_launch.block_place() == BlockPlace::Immediate;
    let has_status = of_launch.has_status();
    let reductions = match program.combines(&shared.device).map_err(failed)? {
        Some((shader, combines)) => {
            reduce::prepare(shader, combines, &launch, &shared.budget).map_err(failed)?
        }
        None => Vec::new(),
    };
    Ok(PreparedLaunch { compiled, dispatches, has_immediates, has_status, operands, reductions })
}
