//! Reductions against a plain evaluation of the documented tree. All bits must agree, on all instruction
//! sets.

mod array;
#[allow(dead_code)]
mod plain;
mod tree;

use anabranch_kernel::{
    Instructions, LEAF, Leaves, Memory, Number, Operand, Operator, Program, RecordError, Recording, Tape,
};
use array::{Array, row_mut};
use plain::Plain;
use proptest::prelude::*;
use testing::deadline;
use tree::Tree;

/// Three inputs, the numbers that values are combined into, and an output.
struct Arrays<T> {
    extent: [usize; 3],
    inputs: [Vec<T>; 2],
    /// One place for each leaf, or one number.
    results: Vec<Vec<T>>,
    output: Vec<T>,
    /// A slice of an operand is not longer than this.
    longest: usize,
}

impl<T: Number> Arrays<T> {
    fn with_operands(&mut self, f: impl FnOnce(&mut [&mut dyn Operand])) {
        let Self { extent, inputs, results, output, longest } = self;
        let [mut a, mut b] = inputs.each_ref().map(|input| Array::new(&input[..], *extent, *longest));
        let mut output = Array::new(&mut output[..], *extent, *longest);
        let mut results: Vec<_> =
            results.iter_mut().map(|result| row_mut(&mut result[..], *longest)).collect();
        let mut operands: Vec<&mut dyn Operand> = vec![&mut a, &mut b, &mut output];
        operands.extend(results.iter_mut().map(|result| result as &mut dyn Operand));
        f(&mut operands);
    }
}

/// A part of a grid, and what its values are drawn from.
#[derive(Clone, Debug)]
struct Case {
    dimensions: usize,
    extent: [usize; 3],
    part: [[usize; 3]; 2],
    longest: usize,
    seed: u64,
}

/// The values that a case combines at each point: an element, a computed value, and a computed value where a
/// mask is true.
const VALUES: usize = 3;

/// Operations of the list of `plain`.
const ADD: usize = 0;
const MULTIPLY: usize = 2;

/// The numbers that values are combined into have these before.
fn current<T: Reduced>(seed: u64, reduction: usize) -> T {
    T::element(seed, reduction as u64)
}

trait Reduced: Plain {
    /// An element: of all kinds, or in most cases such that sums are finite and depend on the order.
    fn element(seed: u64, at: u64) -> Self;
    /// What the operator makes of two values.
    fn of(operator: Operator) -> fn(Self, Self) -> Self;
    /// The result for no values.
    fn nothing(operator: Operator) -> Self;
}

fn operators<T: Number>() -> Vec<Operator> {
    let all = [Operator::Sum, Operator::Product, Operator::Min, Operator::Max, Operator::And, Operator::Or];
    all.into_iter().filter(|operator| operator.is_for(T::KIND)).collect()
}

macro_rules! floats {
    ($($number:ident)*) => {$(
        impl Reduced for $number {
            fn element(seed: u64, at: u64) -> Self {
                if seed.is_multiple_of(4) {
                    return Self::draw(seed, at);
                }
                ((at.wrapping_mul(7919) ^ seed) % 10_007) as Self / 7.0 - 700.0
            }

            fn of(operator: Operator) -> fn(Self, Self) -> Self {
                match operator {
                    Operator::Sum => |a, b| a + b,
                    Operator::Product => |a, b| a * b,
                    Operator::Min => |a, b| if a.is_nan() || b < a { b } else { a },
                    _ => |a, b| if a.is_nan() || b > a { b } else { a },
                }
            }

            fn nothing(operator: Operator) -> Self {
                match operator {
                    Operator::Sum => -0.0,
                    Operator::Product => 1.0,
                    Operator::Min => $number::INFINITY,
                    _ => $number::NEG_INFINITY,
                }
            }
        }
    )*};
}

macro_rules! integers {
    ($($number:ident)*) => {$(
        impl Reduced for $number {
            fn element(seed: u64, at: u64) -> Self {
                Self::draw(seed, at)
            }

            fn of(operator: Operator) -> fn(Self, Self) -> Self {
                match operator {
                    Operator::Sum => Self::wrapping_add,
                    Operator::Product => Self::wrapping_mul,
                    Operator::Min => Ord::min,
                    Operator::Max => Ord::max,
                    Operator::And => |a, b| a & b,
                    Operator::Or => |a, b| a | b,
                }
            }

            fn nothing(operator: Operator) -> Self {
                match operator {
                    Operator::Sum | Operator::Or => 0,
                    Operator::Product => 1,
                    Operator::Min => $number::MAX,
                    Operator::Max => $number::MIN,
                    Operator::And => !0,
                }
            }
        }
    )*};
}

