//! What a program asks its operands for.

mod array;

use anabranch_kernel::{Instructions, Memory, Number, Operand, Program, Slice, SliceMut, Tape, Value};
use array::Array;
use proptest::prelude::*;
use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
};
use testing::deadline;

/// A row of an operand whose region has a gap. It keeps where it was read.
struct WithGap {
    elements: Vec<f32>,
    gap: std::ops::Range<usize>,
    reads: RefCell<Vec<[usize; 3]>>,
}

impl WithGap {
    fn new(len: usize, gap: std::ops::Range<usize>) -> Self {
        let elements = (0..len).map(|at| at as f32).collect();
        Self { elements, gap, reads: RefCell::default() }
    }
}

impl Operand for WithGap {
    fn extent(&self) -> [usize; 3] {
        [1, 1, self.elements.len()]
    }

    fn read(&self, point @ [_, _, x]: [usize; 3]) -> Slice<'_> {
        self.reads.borrow_mut().push(point);
        assert!(!self.gap.contains(&x), "{x} is in the gap");
        let end = if x < self.gap.start { self.gap.start } else { self.elements.len() };
        f32::slice(&self.elements[x..end])
    }

    fn write(&mut self, _: [usize; 3]) -> SliceMut<'_> {
        panic!("a program sets what it only takes")
    }
}

#[test]
fn loads_of_one_row_share_it_and_those_behind_a_gap_have_their_own() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    v.set(u.at([2]) + u.at([0]) + u.at([1]) + 1000.0 * u.at([60]));
    let recording = tape.finish().expect("the kernel is right");
    for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        let mut row = WithGap::new(100, 45..60);
        let mut output = [0.0_f32; 40];
        let operands: &mut [&mut dyn Operand] =
            &mut [&mut row, &mut Array::new(&mut output[..], [1, 1, 40], usize::MAX)];
        let (parameters, points) = (recording.parameters(), [[0; 3], [1, 1, 40]]);
        Program::new(&recording).run(parameters, points, operands, &mut Memory::default(), instructions);
        for (x, &ours) in output.iter().enumerate() {
            assert_eq!(ours, (3 * x + 3 + 1000 * (x + 60)) as f32, "{x} with {instructions:?}");
        }
        assert_eq!(*row.reads.borrow(), [[0, 0, 0], [0, 0, 60]]);
    }
}

/// A plane that counts how often each of its rows is read.
struct Counted {
    elements: Vec<f32>,
    extent: [usize; 3],
    reads: RefCell<Vec<usize>>,
}

impl Operand for Counted {
    fn extent(&self) -> [usize; 3] {
        self.extent
    }

    fn read(&self, [_, y, x]: [usize; 3]) -> Slice<'_> {
        self.reads.borrow_mut()[y] += 1;
        let cols = self.extent[2];
        f32::slice(&self.elements[y * cols + x..(y + 1) * cols])
    }

    fn write(&mut self, _: [usize; 3]) -> SliceMut<'_> {
        panic!("a program sets what it only takes")
    }
}

#[test]
fn a_row_with_elements_beyond_its_edges_is_read_once_for_each_of_its_blocks() {
    let _deadline = deadline();
    let mut offsets = [[-1, -1], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 1]];
    for order in ["ascending", "descending"] {
        let tape = Tape::new(2);
        let (u, v) = (tape.input::<f32, 2>(), tape.output::<f32, 2>());
        let around = offsets.map(|offset| u.at_or(offset, 0.5));
        v.set(around.into_iter().reduce(|sum, value| sum + value).expect("there are some"));
        let recording = tape.finish().expect("the kernel is right");
        // A long row of points has a block at each end, and one between them, which takes the rows as they are.
        for (cols, blocks) in [(700, vec![1; 7]), (3000, vec![4, 5, 5, 5, 5, 5, 4])] {
            let rows = blocks.len();
            let elements = (0..rows * cols).map(|at| at as f32).collect();
            let mut plane = Counted { elements, extent: [1, rows, cols], reads: RefCell::new(vec![0; rows]) };
            let mut output = vec![0.0_f32; rows * cols];
            let operands: &mut [&mut dyn Operand] =
                &mut [&mut plane, &mut Array::new(&mut output[..], [1, rows, cols], usize::MAX)];
            let (parameters, points) = (recording.parameters(), [[0; 3], [1, rows, cols]]);
            let instructions = Instructions::detect();
            Program::new(&recording).run(parameters, points, operands, &mut Memory::default(), instructions);
            assert_eq!(*plane.reads.borrow(), blocks, "{order}, {cols} columns");
        }
        offsets.reverse();
    }
}

