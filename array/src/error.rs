//! Errors of arrays.

use std::panic::Location;

/// What a call of an operation was, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub operation: &'static str,
    /// The line of the program that calls it.
    pub at: &'static Location<'static>,
}

impl Call {
    /// The call of the function that calls this.
    #[track_caller]
    pub(crate) fn here(operation: &'static str) -> Self {
        Self { operation, at: Location::caller() }
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` ({}:{})", self.operation, self.at.file(), self.at.line())
    }
}

/// Why an operation on arrays is refused, or what has failed.
///
/// What is wrong with the arguments is an error of the call. What fails while an operation runs is an error
/// where the program waits for its results, as with all tasks: [`Runtime`](Self::Runtime), with the chain of
/// causes.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// Two arrays do not fit.
    #[error("{call}: arrays of the shapes {left:?} and {right:?}; {rule}")]
    Shapes {
        /// The call.
        call: Call,
        /// The shape of the first array.
        left: Vec<usize>,
        /// The shape of the other array.
        right: Vec<usize>,
        /// Which shapes fit.
        rule: &'static str,
    },

    /// A number of elements does not fit a shape.
    #[error("{call}: the shape {shape:?} has {expected} elements, but there are {found}")]
    Length {
        /// The call.
        call: Call,
        /// The shape.
        shape: Vec<usize>,
        /// The number of elements of the shape.
        expected: usize,
        /// The number of elements that there are.
        found: usize,
    },

    /// A shape has too many elements.
    #[error("{call}: the shape {shape:?} has {MAX_LEN} elements or more: split the array")]
    TooLarge {
        /// The call.
        call: Call,
        /// The shape.
        shape: Vec<usize>,
    },

    /// An array has no such axis.
    #[error("{call}: there is no axis {axis} in the shape {shape:?}: the first axis is 0")]
    Axis {
        /// The call.
        call: Call,
        /// The axis.
        axis: usize,
        /// The shape of the array.
        shape: Vec<usize>,
    },

    /// A list of axes is not one of all axes.
    #[error("{call}: the axes {axes:?} are no permutation: name each axis once, beginning with 0")]
    Permutation {
        /// The call.
        call: Call,
        /// The axes.
        axes: Vec<usize>,
    },

    /// An array has no such element.
    #[error("{call}: there is no element {index:?} in the shape {shape:?}")]
    Index {
        /// The call.
        call: Call,
        /// The coordinates.
        index: Vec<usize>,
        /// The shape of the array.
        shape: Vec<usize>,
    },

    /// The arrays of an operation are in different places.
    #[error(
        "{call}: one array is on {left}, the other one on {right}: move one of them with `on` or `on_host`"
    )]
    Places {
        /// The call.
        call: Call,
        /// The place of the first array.
        left: String,
        /// The place of the other array.
        right: String,
    },

    /// An error of the runtime: a task that has failed, or no memory.
    #[error(transparent)]
    Runtime(#[from] anabranch::Error),
}

/// An array has fewer elements: their numbers are `u32`, as the coordinates of recorded kernels are, and the
/// last one stands for none.
pub const MAX_LEN: usize = u32::MAX as usize;