floats!(f32 f64);
integers!(i32 u32 i64 u64);

/// A kernel with a reduction for each operator and value. Every second one includes the number that is there.
fn record<T: Reduced>(dimensions: usize) -> Recording {
    let tape = Tape::new(dimensions);
    let (a, b) = (tape.input::<T, 3>().here(), tape.input::<T, 3>().here());
    let output = tape.output::<T, 3>();
    let values = [a, T::record(ADD, T::record(MULTIPLY, a, b), a), b];
    let mut number = 0;
    for operator in operators::<T>() {
        for (at, value) in values.into_iter().enumerate() {
            let accumulator = tape.accumulator::<T>(operator, number % 2 == 1);
            if at == 2 {
                accumulator.combine_if(a.lt(b), value);
            } else {
                accumulator.combine(value);
            }
            number += 1;
        }
    }
    output.set(values[1]);
    tape.finish().expect("the kernel is right")
}

/// The tree of an operator.
fn tree<T: Reduced>(operator: Operator) -> Tree<T> {
    Tree { identity: T::nothing(operator), combine: T::of(operator) }
}

fn case() -> impl Strategy<Value = Case> {
    let shape = prop_oneof![
        (1_usize..20_000).prop_map(|x| (1, [1, 1, x])),
        Just((1, [1, 1, LEAF])),
        Just((1, [1, 1, 3 * LEAF + 1])),
        (1_usize..200, 1_usize..70).prop_map(|(y, x)| (2, [1, y, x])),
        (1_usize..4, 3000_usize..9000).prop_map(|(y, x)| (2, [1, y, x])),
        (1_usize..10, 1_usize..40, 1_usize..30).prop_map(|(z, y, x)| (3, [z, y, x])),
        (1_usize..4, 10_usize..40, 100_usize..200).prop_map(|(z, y, x)| (3, [z, y, x])),
        Just((0, [1, 1, 1])),
        Just((2, [1, 1, 1])),
    ];
    let longest = prop_oneof![3 => Just(usize::MAX), 1 => 1_usize..600];
    (shape, longest, any::<u64>(), any::<[u16; 6]>()).prop_map(
        |((dimensions, extent), longest, seed, cut)| {
            // In half of the cases the whole grid.
            let cut =
                |dim: usize, at: usize| if seed % 2 == 0 { 0 } else { usize::from(cut[at]) % extent[dim] };
            let part = [0, 1, 2].map(|dim| {
                let (min, cut_off) = (cut(dim, dim) / 3, cut(dim, dim + 3) / 3);
                [min, extent[dim] - cut_off.min(extent[dim] - min - 1)]
            });
            Case {
                dimensions,
                extent,
                part: [part.map(|[min, _]| min), part.map(|[_, max]| max)],
                longest,
                seed,
            }
        },
    )
}

