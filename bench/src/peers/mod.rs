//! The other side: programs that ours is compared with.
//!
//! Peers from crates are called in the rows that measure them. Peers in C++ and Python are [`program`]s of
//! their own. A longer peer in Rust has a module here.

#[cfg(feature = "gpu")]
pub mod bare_wgpu;
#[cfg(feature = "gpu")]
pub mod cupy;
pub mod kernel_gray_scott;
pub mod ndarray_gray_scott;
pub mod pools;
pub mod program;
