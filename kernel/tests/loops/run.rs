//! Kernels with folds, run by programs and compared with their plain evaluation.

use super::Kernel;
use crate::{array::Array, plain::Plain};
use anabranch_kernel::{Instructions, Memory, Number, Operand, Program, Recording};
use proptest::prelude::*;
use std::cell::Cell;

/// Runs a recording whose last operand is written, with each set of instructions.
pub fn run<T: Number>(
    recording: &Recording,
    points: [[usize; 3]; 2],
    inputs: &[Vec<T>],
    extents: &[[usize; 3]],
    longest: usize,
) -> Vec<Vec<T>> {
    thread_local! {
        /// One program after the other uses it.
        static MEMORY: Cell<Memory> = Cell::default();
    }
    let program = Program::new(recording);
    let mut memory = MEMORY.take();
    let sets = Instructions::ALL.into_iter().filter(|set| set.is_available());
    let run = |instructions| {
        let mut output = vec![T::default(); extents[inputs.len()].iter().product()];
        let taken =
            inputs.iter().zip(extents).map(|(input, &extent)| Array::new(&input[..], extent, longest));
        let mut taken: Vec<_> = taken.collect();
        let mut set = Array::new(&mut output[..], extents[inputs.len()], longest);
        let taken = taken.iter_mut().map(|array| array as &mut dyn Operand);
        let mut operands: Vec<_> = taken.chain([&mut set as &mut dyn Operand]).collect();
        program.run(recording.parameters(), points, &mut operands, &mut memory, instructions);
        output
    };
    let outputs = sets.map(run).collect();
    MEMORY.set(memory);
    outputs
}

/// Runs a kernel and its precise form with each set of instructions, and compares all bits with the plain
/// evaluation.
pub fn check<T: Plain>(kernel: &Kernel<T>, seed: u64, longest: usize) -> Result<(), TestCaseError> {
    let mut extents: Vec<_> = kernel.inputs.iter().map(|&(_, extent)| extent).collect();
    let fill = |(salt, extent): (u64, &[usize; 3])| {
        (0..extent.iter().product::<usize>() as u64).map(|at| T::draw(seed ^ salt, at)).collect::<Vec<T>>()
    };
    let inputs: Vec<_> = (0..).zip(&extents).map(fill).collect();
    extents.push(kernel.points[1]);
    let recording = kernel.record();
    let run = |recording| run(recording, kernel.points, &inputs, &extents, longest);
    for output in run(&recording).into_iter().chain(run(&recording.precise())) {
        let [min, max] = kernel.points;
        for (z, y, x) in points_of(min, max) {
            let ours = output[(z * max[1] + y) * max[2] + x];
            let plain = kernel.evaluate(&inputs, [z, y, x]);
            prop_assert!(ours.same_bits(plain), "at {:?} is {ours:?}, not {plain:?}", [z, y, x]);
        }
    }
    Ok(())
}

/// The points of a box.
fn points_of(min: [usize; 3], max: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    let planes = min[0]..max[0];
    planes.flat_map(move |z| (min[1]..max[1]).flat_map(move |y| (min[2]..max[2]).map(move |x| (z, y, x))))
}
