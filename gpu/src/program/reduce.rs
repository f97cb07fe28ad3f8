//! Reductions: the shader of a recording leaves a result for each leaf in a buffer, and another shader
//! combines these, again and again until there is one. That goes to the memory of the operand. If the
//! recording ends at leaves, the buffer is the memory of the operand.

use crate::{
    memory::{Budget, is_same, known},
    program::Compiled,
};
use anabranch::device::{DeviceMemory, Launch};
use anabranch_kernel::{
    Kind,
    wgsl::{Combine, Wgsl},
};
use std::sync::Arc;

/// The bytes of a number.
pub(crate) fn width(kind: Kind) -> u64 {
    if matches!(kind, Kind::F64 | Kind::I64 | Kind::U64) { 8 } else { 4 }
}

/// A reduction of a launch.
pub(crate) struct PreparedReduction {
    /// What combines the results of the leaves; `None` if they are what the operand gets.
    pub(crate) combine: Option<Compiled>,
    /// The number of results of leaves, and the bytes of each.
    pub(crate) leaves: u64,
    pub(crate) width: u64,
    /// What gets the result, or those of the leaves.
    pub(crate) result: DeviceMemory,
}

/// The reductions of a launch of a shader, whose shaders of [`Wgsl::combines`] are `compiled`, if it needs
/// them.
pub(crate) fn prepare(
    shader: &Wgsl,
    compiled: &[Compiled],
    launch: &Launch,
    budget: &Arc<Budget>,
) -> Result<Vec<PreparedReduction>, String> {
    let leaves = shader.leaves(launch.points) as u64;
    let reduction = |(at, of): (usize, &Combine)| {
        let (operand, width) = (of.operand(), width(of.kind()));
        let result = launch.operands[operand].memory.clone();
        let (has, combine) = (known(&result, budget)?.bytes(), compiled.get(at).cloned());
        let mut others = launch.operands.iter().enumerate().filter(|(other, _)| *other != operand);
        if combine.is_none() && others.any(|(_, other)| is_same(&other.memory, &result)) {
            return Err(format!(
                "operand {operand} gets results of leaves, and another one is the same buffer"
            ));
        }
        let numbers = if combine.is_some() { 1 } else { leaves };
        if has < numbers * width {
            return Err(format!(
                "operand {operand} gets {numbers} numbers of {width} bytes, and its memory has {has}"
            ));
        }
        Ok(PreparedReduction { combine, leaves, width, result })
    };
    shader.combines().iter().enumerate().map(reduction).collect()
}