fn check<T: Reduced>(case: &Case) -> Result<(), TestCaseError> {
    let Case { dimensions, extent, part, longest, seed } = *case;
    let recording = record::<T>(dimensions);
    let program = Program::new(&recording);
    let cells: usize = extent.iter().product();
    let fill = |salt: u64| (0..cells as u64).map(|i| T::element(seed, i + (salt << 32))).collect::<Vec<T>>();
    let (inputs, output) = ([fill(1), fill(2)], fill(3));
    let count = recording.reductions().count();
    let arrays = |of_each: usize| Arrays {
        extent,
        inputs: inputs.clone(),
        results: (0..count).map(|at| vec![current::<T>(seed, at); of_each]).collect(),
        output: output.clone(),
        longest,
    };
    let at = |[z, y, x]: [usize; 3]| (z * extent[1] + y) * extent[2] + x;
    let value = |reduction: usize, operator, point| {
        let (a, b) = (inputs[0][at(point)], inputs[1][at(point)]);
        match reduction % VALUES {
            0 => a,
            1 => T::compute(ADD, T::compute(MULTIPLY, a, b), a),
            _ if a < b => b,
            _ => T::nothing(operator),
        }
    };
    let all = Leaves::new(dimensions, part);
    let mut memory = Memory::default();
    for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        let mut whole = arrays(1);
        whole.with_operands(|operands| {
            program.run_whole(recording.parameters(), part, operands, &mut memory, instructions);
        });
        let mut parts = arrays(all.count());
        in_parts(&program, &recording, case, &mut parts, &mut memory, instructions);
        for (number, reduction) in recording.reductions().enumerate() {
            let operator = reduction.operator;
            let tree = tree::<T>(operator);
            let mut expected = tree.leaves(dimensions, part, |point| value(number, operator, point));
            prop_assert!(expected.len() == all.count());
            for (leaf, (&ours, &plain)) in parts.results[number].iter().zip(&expected).enumerate() {
                let what = format!("{instructions:?}, {reduction:?}: leaf {leaf}");
                prop_assert!(ours.same_bits(plain), "{what} is {ours:?}, not {plain:?}");
            }
            if reduction.includes_current {
                expected[0] = (tree.combine)(current(seed, number), expected[0]);
            }
            let (ours, plain) = (whole.results[number][0], tree.of_leaves(&expected));
            prop_assert!(ours.same_bits(plain), "{instructions:?}, {reduction:?} is {ours:?}, not {plain:?}");
        }
        prop_assert!(whole.output.iter().zip(&parts.output).all(|(a, b)| a.same_bits(*b)));
    }
    Ok(())
}

/// Runs a program in parts, which begin and end at bands.
fn in_parts<T: Reduced>(
    program: &Program,
    recording: &Recording,
    case: &Case,
    arrays: &mut Arrays<T>,
    memory: &mut Memory,
    instructions: Instructions,
) {
    let [min, max] = case.part;
    let axis = (3 - case.dimensions).min(2);
    let leaves = Leaves::new(case.dimensions, case.part);
    let results = std::mem::take(&mut arrays.results);
    let mut all: Vec<Vec<T>> = vec![Vec::new(); results.len()];
    let (mut from, mut bands) = (min[axis], 1 + case.seed as usize % 3);
    while from < max[axis] {
        let to = max[axis].min(from + bands * leaves.rows_of_band());
        bands = bands % 3 + 1;
        let (mut first, mut last) = (min, max);
        (first[axis], last[axis]) = (from, to);
        let count = Leaves::new(case.dimensions, [first, last]).count();
        arrays.results = results.iter().map(|result| vec![result[0]; count]).collect();
        arrays.with_operands(|operands| {
            program.run(recording.parameters(), [first, last], operands, memory, instructions);
        });
        all.iter_mut().zip(&mut arrays.results).for_each(|(all, of_part)| all.append(of_part));
        from = to;
    }
    arrays.results = all;
}

macro_rules! oracles {
    ($($name:ident $number:ident),*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(case in case()) {
                    let _deadline = deadline();
                    check::<$number>(&case)?;
                }
            )*
        }
    };
}

oracles!(
    reductions_of_f32_agree f32,
    reductions_of_f64_agree f64,
    reductions_of_i32_agree i32,
    reductions_of_u32_agree u32,
    reductions_of_i64_agree i64,
    reductions_of_u64_agree u64
);

/// Sums of ordinary numbers, whose bits depend on the order: most random ones end as infinities or NaN.
#[test]
fn sums_of_fractions_have_the_bits_of_the_tree() {
    let _deadline = deadline();
    for count in [1, 2, 63, 64, 65, 4095, 4096, 4097, 100_000] {
        let values: Vec<f32> = (0..count).map(|at| ((at * 7919) % 10_007) as f32 / 7.0 - 700.0).collect();
        let recording = record::<f32>(1);
        let points = [[0; 3], [1, 1, count]];
        let expected = tree(Operator::Sum).total(1, points, |[_, _, x]| values[x]).expect("there are points");
        let in_order = values.iter().fold(-0.0, |sum, value| sum + value);
        for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
            let mut arrays = Arrays {
                extent: [1, 1, count],
                inputs: [values.clone(), vec![1.0; count]],
                results: vec![vec![0.0]; recording.reductions().count()],
                output: values.clone(),
                longest: usize::MAX,
            };
            let program = Program::new(&recording);
            let mut memory = Memory::default();
            arrays.with_operands(|operands| {
                program.run_whole(recording.parameters(), points, operands, &mut memory, instructions);
            });
            assert_eq!(arrays.results[0][0].to_bits(), expected.to_bits(), "{count}");
        }
        // The test can tell trees apart.
        assert!(count < 4095 || in_order.to_bits() != expected.to_bits(), "{count}");
    }
}

