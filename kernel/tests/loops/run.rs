//! Kernels with folds, run by programs and compared with their plain evaluation.

use super::Kernel;
use crate::plain::Plain;
use anabranch_kernel::{Instructions, Memory, Number, Operands, Program, Recording, Slice, SliceMut};
use proptest::prelude::*;
use std::cell::Cell;

/// Operands with their extents. The last one is the output.
struct Arrays<'a, T> {
    extents: &'a [[usize; 3]],
    inputs: &'a [Vec<T>],
    output: Vec<T>,
    /// A slice is not longer than this, as if its region consisted of several boxes.
    longest: usize,
}

impl<T: Number> Arrays<'_, T> {
    fn range(&self, operand: usize, point: [usize; 3]) -> std::ops::Range<usize> {
        let extent = self.extents[operand];
        assert!(point.iter().zip(extent).all(|(&at, size)| at < size), "{point:?} is outside {extent:?}");
        let at = (point[0] * extent[1] + point[1]) * extent[2] + point[2];
        at..at + (extent[2] - point[2]).min(self.longest)
    }
}

impl<T: Number> Operands for Arrays<'_, T> {
    fn extent(&self, operand: usize) -> [usize; 3] {
        self.extents[operand]
    }

    fn read(&self, operand: usize, point: [usize; 3]) -> Slice<'_> {
        T::slice(&self.inputs[operand][self.range(operand, point)])
    }

    fn write(&mut self, operand: usize, point: [usize; 3]) -> SliceMut<'_> {
        let range = self.range(operand, point);
        T::slice_mut(&mut self.output[range])
    }
}

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
        let count = extents[inputs.len()].iter().product();
        let mut arrays = Arrays { extents, inputs, output: vec![T::default(); count], longest };
        program.run(recording.parameters(), points, &mut arrays, &mut memory, instructions);
        arrays.output
    };
    let outputs = sets.map(run).collect();
    MEMORY.set(memory);
    outputs
}

/// Runs a kernel and its precise form with each set of instructions, and compares all bits with the plain evaluation.
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
