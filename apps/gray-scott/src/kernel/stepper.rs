//! [`Stepper`]: the public interface of the kernel.

use super::{
    coefficients::Coefficients,
    output::Output,
    problem::{LINE, Problem},
    simd::{Simd, Token},
    wavefront::Wavefront,
};
use crate::model::{Edges, Params};
use std::ops::Range;

/// The part of the level 2 cache that scratch may take, in bytes.
const CACHE_BUDGET: usize = 1_600_000;

/// Advances bands of rows of a grid; see the [module](super).
///
/// ```
/// use gray_scott::kernel::{Output, Simd, Stepper};
/// use gray_scott::model::{Edges, Params, initial};
///
/// struct Fields { u: Vec<f32>, v: Vec<f32>, cols: usize }
/// impl Output for Fields {
///     fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]) {
///         let cells = row * self.cols..(row + 1) * self.cols;
///         (&mut self.u[cells.clone()], &mut self.v[cells])
///     }
/// }
///
/// let [rows, cols] = [64, 100];
/// let (u, v) = initial(rows, cols, None);
/// let stepper = Stepper::new(Simd::detect(), Params::default(), Edges::Absorbing, [rows, cols]);
/// let mut scratch = vec![0.0; stepper.scratch_len(8)];
/// let mut after = Fields { u: vec![0.0; rows * cols], v: vec![0.0; rows * cols], cols };
/// let row = |row: usize| (&u[row * cols..][..cols], &v[row * cols..][..cols]);
/// stepper.advance(0..rows, 8, row, &mut after, &mut scratch);
/// assert!(after.v.iter().sum::<f32>() > 0.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stepper {
    problem: Problem,
}

impl Stepper {
    /// A stepper for a grid of `[rows, cols]`.
    ///
    /// # Panics
    /// If this processor lacks `simd` ([`Simd::is_available`]) or the grid has no cells.
    pub fn new(simd: Simd, params: Params, edges: Edges, [rows, cols]: [usize; 2]) -> Self {
        assert!(rows > 0 && cols > 0, "a grid of {rows} x {cols} has no cells");
        let token = Token::new(simd).unwrap_or_else(|| panic!("this processor has no {simd}"));
        let coefficients = Coefficients::new(params);
        Self { problem: Problem { token, coefficients, edges, rows, cols } }
    }

    /// The instruction set in use.
    pub fn simd(&self) -> Simd {
        self.problem.token.simd()
    }

    /// How many `f32`s of scratch [`advance`](Self::advance) needs for `steps` steps.
    pub fn scratch_len(&self, steps: usize) -> usize {
        // One line more, so that scratch can begin at a multiple of a line; a row of zeros; two rows of both
        // species for each step.
        LINE + self.problem.stride() * (1 + 4 * steps)
    }

    /// The fastest number of steps in one call: as many as have their scratch in the level 2 cache, 16 at
    /// most.
    pub fn preferred_steps(&self) -> usize {
        (CACHE_BUDGET / (4 * self.problem.stride() * size_of::<f32>())).clamp(1, 16)
    }

    /// The index of the first value that is infinite or NaN.
    pub fn first_non_finite(&self, values: &[f32]) -> Option<usize> {
        if self.problem.token.all_finite(values) {
            return None;
        }
        values.iter().position(|value| !value.is_finite())
    }

    /// Advances the rows `band` of the grid by `steps` steps.
    ///
    /// `input` gives U and V of a row of the state before, in full width. It is called for the rows of the
    /// band and those within `steps` of it. Instead of rows outside the grid it is called for rows from the
    /// opposite side if the edges are periodic, and for none otherwise. `output` is called for each row of
    /// the band. The contents of `scratch` do not matter; scratch that starts at a multiple of 64 bytes is
    /// fastest.
    ///
    /// # Panics
    /// If the band reaches outside the grid, a row is not as wide as the grid, or `scratch` is shorter than
    /// [`scratch_len`](Self::scratch_len).
    pub fn advance<'a>(
        &self,
        band: Range<usize>,
        steps: usize,
        input: impl Fn(usize) -> (&'a [f32], &'a [f32]),
        output: &mut impl Output,
        scratch: &mut [f32],
    ) {
        assert!(band.end <= self.problem.rows, "band {band:?} reaches outside of {} rows", self.problem.rows);
        assert!(scratch.len() >= self.scratch_len(steps), "scratch is too short: {}", scratch.len());
        if band.is_empty() {
            return;
        }
        if steps == 0 {
            return self.copy(band, input, output);
        }
        let skip = scratch.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let (zeros, scratch) = scratch[skip..].split_at_mut(self.problem.stride());
        let zeros = &mut zeros[..self.problem.cols];
        zeros.fill(0.0);
        let band = band.start as isize..band.end as isize;
        let blocks = &mut scratch[..4 * steps * self.problem.stride()];
        Wavefront { problem: &self.problem, band, steps, zeros }.run(blocks, input, output);
    }

    fn copy<'a>(
        &self,
        band: Range<usize>,
        input: impl Fn(usize) -> (&'a [f32], &'a [f32]),
        output: &mut impl Output,
    ) {
        for row in band {
            let ((from_u, from_v), (to_u, to_v)) = (input(row), output.rows_mut(row));
            to_u.copy_from_slice(from_u);
            to_v.copy_from_slice(from_v);
        }
    }
}
