//! Recordings as compute shaders in WGSL, for devices that take them. This is text only: a device compiles
//! it.
//!
//! A shader has an invocation for each point, or for several of a row in large launches, in groups of
//! [`GROUP`]; with reductions a group for each leaf of their tree ([`Wgsl::combines`] says what comes then).
//! [`Wgsl::bindings`] says which operands it wants. What differs between launches is in the
//! [block](Dispatch::block): the points, the extents, and the values of literals as raw bits. So a literal
//! with another value needs no other shader.
//!
//! # What the numbers are
//!
//! Integers are those of the processor, to the bit. So are loads, conversions, comparisons, minima, maxima,
//! remainders and masks, as long as the driver respects NaN and infinities. Vulkan, Metal and Direct3D permit
//! more freedom with floats than the processor takes:
//!
//! - A driver may make one operation of a product and a sum, with one rounding. WGSL cannot forbid that; a
//!   [precise](crate::Recording::precise) recording gives it no such product. (In a reduction the value of a
//!   point is rounded before it is added, in any case.)
//! - It may take numbers below the smallest normal one (1.2e-38 for `f32`) as zero, as inputs and as results.
//! - A quotient may be wrong by 2.5 units in the last place, a square root by 3.
//! - It may assume that no value is infinite or NaN. The shader tests the bits of an `f32` where it looks for
//!   these.
//! - Functions such as `sin` are approximations: `exp`, `ln`, `sin` and `cos` are those of the driver, whose
//!   absolute error may be 5e-4 for `sin` and `cos`; `tan`, `tanh`, `powf` and `atan2` are built from these
//!   and from polynomials. Of angles beyond some thousands, `sin`, `cos` and `tan` may be any number. The
//!   relative error of `powf` grows with the exponent of its result.
//!
//! With Mesa's lavapipe, each operator, root and rounding alone has the bits of the processor. Kernels of
//! several operations on infinite values and on NaN may have other results.
//!
//! WGSL has no functions of this sort for `f64`: [`WgslError::Unsupported`] names them.

pub(crate) mod block;
mod combine;
mod coordinates;
mod error;
mod functions;
pub(crate) mod layout;
mod names;
pub(crate) mod points;
mod print;
mod reduce;
mod text;

pub use block::Dispatch;
pub use combine::{COMBINED, Combine};
pub use error::WgslError;
pub use layout::BlockPlace;
pub(crate) use names::name;
pub use points::GROUP;
pub use text::{Binding, Wgsl};

use crate::recording::Recording;

impl Wgsl {
    /// The shader of a recording.
    ///
    /// # Errors
    /// [`WgslError::Unsupported`]: the recording has an operation that WGSL lacks.
    pub fn new(recording: &Recording) -> Result<Self, WgslError> {
        Self::with_immediates(recording, 0)
    }

    /// The shader of a recording, for a device that takes up to `bytes` bytes of immediate data with each
    /// dispatch. A block that is not larger, and has no numbers of 8 bytes, is there.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn with_immediates(recording: &Recording, bytes: usize) -> Result<Self, WgslError> {
        print::print(recording, bytes)
    }
}
