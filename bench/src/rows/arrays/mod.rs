//! The benchmarks of arrays, kernels and synchronisation of Metal.jl, under their names, with their sizes:
//! what one call of our interface takes that does the same, until its result is there. The memory of the
//! arrays is that of the best GPU, or of the host if there is no GPU.
//!
//! Julia's arrays have the first axis contiguous and ours the last, so `dims=1` is our last axis, and 512 ×
//! 1000 there is 1000 × 512 here.

mod bed;
mod elementwise;
mod folds;
mod kernels;
mod memory;
mod start;

use crate::row::Row;

pub fn rows() -> Vec<Row> {
    [folds::rows(), elementwise::rows(), memory::rows(), kernels::rows(), start::rows()]
        .into_iter()
        .flatten()
        .collect()
}
