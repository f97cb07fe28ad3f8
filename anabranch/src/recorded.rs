//! What the closure of a [recorded kernel](crate::guide::recorded_kernels) works with: operands, and the
//! values that they give. A [`Recording`] is what the closure leaves, for [devices](crate::device).
//!
//! A closure needs none of these names. A function that computes with values does:
//!
//! ```
//! use anabranch::{
//!     prelude::*,
//!     recorded::{Input, Value},
//! };
//!
//! /// The sum of the four neighbours, with zeros outside.
//! fn neighbours<'t>(u: Input<'t, f32, 2>) -> Value<'t, f32> {
//!     let at = |offset| u.at_or(offset, 0.0);
//!     at([-1, 0]) + at([1, 0]) + at([0, -1]) + at([0, 1])
//! }
//!
//! let rt = Runtime::new()?;
//! let (u, sum) = (rt.buffer([3, 4]), rt.buffer([3, 4]));
//! rt.task("fill").over([3, 4]).write(&u, one_to_one()).each(|(u,)| u.set(1.0))?;
//! rt.task("sum")
//!     .over([3, 4])
//!     .read(&u, neighborhood([1, 1]))
//!     .write(&sum, one_to_one())
//!     .each(|(u, sum)| sum.set(neighbours(u)))?;
//! assert_eq!(rt.fence(&sum)?.wait()?.as_slice()[..5], [2.0, 3.0, 3.0, 2.0, 3.0]);
//! # Ok::<(), anabranch::Error>(())
//! ```

pub use anabranch_kernel::{
    Accumulator, Coordinate, Float, FoldState, FoldValues, Input, InputOutput, IntoValue, Mask, Number,
    Output, RecordError, Recording, Signed, Value,
};
