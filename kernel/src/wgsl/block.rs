//! The block: what differs between launches of one shader.

use super::{
    error::WgslError,
    layout::width,
    points::{HEAD_BYTES, Part, parts},
    text::{Binding, Wgsl},
};
use crate::{
    number::Scalar,
    operation::{Along, Edge, Load},
    recording::AccessAlong,
};
use std::mem;

/// A part of a launch: a dispatch of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The bytes of the block: see [`BlockPlace`](super::BlockPlace).
    pub block: Vec<u8>,
    /// The number of groups in each dimension of the dispatch.
    pub groups: [u32; 3],
}

/// Adds the bytes of a number.
pub(crate) fn push(bytes: &mut Vec<u8>, value: Scalar) {
    match value {
        Scalar::F32(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Scalar::F64(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Scalar::I32(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Scalar::U32(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Scalar::I64(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Scalar::U64(value) => bytes.extend_from_slice(&value.to_le_bytes()),
    }
}

impl Wgsl {
    /// The dispatches that make up a launch for the points from the first of `points` to below the second.
    /// `extents` are those of all operands of the recording, `parameters` its literals, and `most` is the
    /// number of groups that a device takes in each dimension.
    ///
    /// # Errors
    /// The launch has coordinates or elements that 32 bits do not hold, an edge of an empty buffer, or other
    /// operands or literals than the recording.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn dispatches(
        &self,
        points: [[usize; 3]; 2],
        extents: &[[usize; 3]],
        parameters: &[Scalar],
        most: u32,
    ) -> Result<Vec<Dispatch>, WgslError> {
        if !self.combines.is_empty() {
            return self.dispatch_leaves(points, extents, parameters, most);
        }
        let parts = parts(points, most)?;
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let mut block = Vec::with_capacity(self.layout.bytes);
        block.resize(HEAD_BYTES, 0);
        self.add_tail(&mut block, extents, parameters)?;
        self.check(points, extents, parameters)?;
        let last = parts.len() - 1;
        let dispatch = |(at, Part { head, groups }): (usize, Part)| {
            // Most launches have one part.
            let mut block = if at == last { mem::take(&mut block) } else { block.clone() };
            let words = block.chunks_exact_mut(4).zip(head);
            words.for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
            Dispatch { block, groups }
        };
        Ok(parts.into_iter().enumerate().map(dispatch).collect())
    }

    /// Refuses points whose elements are outside of an operand. A shader would give a zero there, or any
    /// other element.
    pub(super) fn check(
        &self,
        [min, max]: [[usize; 3]; 2],
        extents: &[[usize; 3]],
        parameters: &[Scalar],
    ) -> Result<(), WgslError> {
        let here = [0, 1, 2].map(|dim| Along::point(dim, 0));
        let written = self.bindings.iter().filter(|binding| binding.is_written);
        let written = written.map(|&Binding { operand, kind, .. }| Load {
            operand,
            kind,
            along: here,
            edge: Edge::Inside,
        });
        for load in self.loads.iter().copied().chain(written) {
            let (operand, extent) = (load.operand, extents[load.operand]);
            let reached = load.reached(&self.folds, parameters);
            if reached.iter().any(|along| along.numbers.is_empty()) {
                continue;
            }
            let of_point = |along: &AccessAlong, of: [usize; 3], without: usize| {
                along.point.map_or(without, |dim| of[dim]) as isize
            };
            let from = reached.each_ref().map(|along| of_point(along, min, 0) + along.numbers.start);
            let end = reached.each_ref().map(|along| of_point(along, max, 1) + along.numbers.end - 1);
            // What is added to the offsets.
            let sums = [0, 1, 2].map(|dim| (end[dim] - load.along[dim].offset) as usize);
            if sums.iter().any(|&end| end > 1 << 32) {
                return Err(WgslError::TooManyPoints { end: sums });
            }
            let is_outside = (0..3).any(|dim| from[dim] < 0 || end[dim] > extent[dim] as isize);
            if load.edge == Edge::Inside && is_outside {
                return Err(WgslError::Outside { operand, extent, from, end });
            }
        }
        Ok(())
    }

    /// Adds the part of the block that is equal in all dispatches of a launch, behind the head.
    pub(super) fn add_tail(
        &self,
        bytes: &mut Vec<u8>,
        extents: &[[usize; 3]],
        parameters: &[Scalar],
    ) -> Result<(), WgslError> {
        for &operand in &self.layout.extents {
            let Some(&extent) = extents.get(operand) else {
                let expected = format!("an operand {operand}");
                return Err(WgslError::Mismatch { expected, found: format!("{} operands", extents.len()) });
            };
            let elements = extent.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
            if elements.is_none_or(|elements| elements > u32::MAX as usize)
                || extent.iter().any(|&size| size > u32::MAX as usize)
            {
                return Err(WgslError::TooManyElements { operand, extent });
            }
            extent.iter().for_each(|&size| bytes.extend_from_slice(&(size as u32).to_le_bytes()));
        }
        for load in &self.loads {
            if matches!(load.edge, Edge::Clamped | Edge::Periodic) && extents[load.operand].contains(&0) {
                return Err(WgslError::Empty { operand: load.operand });
            }
        }
        for (_, load) in &self.layout.shifts {
            let extent = extents[load.operand];
            let shifts = [0, 1, 2].map(|dim| load.along[dim].offset.rem_euclid(extent[dim] as isize) as u32);
            shifts.iter().for_each(|shift| bytes.extend_from_slice(&shift.to_le_bytes()));
        }
        for &(number, kind) in &self.layout.parameters {
            let found = parameters.get(number as usize).copied();
            let Some(value) = found.filter(|value| value.kind() == kind) else {
                let expected = format!("a literal {number} of the type {kind}");
                let found = found.map_or("none".to_string(), |value| format!("{value:?}"));
                return Err(WgslError::Mismatch { expected, found });
            };
            bytes.resize(bytes.len().next_multiple_of(width(kind)), 0);
            push(bytes, value);
        }
        bytes.resize(self.layout.bytes, 0);
        Ok(())
    }
}