/// The sum of elements around each point of a plane, weighted so that each counts, with a literal for each
/// that is beyond an edge.
fn weighted_sums(elements: &[f32], [rows, cols]: [usize; 2], loads: &[([isize; 2], f32)]) -> Vec<f32> {
    let value = |y: usize, x: usize, (weight, &([dy, dx], outside)): (usize, &([isize; 2], f32))| {
        let inside = y.checked_add_signed(dy).zip(x.checked_add_signed(dx));
        let inside = inside.filter(|&(y, x)| y < rows && x < cols);
        (weight + 1) as f32 * inside.map_or(outside, |(y, x)| elements[y * cols + x])
    };
    let point = |at: usize| loads.iter().enumerate().map(|load| value(at / cols, at % cols, load)).sum();
    (0..rows * cols).map(point).collect()
}

#[test]
fn rows_with_other_loads_literals_or_contents_share_no_elements() {
    let _deadline = deadline();
    let kernels: [&[([isize; 2], f32)]; 2] = [
        // A row is taken first from above, then in the middle, and then from below with more elements.
        &[([1, -1], 3.0), ([0, -1], 3.0), ([-1, -1], 3.0), ([-1, 2], 3.0)],
        // Loads of one row have other literals, and so have rows.
        &[([-1, -1], 3.0), ([-1, 1], 4.0), ([0, -1], 3.0), ([1, -1], 5.0), ([1, 1], 5.0)],
    ];
    let [rows, cols] = [5, 90];
    for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        let mut memory = Memory::default();
        for (loads, salt) in kernels.into_iter().flat_map(|loads| [(loads, 0), (loads, 1000)]) {
            let tape = Tape::new(2);
            let (u, v) = (tape.input::<f32, 2>(), tape.output::<f32, 2>());
            let terms = loads
                .iter()
                .zip(1_u8..)
                .map(|(&(offset, outside), weight)| f32::from(weight) * u.at_or(offset, outside));
            v.set(terms.reduce(|sum, term| sum + term).expect("there are loads"));
            let recording = tape.finish().expect("the kernel is right");
            let elements: Vec<f32> = (0..rows * cols).map(|at| (at + salt) as f32).collect();
            let mut output = vec![0.0_f32; rows * cols];
            let operands: &mut [&mut dyn Operand] = &mut [
                &mut Array::new(&elements[..], [1, rows, cols], usize::MAX),
                &mut Array::new(&mut output[..], [1, rows, cols], usize::MAX),
            ];
            let (parameters, points) = (recording.parameters(), [[0; 3], [1, rows, cols]]);
            Program::new(&recording).run(parameters, points, operands, &mut memory, instructions);
            let expected = weighted_sums(&elements, [rows, cols], loads);
            assert_eq!(output, expected, "{loads:?} and {salt} with {instructions:?}");
        }
    }
}

#[test]
fn zeros_of_two_signs_are_two_literals() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v, w) = (tape.input::<f32, 1>(), tape.output::<f32, 1>(), tape.output::<f32, 1>());
    v.set(1.0 / u.at_or([-1], 0.0));
    w.set(1.0 / u.at_or([1], -0.0));
    let recording = tape.finish().expect("the kernel is right");
    for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        let (u, mut v, mut w) = ([1.0_f32; 40], [0.0_f32; 40], [0.0_f32; 40]);
        let extent = [1, 1, 40];
        let operands: &mut [&mut dyn Operand] = &mut [
            &mut Array::new(&u[..], extent, usize::MAX),
            &mut Array::new(&mut v[..], extent, usize::MAX),
            &mut Array::new(&mut w[..], extent, usize::MAX),
        ];
        let parameters = recording.parameters();
        Program::new(&recording).run(
            parameters,
            [[0; 3], extent],
            operands,
            &mut Memory::default(),
            instructions,
        );
        assert_eq!([v[0], w[39]], [f32::INFINITY, f32::NEG_INFINITY], "{instructions:?}");
        assert_eq!((&v[1..], &w[..39]), (&[1.0; 39][..], &[1.0; 39][..]), "{instructions:?}");
    }
}