#[test]
fn over_no_points_the_result_is_the_identity_or_what_was_there() {
    let _deadline = deadline();
    for extent in [[1, 1, 0], [1, 0, 7], [1, 7, 0]] {
        let dimensions = if extent[1] == 1 { 1 } else { 2 };
        assert_eq!(Leaves::new(dimensions, [[0; 3], extent]).count(), 0);
        let recording = record::<f32>(dimensions);
        let mut arrays = Arrays::<f32> {
            extent,
            inputs: [vec![], vec![]],
            results: vec![vec![5.0]; recording.reductions().count()],
            output: vec![],
            longest: usize::MAX,
        };
        let (program, mut memory) = (Program::new(&recording), Memory::default());
        let instructions = Instructions::detect();
        let (parameters, points) = (recording.parameters(), [[0; 3], extent]);
        arrays.with_operands(|operands| program.run(parameters, points, operands, &mut memory, instructions));
        assert!(arrays.results.iter().all(|result| result[0] == 5.0), "there is no leaf");
        arrays.with_operands(|operands| {
            program.run_whole(parameters, points, operands, &mut memory, instructions)
        });
        for (result, reduction) in arrays.results.iter().zip(recording.reductions()) {
            let expected = if reduction.includes_current { 5.0 } else { f32::nothing(reduction.operator) };
            assert_eq!(result[0].to_bits(), expected.to_bits(), "{reduction:?}");
        }
    }
}

#[test]
fn a_literal_is_combined_at_each_point() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (input, total) = (tape.input::<u32, 1>(), tape.accumulator::<u32>(Operator::Sum, false));
    total.combine_if(input.index(0).lt(10), 3);
    let recording = tape.finish().expect("the kernel is right");
    assert_eq!(recording.results().count(), 0);
    let tape = Tape::new(1);
    tape.accumulator::<u32>(Operator::Sum, false).combine(2);
    let twos = tape.finish().expect("the kernel is right");
    assert_eq!(counted(&recording), 30);
    assert_eq!(counted(&twos), 20_000);
}

/// What a recording without elements combines over 10,000 points.
fn counted(recording: &Recording) -> u32 {
    let (mut numbers, mut memory) = (vec![[7]; recording.operands().count()], Memory::default());
    let (points, instructions) = ([[0; 3], [1, 1, 10_000]], Instructions::detect());
    let mut operands: Vec<_> = numbers.iter_mut().map(|number| row_mut(&mut number[..], 1)).collect();
    let mut operands: Vec<_> = operands.iter_mut().map(|operand| operand as &mut dyn Operand).collect();
    let parameters = recording.parameters();
    Program::new(recording).run_whole(parameters, points, &mut operands, &mut memory, instructions);
    numbers.last().expect("the total is the last operand")[0]
}

#[test]
fn no_value_or_two_of_one_point_are_refused() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (_, _) = (tape.input::<f32, 1>(), tape.accumulator::<f32>(Operator::Sum, false));
    let error = tape.finish().expect_err("it combines nothing");
    assert_eq!(error, RecordError::NeverCombined { operand: 1 });
    let tape = Tape::new(1);
    let total = tape.accumulator::<f32>(Operator::Min, false);
    total.combine(1.0);
    total.combine(2.0);
    let error = tape.finish().expect_err("it combines two");
    assert!(matches!(error, RecordError::CombinedTwice { operand: 0, .. }), "{error}");
    assert!(error.to_string().contains("tests/reductions.rs"), "{error}");
}

#[test]
#[should_panic(expected = "`And` does not combine numbers of the type f32")]
fn floats_have_no_bits_to_combine() {
    let _deadline = deadline();
    Tape::new(1).accumulator::<f32>(Operator::And, false);
}

#[test]
fn another_operator_is_another_program() {
    let _deadline = deadline();
    let of = |operator, includes_current| {
        let tape = Tape::new(1);
        let input = tape.input::<f32, 1>();
        tape.accumulator(operator, includes_current).combine(input.here());
        tape.finish().expect("the kernel is right")
    };
    let program = Program::new(&of(Operator::Sum, false));
    assert!(program.is_of(&of(Operator::Sum, false)));
    assert!(!program.is_of(&of(Operator::Product, false)));
    assert!(!program.is_of(&of(Operator::Sum, true)));
}

