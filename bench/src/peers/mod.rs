//! The other side: what ours is compared with.
//!
//! Peers from crates are called where they are measured. Those in C++ are [`program`]s of their own; longer Rust
//! peers have a module here.

pub mod ndarray_gray_scott;
pub mod program;
