//! Random kernels over a grid, whose operands have its extent, and their plain evaluation.

use crate::{
    array::Array,
    plain::{self, Edge, Node, Plain, Step, nodes},
};
use anabranch_kernel::{
    Instructions, Memory, Number, Operand, Program, Recording, Slice, SliceMut, Tape, Value,
};
use proptest::prelude::*;
use std::cell::Cell;

/// Two inputs, and two outputs. The second output is also an input.
struct Arrays<'a, T> {
    extent: [usize; 3],
    inputs: &'a [Vec<T>; 2],
    outputs: [Vec<T>; 2],
    /// A slice of an operand is not longer than this, as if its region consisted of several boxes.
    longest: usize,
}

impl<T: Number> Arrays<'_, T> {
    fn at(&self, [z, y, x]: [usize; 3]) -> usize {
        (z * self.extent[1] + y) * self.extent[2] + x
    }

    fn with_operands(&mut self, f: impl FnOnce(&mut [&mut dyn Operand])) {
        let Self { extent, inputs: [a, b], outputs: [c, d], longest } = self;
        let taken = |elements| Array::new(elements, *extent, *longest);
        let [mut a, mut b] = [&a[..], &b[..]].map(taken);
        let [mut c, d] = [&mut c[..], &mut d[..]].map(|elements| Array::new(elements, *extent, *longest));
        f(&mut [&mut a, &mut b, &mut c, &mut Changed(d)]);
    }
}

/// An array that a program takes elements of and sets.
struct Changed<'a, T>(Array<&'a mut [T]>);

impl<T: Number> Operand for Changed<'_, T> {
    fn extent(&self) -> [usize; 3] {
        self.0.extent()
    }

    fn read(&self, point: [usize; 3]) -> Slice<'_> {
        T::slice(&self.0.elements[self.0.range(point)])
    }

    fn write(&mut self, point: [usize; 3]) -> SliceMut<'_> {
        self.0.write(point)
    }
}

/// A grid, a part of it, and a kernel.
#[derive(Clone, Debug)]
pub struct Case<T> {
    pub extent: [usize; 3],
    pub part: [[usize; 3]; 2],
    /// The part is computed in two pieces: the dimension and the coordinate between them. The first may be
    /// empty.
    pub cut: (usize, usize),
    pub longest: usize,
    pub seed: u64,
    pub nodes: Vec<Node<T>>,
}

pub fn case<T: Plain>() -> impl Strategy<Value = Case<T>> {
    // Around the lengths of vectors, strips and blocks.
    let cols = prop_oneof![1_usize..40, 120_usize..140, 250_usize..540, 1020_usize..1300, 2040_usize..2600];
    let extent = (1_usize..3, 1_usize..4, cols).prop_map(|(z, y, x)| [z, y, x]);
    let longest = prop_oneof![Just(usize::MAX), 1_usize..600];
    let cut = (0_usize..3, any::<u16>());
    (extent, cut, longest, any::<u64>(), nodes::<T>()).prop_flat_map(|(extent, cut, longest, seed, nodes)| {
        let range = |size: usize| (0..size).prop_flat_map(move |min| (Just(min), min + 1..=size));
        let part = (range(extent[0]), range(extent[1]), range(extent[2]));
        part.prop_map(move |(z, y, x)| {
            let part = [[z.0, y.0, x.0], [z.1, y.1, x.1]];
            let (dim, at) = cut;
            let cut = (dim, part[0][dim] + usize::from(at) % (part[1][dim] - part[0][dim]));
            Case { extent, part, cut, longest, seed, nodes: nodes.clone() }
        })
    })
}

/// Records the nodes. The last two are the results.
fn record<T: Plain>(tape: &Tape, nodes: &[Node<T>]) {
    let inputs = [tape.input::<T, 3>(), tape.input::<T, 3>()];
    let (output, changed) = (tape.output::<T, 3>(), tape.input_output::<T, 3>());
    let mut values: Vec<Value<'_, T>> = vec![changed.here()];
    for node in nodes {
        let of = |at: usize| values[at % values.len()];
        let value = match node.step {
            Step::Load { input, offset, edge } => match edge {
                Edge::Clamped => inputs[input].at_clamped(offset),
                Edge::Periodic => inputs[input].at_periodic(offset),
                Edge::Or(value) => inputs[input].at_or(offset, value),
            },
            Step::Here { input } => inputs[input].here(),
            Step::Literal(value) => of(node.a).literal(value),
            Step::Index(dim) => output.index(dim).convert(),
            Step::Operation(operation) => T::record(operation, of(node.a), of(node.b)),
            Step::Select(compare) => {
                let mask = plain::mask(compare, of(node.a), of(node.b), of(node.c));
                mask.select(of(node.b), of(node.c))
            }
        };
        values.push(value);
    }
    output.set(values[values.len() - 1]);
    changed.set(values[values.len() - 2]);
}

