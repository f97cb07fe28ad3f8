//! Times of operations that have a result, and their units.

use std::hint::black_box;

use crate::harness::Load;

/// Nanoseconds in a millisecond.
pub const MS: f64 = 1e6;

/// Times an operation in nanoseconds. The compiler must compute its result.
pub fn time<R>(load: Load, mut operation: impl FnMut() -> R) -> Vec<f64> {
    load.time(|| {
        black_box(operation());
    })
}

/// Converts figures to a unit that is `unit` times as large.
pub fn scaled(figures: Vec<f64>, unit: f64) -> Vec<f64> {
    figures.into_iter().map(|figure| figure / unit).collect()
}
