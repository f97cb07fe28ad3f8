//! The constants of a [`Stepper`](super::Stepper): model, grid and instruction set.

use super::{coefficients::Coefficients, simd::Token};
use crate::model::Edges;

/// `f32`s in a cache line.
pub(super) const LINE: usize = 16;

/// The constants of a stepper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub token: Token,
    pub coefficients: Coefficients,
    pub edges: Edges,
    pub rows: usize,
    pub cols: usize,
}

impl Problem {
    /// `f32`s from one row in scratch to the next: whole cache lines, and an odd number of them, so that
    /// equal columns of different rows do not compete for the same sets of the caches.
    pub fn stride(&self) -> usize {
        (self.cols.div_ceil(LINE) | 1) * LINE
    }
}