/// What the kernel gives at a point.
fn evaluate<T: Plain>(case: &Case<T>, arrays: &Arrays<'_, T>, point: [usize; 3]) -> [T; 2] {
    let mut values = vec![arrays.outputs[1][arrays.at(point)]];
    for node in &case.nodes {
        let of = |at: usize| values[at % values.len()];
        let value = match node.step {
            Step::Load { input, offset, edge } => {
                let inside = |dim: usize| {
                    let (at, size) = (point[dim] as isize + offset[dim], case.extent[dim] as isize);
                    match edge {
                        Edge::Clamped => Some(at.clamp(0, size - 1) as usize),
                        Edge::Periodic => Some(((at % size + size) % size) as usize),
                        Edge::Or(_) => (at >= 0 && at < size).then_some(at as usize),
                    }
                };
                match (inside(0), inside(1), inside(2), edge) {
                    (Some(z), Some(y), Some(x), _) => arrays.inputs[input][arrays.at([z, y, x])],
                    (.., Edge::Or(value)) => value,
                    _ => unreachable!("the other edges have an element"),
                }
            }
            Step::Here { input } => arrays.inputs[input][arrays.at(point)],
            Step::Literal(value) => value,
            Step::Index(dim) => T::from_index(point[dim]),
            Step::Operation(operation) => T::compute(operation, of(node.a), of(node.b)),
            Step::Select(compare) => {
                if plain::holds(compare, of(node.a), of(node.b), of(node.c)) {
                    of(node.b)
                } else {
                    of(node.c)
                }
            }
        };
        values.push(value);
    }
    [values[values.len() - 1], values[values.len() - 2]]
}

thread_local! {
    /// One program after the other uses it.
    static MEMORY: Cell<Memory> = Cell::default();
}

impl<T: Plain> Case<T> {
    /// Records the kernel.
    pub fn record(&self) -> Recording {
        let tape = Tape::new(3);
        record(&tape, &self.nodes);
        tape.finish().expect("the kernel is right")
    }

    fn pieces(&self) -> [[[usize; 3]; 2]; 2] {
        let ([min, max], (dim, at)) = (self.part, self.cut);
        let (mut end, mut begin) = (max, min);
        (end[dim], begin[dim]) = (at, at);
        [[min, end], [begin, max]]
    }
}

/// Runs a kernel and its precise form with each set of instructions, and compares all bits with the plain
/// evaluation.
pub fn check<T: Plain>(case: &Case<T>) -> Result<(), TestCaseError> {
    let recording = case.record();
    check_recording(case, &recording)?;
    check_recording(case, &recording.precise())
}

fn check_recording<T: Plain>(case: &Case<T>, recording: &Recording) -> Result<(), TestCaseError> {
    let program = Program::new(recording);
    let cells = case.extent.iter().product::<usize>();
    let fill = |salt: u64| (0..cells as u64).map(|i| T::draw(case.seed ^ salt, i)).collect::<Vec<T>>();
    let inputs = [fill(1), fill(2)];
    let before = || Arrays {
        extent: case.extent,
        inputs: &inputs,
        outputs: [fill(3), fill(4)],
        longest: case.longest,
    };
    let start = before();
    let mut memory = MEMORY.take();
    for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        let mut arrays = before();
        for piece in case.pieces() {
            arrays.with_operands(|operands| {
                program.run(recording.parameters(), piece, operands, &mut memory, instructions);
            });
        }
        let [min, max] = case.part;
        for z in 0..case.extent[0] {
            for y in 0..case.extent[1] {
                for x in 0..case.extent[2] {
                    let point = [z, y, x];
                    let at = arrays.at(point);
                    let is_inside = (0..3).all(|dim| (min[dim]..max[dim]).contains(&point[dim]));
                    let expected = match is_inside {
                        true => evaluate(case, &start, point),
                        false => [start.outputs[0][at], start.outputs[1][at]],
                    };
                    for (output, plain) in expected.into_iter().enumerate() {
                        let ours = arrays.outputs[output][at];
                        prop_assert!(
                            ours.same_bits(plain),
                            "{instructions:?}: output {output} at {point:?} is {ours:?}, not {plain:?}"
                        );
                    }
                }
            }
        }
    }
    MEMORY.set(memory);
    Ok(())
}
