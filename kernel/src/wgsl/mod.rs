//! Recordings as compute shaders in WGSL, for devices that take them. This is text only: a device compiles it.
//!
//! A shader has one invocation for each point, in groups of [`GROUP`]; with reductions a group for each leaf of their tree
//! ([`Wgsl::combines`] says what comes then). [`Wgsl::bindings`] says which operands it wants. What differs
//! between launches is in the [block](Dispatch::block): the points, the extents, and the values of literals as raw bits. So a literal with
//! another value needs no other shader.
//!
//! # What the numbers are
//!
//! Integers are those of the processor, to the bit. So are loads, conversions, comparisons, minima, maxima, remainders and masks, as long as
//! the driver respects values that are not numbers and infinities. Vulkan, Metal and Direct3D permit more freedom with floats than the
//! processor takes:
//!
//! - A driver may make one operation of a product and a sum, with one rounding. WGSL cannot forbid that; a
//!   [precise](crate::Recording::precise) recording gives it no such product. (In a reduction the value of a point is rounded before it is
//!   added, in any case.)
//! - It may take numbers below the smallest normal one (1.2e-38 for `f32`) as zero, as inputs and as results.
//! - A quotient may be wrong by 2.5 units in the last place, a square root by 3.
//! - It may assume that no value is infinite or not a number. The shader tests the bits of an `f32` where it looks for these.
//! - Functions such as `sin` are approximations: `exp`, `ln`, `sin` and `cos` are those of the driver, whose absolute error may be 5e-4 for
//!   `sin` and `cos`; `tan`, `tanh`, `powf` and `atan2` are built from these and from polynomials. Of angles beyond some thousands, `sin`,
//!   `cos` and `tan` may be any number. The relative error of `powf` grows with the exponent of its result.
//!
//! With Mesa's lavapipe, each operator, root and rounding alone has the bits of the processor. Kernels of several operations on infinite
//! values and on values that are not numbers may have other results.
//!
//! WGSL has no functions of this sort for `f64`: [`WgslError::Unsupported`] names them.

pub(crate) mod block;
mod coordinates;
mod functions;
pub(crate) mod points;
mod print;
mod reduce;

pub use block::{BlockPlace, Dispatch};
pub use reduce::{COMBINED, Combine};

use crate::{fold::Fold, number::Kind, operation::Load, recording::Recording};
use block::Layout;

/// The number of points of a group.
pub const GROUP: u32 = 256;

/// The shader of a recording.
#[derive(Clone, Debug)]
pub struct Wgsl {
    text: String,
    bindings: Vec<Binding>,
    layout: Layout,
    loads: Vec<Load>,
    folds: Vec<Fold>,
    needs_f64: bool,
    needs_i64: bool,
    dimensions: usize,
    combines: Vec<Combine>,
    ends_at_leaves: bool,
}

/// An operand that the shader uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The number of the operand in the recording, from 0.
    pub operand: usize,
    /// The type of its elements.
    pub kind: Kind,
    /// Whether the shader writes it: it is bound as read and write, otherwise as read.
    pub is_written: bool,
}

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

impl Wgsl {
    /// The shader of a recording.
    ///
    /// # Errors
    /// [`WgslError::Unsupported`]: the recording has an operation that WGSL lacks.
    pub fn new(recording: &Recording) -> Result<Self, WgslError> {
        Self::with_immediates(recording, 0)
    }

    /// The shader of a recording, for a device that takes up to `bytes` bytes of immediate data with each dispatch. A block that is not
    /// larger, and has no numbers of 8 bytes, is there.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn with_immediates(recording: &Recording, bytes: usize) -> Result<Self, WgslError> {
        print::print(recording, bytes)
    }

    /// The shader. Its entry point is `main`, in groups of [`GROUP`] × 1 × 1.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The operands that the shader uses. All are storage buffers of group 0. The first one is binding 1, and so on; binding 0 is the
    /// [block](Dispatch::block), unless it is immediate data.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// Where the shader has its block.
    pub fn block_place(&self) -> BlockPlace {
        self.layout.place()
    }

    /// The bytes of a block, a multiple of 16.
    pub fn block_bytes(&self) -> usize {
        self.layout.bytes
    }

    /// Whether the shader computes with 64-bit floating-point numbers.
    pub fn needs_f64(&self) -> bool {
        self.needs_f64
    }

    /// Whether the shader computes with 64-bit integers. The remainder of `f64` needs them too.
    pub fn needs_i64(&self) -> bool {
        self.needs_i64
    }
}

/// The name of a type.
pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::F32 => "f32",
        Kind::F64 => "f64",
        Kind::I32 => "i32",
        Kind::U32 => "u32",
        Kind::I64 => "i64",
        Kind::U64 => "u64",
    }
}
