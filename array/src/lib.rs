#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! An [`Array`] is a buffer with one dimension, and a shape. Elementwise operations are recorded kernels over
//! the elements one after the other, which run on the host or on the device of the array. On the host
//! `from_fn` and random numbers are kernels in many chunks. All other operations are kernels with one chunk
//! there, whose parallel loops run on the threads of the runtime. Where
//! they cut the elements follows from the shape alone, so the results have the same bits on any number of
//! threads. A device that takes shaders runs most of them as shaders: the [guide] has the list.

#![forbid(unsafe_code)]

mod array;
mod arrays;
mod error;
#[doc = include_str!("guide.md")]
pub mod guide {}
mod host;
mod new_arrays;
mod numeric;
mod operations;
mod pending;
mod place;
mod random;
mod shaders;
mod shape;
mod slices;

pub use array::Array;
pub use arrays::Arrays;
pub use error::{ArrayError, Call, MAX_LEN};
pub use numeric::Numeric;
pub use operations::Found;
pub use pending::Pending;
pub use random::{Draw, Normal, Random};