#[test]
fn no_element_is_read_that_no_load_takes() {
    let _deadline = deadline();
    for offsets in [[-5, 60], [-5, 55]] {
        let tape = Tape::new(1);
        let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
        v.set(u.at_or([offsets[0]], 7.0) + 1000.0 * u.at_or([offsets[1]], 7.0));
        let recording = tape.finish().expect("the kernel is right");
        for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
            // The first load takes 0 to 34, the second one 55 or 60 to 99, and the operand has no others.
            let mut row = WithGap::new(100, 35..offsets[1] as usize);
            let mut output = [0.0_f32; 40];
            let operands: &mut [&mut dyn Operand] =
                &mut [&mut row, &mut Array::new(&mut output[..], [1, 1, 40], usize::MAX)];
            let (parameters, points) = (recording.parameters(), [[0; 3], [1, 1, 40]]);
            Program::new(&recording).run(parameters, points, operands, &mut Memory::default(), instructions);
            for (x, &ours) in output.iter().enumerate() {
                let at = |offset: isize| x.checked_add_signed(offset).filter(|&at| at < 100);
                let [a, b] = offsets.map(|offset| at(offset).map_or(7.0, |at| at as f32));
                assert_eq!(ours, a + 1000.0 * b, "{x} with {instructions:?}");
            }
        }
    }
}

#[test]
fn a_block_ends_where_the_slice_of_a_load_or_of_an_output_does() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v, w) = (tape.input::<f32, 1>(), tape.output::<f32, 1>(), tape.output::<f32, 1>());
    let double = u.here() * 2.0;
    v.set(double + 1.0);
    w.set(double.sqrt());
    let recording = tape.finish().expect("the kernel is right");
    let input: Vec<f32> = (0..1000).map(|at| at as f32).collect();
    for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        for [a, b, c] in [[7, 300, 1000], [300, 7, 11], [1000, 130, 1]] {
            let (mut v, mut w) = (vec![0.0_f32; 1000], vec![0.0_f32; 1000]);
            let operands: &mut [&mut dyn Operand] = &mut [
                &mut Array::new(&input[..], [1, 1, 1000], a),
                &mut Array::new(&mut v[..], [1, 1, 1000], b),
                &mut Array::new(&mut w[..], [1, 1, 1000], c),
            ];
            let (parameters, points) = (recording.parameters(), [[0; 3], [1, 1, 1000]]);
            Program::new(&recording).run(parameters, points, operands, &mut Memory::default(), instructions);
            for x in 0..1000 {
                let expected = (input[x] * 2.0 + 1.0, (input[x] * 2.0).sqrt());
                assert_eq!((v[x], w[x]), expected, "{x} with {instructions:?}");
            }
        }
    }
}

#[test]
fn a_wrong_number_of_operands_is_refused() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    v.set(u.here() + 1.0);
    let recording = tape.finish().expect("the kernel is right");
    let input = [1.0_f32; 9];
    let run = || {
        let operands: &mut [&mut dyn Operand] = &mut [&mut Array::new(&input[..], [1, 1, 9], 9)];
        let (parameters, points) = (recording.parameters(), [[0; 3], [1, 1, 9]]);
        let instructions = Instructions::detect();
        Program::new(&recording).run(parameters, points, operands, &mut Memory::default(), instructions);
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the output is missing");
    let message = panic.downcast::<String>().expect("it has a message");
    assert_eq!(*message, "a program has 2 operands and got 1");
}

#[test]
fn an_operand_without_an_element_is_named() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    v.set(u.here() + 1.0);
    let recording = tape.finish().expect("the kernel is right");
    for (longest, what) in [([0, 9], "operand 0 gave no element"), ([9, 0], "operand 1 gave no element")] {
        let (input, mut output) = ([1.0_f32; 9], [0.0_f32; 9]);
        let run = || {
            let operands: &mut [&mut dyn Operand] = &mut [
                &mut Array::new(&input[..], [1, 1, 9], longest[0]),
                &mut Array::new(&mut output[..], [1, 1, 9], longest[1]),
            ];
            let (parameters, points) = (recording.parameters(), [[0; 3], [1, 1, 9]]);
            Program::new(&recording).run(
                parameters,
                points,
                operands,
                &mut Memory::default(),
                Instructions::detect(),
            );
        };
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("there is no element");
        let message = panic.downcast::<String>().expect("it has a message");
        assert!(message.contains(what) && message.contains("[0, 0, 0]"), "{message}");
    }
}

