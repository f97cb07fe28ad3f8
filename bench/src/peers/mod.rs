//! The other side: programs that ours is compared with.
//!
//! Peers from crates are called in the rows that measure them. Peers in C++ are [`program`]s of their own. A longer peer
//! in Rust has a module here.

pub mod ndarray_gray_scott;
pub mod pools;
pub mod program;

/// Celerity 0.7 on SimSYCL, whose figures are quoted.
pub const CELERITY: &str = "Celerity 0.7";