#[test]
fn a_recording_that_ends_at_leaves_is_another_program_without_the_number_before() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let input = tape.input::<f32, 1>();
    tape.accumulator(Operator::Sum, true).combine(input.here());
    let whole = tape.finish().expect("the kernel is right");
    let at_leaves = whole.ending_at_leaves();
    assert!(at_leaves.ends_at_leaves() && !whole.ends_at_leaves());
    assert!(whole.reductions().all(|reduction| reduction.includes_current));
    assert!(at_leaves.reductions().all(|reduction| !reduction.includes_current));
    assert!(!Program::new(&whole).is_of(&at_leaves));
    assert_eq!(at_leaves.program_hash(), at_leaves.ending_at_leaves().program_hash());
}

/// The results of folds, elements that all points of a row share, and elements at an edge: none of them is in
/// one slice of an operand.
#[test]
fn what_folds_and_operands_of_other_ranks_give_is_combined() {
    let _deadline = deadline();
    const INNER: usize = 5;
    let draw = |count: usize| (0..count).map(|at| ((at * 7919) % 10_007) as f64 / 7.0).collect::<Vec<_>>();
    let mut memory = Memory::default();
    for extent @ [_, rows, cols] in [[1, 3, 9000], [1, 41, 130], [1, 200, 1]] {
        let tape = Tape::new(2);
        let row = tape.input_of_rank::<f64, 1, 2>();
        let (matrix, number) = (tape.input::<f64, 2>(), tape.input_of_rank::<f64, 0, 2>());
        let accumulators = [(); 4].map(|()| tape.accumulator::<f64>(Operator::Sum, false));
        let (y, x) = (accumulators[0].point(0), accumulators[0].point(1));
        let first = row.get([y]);
        let fold =
            accumulators[0].fold(1..INNER, first, |sum, k| sum * 0.5 + matrix.get_periodic([y, x + k]));
        accumulators[0].combine(fold);
        accumulators[1].combine(first);
        accumulators[2].combine(number.value());
        accumulators[3].combine(matrix.get_clamped([y, x + 3]));
        let recording = tape.finish().expect("the kernel is right");
        let program = Program::new(&recording);
        let inputs = [draw(rows), draw(rows * cols), vec![0.3]];
        let value = |accumulator: usize, [_, y, x]: [usize; 3]| match accumulator {
            0 => {
                let term = |k: usize| inputs[1][y * cols + (x + k) % cols];
                (1..INNER).fold(inputs[0][y], |sum, k| sum * 0.5 + term(k))
            }
            1 => inputs[0][y],
            2 => 0.3,
            _ => inputs[1][y * cols + (x + 3).min(cols - 1)],
        };
        let points = [[0; 3], extent];
        let count = Leaves::new(2, points).count();
        let sets = Instructions::ALL.into_iter().filter(|set| set.is_available());
        for (instructions, longest) in sets.flat_map(|set| [(set, usize::MAX), (set, 70)]) {
            // The inputs have different ranks. The results have a place for each leaf.
            let taken = inputs.iter().zip([[1, 1, rows], extent, [1; 3]]);
            let mut taken: Vec<_> =
                taken.map(|(input, extent)| Array::new(&input[..], extent, longest)).collect();
            let mut results = vec![vec![0.0_f64; count]; recording.reductions().count()];
            let mut set: Vec<_> =
                results.iter_mut().map(|result| row_mut(&mut result[..], longest)).collect();
            let taken = taken.iter_mut().map(|array| array as &mut dyn Operand);
            let mut operands: Vec<_> =
                taken.chain(set.iter_mut().map(|array| array as &mut dyn Operand)).collect();
            program.run(recording.parameters(), points, &mut operands, &mut memory, instructions);
            for (accumulator, ours) in results.iter().enumerate() {
                let plain = tree(Operator::Sum).leaves(2, points, |point| value(accumulator, point));
                assert!(
                    ours.iter().zip(&plain).all(|(a, b)| a.to_bits() == b.to_bits()),
                    "{instructions:?}, {longest}, accumulator {accumulator} over {extent:?}: {ours:?}, not {plain:?}"
                );
            }
        }
    }
}