/// A part of a kernel that consists of sums, differences and products only. Operands are numbers of earlier
/// parts, modulo their count.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// An element of an input. Outside there is 0.5.
    Load {
        input: usize,
        offset: isize,
    },
    Literal(f64),
    Add(usize, usize),
    Sub(usize, usize),
    Mul(usize, usize),
}

fn part() -> impl Strategy<Value = Part> {
    // Offsets around the lengths of strips, and larger than the row.
    let offset = prop_oneof![-3_isize..4, -300_isize..300, Just(-5000_isize), Just(5000_isize)];
    let two = || (any::<u8>(), any::<u8>()).prop_map(|(a, b)| (usize::from(a), usize::from(b)));
    prop_oneof![
        3 => (0_usize..2, offset).prop_map(|(input, offset)| Part::Load { input, offset }),
        1 => (-4_i8..5).prop_map(|number| Part::Literal(f64::from(number) / 2.0)),
        2 => two().prop_map(|(a, b)| Part::Add(a, b)),
        2 => two().prop_map(|(a, b)| Part::Sub(a, b)),
        2 => two().prop_map(|(a, b)| Part::Mul(a, b)),
    ]
}

proptest! {
    /// All results of such a kernel go to outputs, and its registers have one strip only.
    #[test]
    fn sums_and_products_alone_agree(
        parts in prop::collection::vec(part(), 2..24),
        len in prop_oneof![1_usize..40, 90_usize..300, 1000_usize..1300, 8000_usize..8400],
        first in 0_usize..20,
        longest in prop::array::uniform4(prop_oneof![3 => Just(usize::MAX), 1 => 1_usize..400]),
    ) {
        let _deadline = deadline();
        let inputs = [3, 5].map(|factor| (0..len).map(|at| (at * factor % 11) as f64 - 4.0).collect::<Vec<_>>());
        let tape = Tape::new(1);
        let taken = [tape.input::<f64, 1>(), tape.input::<f64, 1>()];
        let set = [tape.output::<f64, 1>(), tape.output::<f64, 1>()];
        let mut values: Vec<Value<'_, f64>> = vec![taken[0].here()];
        for part in &parts {
            let of = |at: usize| values[at % values.len()];
            values.push(match *part {
                Part::Load { input, offset } => taken[input].at_or([offset], 0.5),
                Part::Literal(number) => taken[0].here().literal(number),
                Part::Add(a, b) => of(a) + of(b),
                Part::Sub(a, b) => of(a) - of(b),
                Part::Mul(a, b) => of(a) * of(b),
            });
        }
        set[0].set(values[values.len() - 1]);
        set[1].set(values[values.len() - 2]);
        let recording = tape.finish().expect("the kernel is right");
        let plain = |x: usize| {
            let mut values = vec![inputs[0][x]];
            for part in &parts {
                let of = |at: usize| values[at % values.len()];
                values.push(match *part {
                    Part::Load { input, offset } => {
                        let at = x.checked_add_signed(offset);
                        at.and_then(|at| inputs[input].get(at)).copied().unwrap_or(0.5)
                    }
                    Part::Literal(number) => number,
                    Part::Add(a, b) => of(a) + of(b),
                    Part::Sub(a, b) => of(a) - of(b),
                    Part::Mul(a, b) => of(a) * of(b),
                });
            }
            [values[values.len() - 1], values[values.len() - 2]]
        };
        let first = first.min(len - 1);
        for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
            let mut outputs = [vec![7.0; len], vec![7.0; len]];
            let [mut a, mut b] = [0, 1].map(|at| Array::new(&inputs[at][..], [1, 1, len], longest[at]));
            let [c, d] = &mut outputs;
            let mut c = Array::new(&mut c[..], [1, 1, len], longest[2]);
            let mut d = Array::new(&mut d[..], [1, 1, len], longest[3]);
            let operands: &mut [&mut dyn Operand] = &mut [&mut a, &mut b, &mut c, &mut d];
            let (parameters, points) = (recording.parameters(), [[0, 0, first], [1, 1, len]]);
            Program::new(&recording).run(parameters, points, operands, &mut Memory::default(), instructions);
            for (x, ours) in outputs[0].iter().zip(&outputs[1]).enumerate() {
                let expected = if x < first { [7.0; 2] } else { plain(x) };
                let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                let are_same = same(*ours.0, expected[0]) && same(*ours.1, expected[1]);
                prop_assert!(are_same, "{x} of {len} is {ours:?}, not {expected:?}");
            }
        }
    }
}
