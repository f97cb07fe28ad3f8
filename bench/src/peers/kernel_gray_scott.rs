//! Gray-Scott with rayon and the kernel of `gray-scott` itself: the same bands of rows and the same number of
//! steps at once, but a parallel loop over the bands, and a barrier after each sweep, instead of tasks. So
//! the difference to `gray-scott` is the part of the runtime.

use std::ops::Range;

use gray_scott::{
    kernel::{Output, Simd, Stepper},
    model::{Edges, Params, initial},
};
use parking_lot::Mutex;
use rayon::prelude::*;

/// Steps from one frame to the next. A sweep does not go beyond a frame.
pub const STEPS_PER_FRAME: usize = 64;
/// As in `gray-scott`: bands for each thread, and how many times the rows around a band its own rows are at
/// least.
const BANDS_PER_THREAD: usize = 3;
const ROWS_PER_ROW_AROUND: usize = 10;

/// U and V of consecutive rows.
struct Fields {
    u: Vec<f32>,
    v: Vec<f32>,
}

/// A simulation with absorbing edges and the usual parameters.
pub struct Simulation {
    stepper: Stepper,
    cols: usize,
    bands: Vec<Range<usize>>,
    now: Fields,
    next: Fields,
    /// One for each thread.
    scratch: Vec<Mutex<Vec<f32>>>,
}

impl Simulation {
    /// Starts as `gray-scott` does, with bands for this number of threads.
    pub fn new([rows, cols]: [usize; 2], threads: usize) -> Self {
        let stepper = Stepper::new(Simd::detect(), Params::default(), Edges::Absorbing, [rows, cols]);
        let (u, v) = initial(rows, cols, None);
        let next = Fields { u: vec![0.0; u.len()], v: vec![0.0; v.len()] };
        let bands = match threads {
            1 => 1,
            _ => (rows / (ROWS_PER_ROW_AROUND * stepper.preferred_steps()))
                .clamp(threads, BANDS_PER_THREAD * threads),
        };
        let bands = (0..bands).map(|band| rows * band / bands..rows * (band + 1) / bands).collect();
        let scratch = vec![0.0; stepper.scratch_len(stepper.preferred_steps())];
        let scratch = (0..threads).map(|_| Mutex::new(scratch.clone())).collect();
        Self { stepper, cols, bands, now: Fields { u, v }, next, scratch }
    }

    /// Computes the steps to the next frame on the current rayon pool.
    pub fn frame(&mut self) {
        let mut left = STEPS_PER_FRAME;
        while left > 0 {
            let steps = left.div_ceil(left.div_ceil(self.stepper.preferred_steps()));
            self.sweep(steps);
            left -= steps;
        }
    }

    fn sweep(&mut self, steps: usize) {
        let Self { stepper, cols, bands, now, next, scratch } = self;
        let cols = *cols;
        let (mut u, mut v) = (&mut next.u[..], &mut next.v[..]);
        let outputs: Vec<Band<'_>> = bands
            .iter()
            .map(|rows| {
                let cells = rows.len() * cols;
                Band {
                    u: u.split_off_mut(..cells).expect("the bands cover the grid"),
                    v: v.split_off_mut(..cells).expect("the bands cover the grid"),
                    rows: rows.clone(),
                    cols,
                }
            })
            .collect();
        outputs.into_par_iter().with_max_len(1).for_each(|mut output| {
            let thread = rayon::current_thread_index().expect("this is a thread of the pool");
            let mut scratch = scratch[thread].lock();
            let input = |row: usize| (&now.u[row * cols..][..cols], &now.v[row * cols..][..cols]);
            stepper.advance(output.rows.clone(), steps, input, &mut output, &mut scratch);
        });
        std::mem::swap(&mut self.now, &mut self.next);
    }
}

/// The rows of the next state that one call of the kernel writes.
struct Band<'a> {
    u: &'a mut [f32],
    v: &'a mut [f32],
    rows: Range<usize>,
    cols: usize,
}

impl Output for Band<'_> {
    fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]) {
        let begin = (row - self.rows.start) * self.cols;
        (&mut self.u[begin..][..self.cols], &mut self.v[begin..][..self.cols])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::pools::rayon_pool;
    use gray_scott::model::reference::Reference;

    #[test]
    fn the_peer_computes_the_gray_scott_model_with_any_number_of_bands() {
        let _deadline = testing::deadline();
        let run = |shape, threads| {
            let mut simulation = Simulation::new(shape, threads);
            rayon_pool(threads).unwrap().install(|| simulation.frame());
            simulation
        };
        for (shape, threads) in [([256, 256], 2), ([100, 173], 3)] {
            let [simulation, whole] = [run(shape, threads), run(shape, 1)];
            assert!(simulation.bands.len() >= threads && whole.bands.len() == 1);
            assert!(simulation.now.u == whole.now.u && simulation.now.v == whole.now.v, "{shape:?}");
            let mut exact = Reference::new(Params::default(), Edges::Absorbing, shape, None);
            exact.advance(STEPS_PER_FRAME);
            let error = exact.max_error(&simulation.now.v);
            assert!(error < 1e-4, "{shape:?}: {error}");
        }
    }
}
