//! Why a recording has no shader, or why a shader cannot be launched.

use crate::number::Kind;

/// Why a recording has no shader, or why a shader cannot be launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WgslError {
    /// WGSL has no such operation.
    #[error("WGSL has no `{operation}` for {kind}")]
    Unsupported {
        /// The operation.
        operation: String,
        /// The type of its result.
        kind: Kind,
    },
    /// A buffer has more elements than indices of 32 bits reach.
    #[error("operand {operand} has the extent {extent:?}: a shader reaches 4294967295 elements")]
    TooManyElements {
        /// The number of the operand, from 0.
        operand: usize,
        /// The extent of its buffer.
        extent: [usize; 3],
    },
    /// The points have coordinates of 2³² or more.
    #[error("a shader has no points up to {end:?}: each coordinate must be below 4294967296")]
    TooManyPoints {
        /// The point behind the last one.
        end: [usize; 3],
    },
    /// A point leads out of a buffer that the kernel sets, or takes elements of without an edge.
    #[error("the points from {from:?} to {end:?} lead out of operand {operand}, whose extent is {extent:?}")]
    Outside {
        /// The number of the operand, from 0.
        operand: usize,
        /// The extent of its buffer.
        extent: [usize; 3],
        /// The first element that is needed.
        from: [isize; 3],
        /// The element behind the last one that is needed.
        end: [isize; 3],
    },
    /// A buffer has no elements, and the edge of a load takes the nearest one, or the one on the other side.
    #[error("operand {operand} is empty, and has no element at its edge")]
    Empty {
        /// The number of the operand, from 0.
        operand: usize,
    },
    /// The operands or literals are not those of the recording.
    #[error("the shader has {expected}, and the launch has {found}")]
    Mismatch {
        /// What the recording has.
        expected: String,
        /// What the launch has.
        found: String,
    },
}
