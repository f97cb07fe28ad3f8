//! What is wrong with a recording.

use std::panic::Location;

/// Why a recording cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The kernel never sets an element that it must write.
    #[error(
        "a recorded kernel never sets operand {operand}, counted from 0 in the order of the declaration: call `set` once"
    )]
    NeverSet {
        /// The number of the operand, in the order of the declaration, from 0.
        operand: usize,
    },

    /// The kernel sets an element twice.
    #[error(
        "a recorded kernel sets operand {operand} twice, at {first} and at {second}: select the value first"
    )]
    SetTwice {
        /// The number of the operand, in the order of the declaration, from 0.
        operand: usize,
        /// The first call.
        first: &'static Location<'static>,
        /// The second call.
        second: &'static Location<'static>,
    },

    /// The kernel never combines a value into an accumulator.
    #[error(
        "a recorded kernel never combines a value into operand {operand}, counted from 0 in the order of the declaration: call `combine` once"
    )]
    NeverCombined {
        /// The number of the operand, in the order of the declaration, from 0.
        operand: usize,
    },

    /// The kernel combines two values of one point.
    #[error(
        "a recorded kernel combines two values of a point into operand {operand}, at {first} and at {second}: combine one, computed from both"
    )]
    CombinedTwice {
        /// The number of the operand, in the order of the declaration, from 0.
        operand: usize,
        /// The first call.
        first: &'static Location<'static>,
        /// The second call.
        second: &'static Location<'static>,
    },

    /// An offset is larger than any buffer.
    #[error("{at}: the offset {offset:?} is too large: choose one smaller than the buffer")]
    OffsetTooLarge {
        /// The offset, padded with zeros at the front.
        offset: [isize; 3],
        /// The call.
        at: &'static Location<'static>,
    },

    /// A coordinate is larger than 32 bits hold.
    #[error("{at}: the number {number} is too large: up to 4294967295 is possible")]
    NumberTooLarge {
        /// The number.
        number: usize,
        /// The call.
        at: &'static Location<'static>,
    },

    /// A value that a fold computes in its iterations is used outside of it.
    #[error(
        "a value that the fold at {fold} computes in its iterations is used outside of it: make it a part of what the closure returns"
    )]
    OutsideOfFold {
        /// The fold.
        fold: &'static Location<'static>,
    },

    /// A coordinate is the sum of two coordinates of the point, or of two counters.
    #[error(
        "{at}: a coordinate is the sum of at most one coordinate of the point, one counter of a fold and one number"
    )]
    SumOfCoordinates {
        /// The sum.
        at: &'static Location<'static>,
    },

    /// A point has no coordinate along this dimension.
    #[error("{at}: the index space has {dimensions} dimensions, and no dimension {dimension}")]
    NoSuchDimension {
        /// The dimension.
        dimension: usize,
        /// The number of dimensions.
        dimensions: usize,
        /// The call.
        at: &'static Location<'static>,
    },
}
