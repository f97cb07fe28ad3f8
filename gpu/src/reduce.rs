//! Reductions: the shader of a recording leaves a result for each leaf in a buffer, and another shader combines these, again and again
//! until there is one. That goes to the memory of the operand.

use crate::{memory::known, program::Compiled};
use anabranch::device::{DeviceMemory, Launch};
use anabranch_kernel::{
    Kind,
    wgsl::{Combine, Wgsl},
};

/// The bytes of a number.
pub(crate) fn width(kind: Kind) -> u64 {
    if matches!(kind, Kind::F64 | Kind::I64 | Kind::U64) { 8 } else { 4 }
}

/// A reduction of a launch.
pub(crate) struct PreparedReduction {
    pub(crate) combine: Compiled,
    /// The number of results of leaves, and the bytes of each.
    pub(crate) leaves: u64,
    pub(crate) width: u64,
    /// What gets the result.
    pub(crate) result: DeviceMemory,
}

/// The reductions of a launch of a shader, whose shaders of [`Wgsl::combines`] are compiled.
pub(crate) fn prepare(
    shader: &Wgsl,
    compiled: &[Compiled],
    launch: &Launch,
) -> Result<Vec<PreparedReduction>, String> {
    let leaves = shader.leaves(launch.points) as u64;
    let reduction = |(of, combine): (&Combine, &Compiled)| {
        let (operand, width) = (of.operand(), width(of.kind()));
        let result = launch.operands[operand].memory.clone();
        let has = known(&result)?.bytes();
        if has < width {
            return Err(format!("operand {operand} is a number of {width} bytes, and its memory has {has}"));
        }
        Ok(PreparedReduction { combine: combine.clone(), leaves, width, result })
    };
    shader.combines().iter().zip(compiled).map(reduction).collect()
}
