//! Prints the speed of the kernel on one thread: nanoseconds per cell and step, the best of many calls, for
//! each instruction set of this processor.
//!
//! ```text
//! cargo run --release -p gray-scott --example kernel_speed [ROWS COLS STEPS]
//! ```
//!
//! The grid starts with noise in every cell, so that no values become denormal.

#![forbid(unsafe_code)]

use gray_scott::{
    kernel::{Output, Simd, Stepper},
    model::{Edges, Params, initial},
};
use std::time::{Duration, Instant};

/// U and V, each beginning at a multiple of 64 bytes.
struct Fields {
    u: Vec<f32>,
    v: Vec<f32>,
    cols: usize,
}

impl Fields {
    fn new(u: &[f32], v: &[f32], cols: usize) -> Self {
        Self { u: aligned(u), v: aligned(v), cols }
    }

    fn row(&self, row: usize) -> (&[f32], &[f32]) {
        let (u, v) = (padding(&self.u) + row * self.cols, padding(&self.v) + row * self.cols);
        (&self.u[u..][..self.cols], &self.v[v..][..self.cols])
    }
}

impl Output for Fields {
    fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]) {
        let (u, v) = (padding(&self.u) + row * self.cols, padding(&self.v) + row * self.cols);
        (&mut self.u[u..][..self.cols], &mut self.v[v..][..self.cols])
    }
}

fn aligned(field: &[f32]) -> Vec<f32> {
    let mut memory = vec![0.0; field.len() + 16];
    let padding = padding(&memory);
    memory[padding..][..field.len()].copy_from_slice(field);
    memory
}

fn padding(memory: &[f32]) -> usize {
    memory.as_ptr().align_offset(64)
}

/// The best time of a call, per cell and step, and the number of steps in a call.
fn measure(simd: Simd, [rows, cols]: [usize; 2], steps: Option<usize>, time: Duration) -> (f64, usize) {
    let stepper = Stepper::new(simd, Params::default(), Edges::Absorbing, [rows, cols]);
    let steps = steps.unwrap_or(stepper.preferred_steps());
    let (u, v) = initial(rows, cols, Some(1));
    let mut scratch = vec![0.0; stepper.scratch_len(steps)];
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed() < time {
        // Start again long before V decays to denormal numbers anywhere.
        let mut fields = [Fields::new(&u, &v, cols), Fields::new(&u, &v, cols)];
        for _ in 0..(400 / steps).max(1) {
            let [before, after] = &mut fields;
            let call = Instant::now();
            stepper.advance(0..rows, steps, |row| before.row(row), after, &mut scratch);
            best = best.min(call.elapsed().as_secs_f64());
            fields.swap(0, 1);
        }
    }
    (best * 1e9 / (rows * cols * steps) as f64, steps)
}

fn main() {
    let given: Vec<usize> =
        std::env::args().skip(1).map(|arg| arg.parse().expect("ROWS COLS STEPS are numbers")).collect();
    let (sizes, steps) = match given[..] {
        [] => (vec![[512, 512], [1080, 1920], [4096, 4096]], None),
        [rows, cols] => (vec![[rows, cols]], None),
        [rows, cols, steps] => (vec![[rows, cols]], Some(steps)),
        _ => panic!("usage: kernel_speed [ROWS COLS [STEPS]]"),
    };
    for simd in Simd::available() {
        for [rows, cols] in sizes.iter().copied() {
            let (ns, steps) = measure(simd, [rows, cols], steps, Duration::from_secs(3));
            println!("{simd:<9} {rows:>5} x {cols:<5} {steps:>2} steps a call: {ns:.4} ns per cell and step");
        }
    }
}
