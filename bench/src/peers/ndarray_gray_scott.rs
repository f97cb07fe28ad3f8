//! Gray-Scott, written in the usual way with rayon and ndarray: two pairs of padded `f32` arrays, a parallel
//! loop over rows, and an inner loop over slices that the compiler vectorises, for any x86-64 processor or
//! for AVX-512.

use ndarray::{Array2, ArrayViewMut2, Slice, Zip};

use super::program::NO_AVX512;
use crate::harness::LeftOut;

const DU: f32 = 0.1;
const DV: f32 = 0.05;
const FEED: f32 = 0.014;
const KILL: f32 = 0.054;
const DT: f32 = 1.0;

/// The vector instructions of the inner loop.
#[derive(Clone, Copy, Debug)]
pub enum Vectors {
    /// Those that every processor of this architecture has.
    Baseline,
    /// AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512(pulp::x86::V4),
}

impl Vectors {
    /// AVX-512.
    ///
    /// # Errors
    /// If this processor has none.
    pub fn avx512() -> Result<Self, LeftOut> {
        #[cfg(target_arch = "x86_64")]
        if let Some(token) = pulp::x86::V4::try_new() {
            return Ok(Self::Avx512(token));
        }
        Err(LeftOut { peer: "ndarray".into(), why: NO_AVX512.into() })
    }
}

/// U and V with a border of zeros, one cell wide.
struct Species {
    u: Array2<f32>,
    v: Array2<f32>,
}

impl Species {
    fn zeros(rows: usize, cols: usize) -> Self {
        let padded = (rows + 2, cols + 2);
        Self { u: Array2::zeros(padded), v: Array2::zeros(padded) }
    }
}

/// A simulation with absorbing edges and the usual parameters.
pub struct Simulation {
    now: Species,
    next: Species,
}

impl Simulation {
    /// Starts with a rectangle of V in a field of U, as `gray-scott` does.
    pub fn new([rows, cols]: [usize; 2]) -> Self {
        let mut now = Species::zeros(rows, cols);
        interior(&mut now.u).fill(1.0);
        let spot = [
            Slice::from((rows * 7 / 16).saturating_sub(4)..(rows * 8 / 16).saturating_sub(4)),
            Slice::from(cols * 7 / 16..cols * 8 / 16),
        ];
        for (species, value) in [(&mut now.u, 0.0), (&mut now.v, 1.0)] {
            interior(species).slice_each_axis_mut(|axis| spot[axis.axis.index()]).fill(value);
        }
        Self { now, next: Species::zeros(rows, cols) }
    }

    /// Computes one time step on the current rayon pool.
    pub fn step(&mut self, vectors: Vectors) {
        let Species { u, v } = &self.now;
        let mut next_u = interior(&mut self.next.u);
        let mut next_v = interior(&mut self.next.v);
        Zip::indexed(next_u.rows_mut()).and(next_v.rows_mut()).par_for_each(|y, next_u, next_v| {
            let next_u = next_u.into_slice().expect("rows are contiguous");
            let next_v = next_v.into_slice().expect("rows are contiguous");
            let row = Row { u: three_rows(u, y), v: three_rows(v, y), next_u, next_v };
            match vectors {
                Vectors::Baseline => row.update(),
                #[cfg(target_arch = "x86_64")]
                Vectors::Avx512(token) => token.vectorize(row),
            }
        });
        std::mem::swap(&mut self.now, &mut self.next);
    }
}

fn interior(padded: &mut Array2<f32>) -> ArrayViewMut2<'_, f32> {
    padded.slice_each_axis_mut(|_| Slice::new(1, Some(-1), 1))
}

fn three_rows(padded: &Array2<f32>, y: usize) -> [&[f32]; 3] {
    [y, y + 1, y + 2].map(|y| padded.row(y).to_slice().expect("rows are contiguous"))
}

/// A row to be computed from the three rows around it.
struct Row<'a> {
    u: [&'a [f32]; 3],
    v: [&'a [f32]; 3],
    next_u: &'a mut [f32],
    next_v: &'a mut [f32],
}

impl Row<'_> {
    /// Updates the row. Zipped windows need no bounds checks, so the compiler vectorises the loop.
    #[inline(always)]
    fn update(self) {
        let Self { u, v, next_u, next_v } = self;
        let us = u[0].windows(3).zip(u[1].windows(3)).zip(u[2].windows(3));
        let vs = v[0].windows(3).zip(v[1].windows(3)).zip(v[2].windows(3));
        let next = next_u.iter_mut().zip(next_v);
        for ((((u0, u1), u2), ((v0, v1), v2)), (next_u, next_v)) in us.zip(vs).zip(next) {
            let (u, v) = (u1[1], v1[1]);
            let reaction = u * v * v;
            *next_u = u + DT * (DU * laplacian(u0, u1, u2) - reaction + FEED * (1.0 - u));
            *next_v = v + DT * (DV * laplacian(v0, v1, v2) + reaction - (FEED + KILL) * v);
        }
    }
}

/// The instructions that the compiler may use are those of the caller, `vectorize`.
#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.update();
    }
}

#[inline(always)]
fn laplacian(above: &[f32], here: &[f32], below: &[f32]) -> f32 {
    0.25 * (above[0] + above[2] + below[0] + below[2]) + 0.5 * (above[1] + here[0] + here[2] + below[1])
        - 3.0 * here[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest V and the sum of V after `steps` steps.
    fn run(vectors: Vectors, shape: [usize; 2], steps: usize) -> (f64, f64) {
        let mut simulation = Simulation::new(shape);
        (0..steps).for_each(|_| simulation.step(vectors));
        let v = &simulation.now.v;
        (f64::from(v.iter().copied().fold(0.0, f32::max)), v.iter().map(|&v| f64::from(v)).sum())
    }

    /// The expected figures were computed in `f64`.
    #[test]
    fn the_peer_computes_the_gray_scott_model() {
        let _deadline = testing::deadline();
        for (shape, steps, max, sum) in [
            ([256, 256], 1, 0.932, 238.592),
            ([256, 256], 34, 0.495002554, 130.532573544),
            ([100, 173], 34, 0.495093889, 63.4016272254),
        ] {
            for vectors in std::iter::once(Vectors::Baseline).chain(Vectors::avx512()) {
                let (our_max, our_sum) = run(vectors, shape, steps);
                assert!((our_max - max).abs() < 1e-6, "{shape:?}, {steps} steps, {vectors:?}: max {our_max}");
                assert!((our_sum - sum).abs() < 1e-3, "{shape:?}, {steps} steps, {vectors:?}: sum {our_sum}");
            }
        }
    }
}
