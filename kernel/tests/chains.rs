//! Sums, differences and products of floats, which a program computes in chains, against a plain evaluation
//! point by point: each choice of two operations and of their inputs, and sums and products of several terms,
//! on all instruction sets.

mod array;

use anabranch_kernel::{Input, Instructions, Memory, Number, Operand, Program, Scalar, Tape, Value};
use array::{Array, row_mut};
use std::{
    ops::{Add, Mul, Sub},
    panic::{AssertUnwindSafe, catch_unwind},
};
use testing::deadline;

/// A row that a program takes elements of.
fn row<T>(elements: &[T]) -> Array<&[T]> {
    Array::new(elements, [1, 1, elements.len()], usize::MAX)
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Sub,
    Mul,
}

const OPERATIONS: [Operation; 3] = [Operation::Add, Operation::Sub, Operation::Mul];

impl Operation {
    fn of<T: Add<Output = T> + Sub<Output = T> + Mul<Output = T>>(self, a: T, b: T) -> T {
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
        }
    }
}

/// Numbers that a kernel computes with: of a tape, and plain ones.
trait Numbers<T> {
    type Value: Copy + Add<Output = Self::Value> + Sub<Output = Self::Value> + Mul<Output = Self::Value>;

    /// An element of the input.
    fn element(&self, shift: usize) -> Self::Value;
    /// A number that is the same for all points.
    fn literal(&self, value: T) -> Self::Value;
}

impl<'t, T> Numbers<T> for Input<'t, T, 1>
where
    T: Number,
    Value<'t, T>: Add<Output = Value<'t, T>> + Sub<Output = Value<'t, T>> + Mul<Output = Value<'t, T>>,
{
    type Value = Value<'t, T>;

    fn element(&self, shift: usize) -> Value<'t, T> {
        self.at([shift as isize])
    }

    fn literal(&self, value: T) -> Value<'t, T> {
        self.here().literal(value)
    }
}

/// The input, and a point.
struct At<'a, T>(&'a [T], usize);

impl<T: Number + Add<Output = T> + Sub<Output = T> + Mul<Output = T>> Numbers<T> for At<'_, T> {
    type Value = T;

    fn element(&self, shift: usize) -> T {
        self.0[self.1 + shift]
    }

    fn literal(&self, value: T) -> T {
        value
    }
}

/// A kernel.
#[derive(Clone, Copy, Debug)]
enum Kernel {
    /// An operation, and one with its result; which of the inputs are literals, and whether the result is the
    /// second input.
    Two { operations: [Operation; 2], are_literals: [bool; 3], is_second: bool },
    /// A sum of four in one of its orders, times a literal if there is one.
    SumOfFour { order: usize, factor: Option<bool> },
    /// Two products with literals, which come first or second.
    Products { operation: Operation, literal_first: [bool; 2] },
}

impl Kernel {
    fn all() -> Vec<Self> {
        let bools = [false, true];
        let mut all = Vec::new();
        for first in OPERATIONS {
            for (second, bits) in
                OPERATIONS.into_iter().flat_map(|second| (0..16).map(move |bits| (second, bits)))
            {
                let are_literals = [0, 1, 2].map(|input| bits & (1 << input) != 0);
                all.push(Self::Two { operations: [first, second], are_literals, is_second: bits & 8 != 0 });
            }
        }
        for order in 0..6 {
            all.extend([None, Some(false), Some(true)].map(|factor| Self::SumOfFour { order, factor }));
        }
        for (operation, first) in
            [Operation::Add, Operation::Sub].into_iter().flat_map(|o| bools.map(|b| (o, b)))
        {
            all.extend(bools.map(|second| Self::Products { operation, literal_first: [first, second] }));
        }
        all
    }

    fn compute<T: From<f32>, N: Numbers<T>>(self, numbers: &N) -> N::Value {
        let literal = |which: usize| numbers.literal(T::from([0.3, -1.7, 2.25][which]));
        match self {
            Self::Two { operations: [first, second], are_literals, is_second } => {
                let [a, b, c] = [0, 1, 2]
                    .map(|input| if are_literals[input] { literal(input) } else { numbers.element(input) });
                let result = first.of(a, b);
                if is_second { second.of(c, result) } else { second.of(result, c) }
            }
            Self::SumOfFour { order, factor } => {
                let [a, b, c, d] = [0, 1, 2, 3].map(|shift| numbers.element(shift));
                let sum = match order {
                    0 => ((a + b) + c) + d,
                    1 => d + ((a + b) + c),
                    2 => (c + (a + b)) + d,
                    3 => d + (c + (b + a)),
                    // Pairs are no sum of four one after the other.
                    4 => (a + b) + (c + d),
                    _ => (((a + b) + c) + d) + a,
                };
                match factor {
                    None => sum,
                    Some(false) => sum * literal(0),
                    Some(true) => literal(0) * sum,
                }
            }
            Self::Products { operation, literal_first } => {
                let product = |which: usize| {
                    let (element, literal) = (numbers.element(which), literal(which));
                    if literal_first[which] { literal * element } else { element * literal }
                };
                operation.of(product(0), product(1))
            }
        }
    }
}

/// Numbers of all sizes and both signs, zeros and infinities.
fn elements<T: From<f32>>(count: usize) -> Vec<T> {
    let value = |at: usize| match at * 7919 % 101 {
        0 => -0.0,
        1 => 0.0,
        2 => f32::INFINITY,
        3 => 1e-40,
        4 => f32::MIN,
        number => (number as f32 - 47.0) / 7.0,
    };
    (0..count).map(|at| T::from(value(at))).collect()
}

macro_rules! tests {
    ($($name:ident $number:ident),*) => {
        $(
            #[test]
            fn $name() {
                let _deadline = deadline();
                let mut memory = Memory::default();
                for kernel in Kernel::all() {
                    let tape = Tape::new(1);
                    let (u, v) = (tape.input::<$number, 1>(), tape.output::<$number, 1>());
                    v.set(kernel.compute::<$number, _>(&u));
                    let recording = tape.finish().expect("the kernel is right");
                    let program = Program::new(&recording);
                    // Around the lengths of vectors, strips and blocks.
                    for len in [1, 2, 7, 8, 15, 16, 31, 33, 47, 48, 49, 64, 65, 95, 96, 97, 127, 191, 193, 257, 1025, 2047, 2049, 4100] {
                        let input = elements::<$number>(len + 3);
                        for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
                            let mut output = vec![0.0 as $number; len];
                            let points = [[0; 3], [1, 1, len]];
                            let operands: &mut [&mut dyn Operand] =
                                &mut [&mut row(&input), &mut row_mut(&mut output, usize::MAX)];
                            program.run(recording.parameters(), points, operands, &mut memory, instructions);
                            for (at, &ours) in output.iter().enumerate() {
                                let plain: $number = kernel.compute::<$number, _>(&At(&input, at));
                                assert!(
                                    ours.to_bits() == plain.to_bits() || ours.is_nan() && plain.is_nan(),
                                    "{kernel:?}, {instructions:?}: point {at} of {len} is {ours:?}, not {plain:?}"
                                );
                            }
                        }
                    }
                }
            }
        )*
    };
}

tests!(chains_of_f32_agree f32, chains_of_f64_agree f64);

#[test]
fn chains_of_both_types_have_their_own_loads_and_numbers() {
    let _deadline = deadline();
    // More of each than most programs have.
    const TERMS: usize = 40;
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f64, 1>());
    let weight = |at: usize| at as f32 / 7.0 - 2.0;
    let sum = (0..TERMS).fold(u.here(), |sum, at| sum + u.at([at as isize]) * weight(at));
    let product = (0..TERMS).fold(sum.convert::<f64>(), |product, at| product * 1.25 - f64::from(weight(at)));
    // A function between the chains: the sum has another list than the product.
    v.set(product.abs() * 0.5 + sum.convert::<f64>());
    let recording = tape.finish().expect("the kernel is right");
    let program = Program::new(&recording);
    let input =
        elements::<f32>(300 + TERMS).into_iter().map(|value| value.clamp(-9.0, 9.0)).collect::<Vec<_>>();
    let mut memory = Memory::default();
    for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        let mut output = vec![0.0_f64; 300];
        let points = [[0; 3], [1, 1, 300]];
        let operands: &mut [&mut dyn Operand] =
            &mut [&mut row(&input), &mut row_mut(&mut output, usize::MAX)];
        program.run(recording.parameters(), points, operands, &mut memory, instructions);
        for (at, &ours) in output.iter().enumerate() {
            let sum = (0..TERMS).fold(input[at], |sum, term| sum + input[at + term] * weight(term));
            let product =
                (0..TERMS).fold(f64::from(sum), |product, at| product * 1.25 - f64::from(weight(at)));
            let plain = product.abs() * 0.5 + f64::from(sum);
            assert_eq!(
                ours.to_bits(),
                plain.to_bits(),
                "{instructions:?}: point {at} is {ours}, not {plain}"
            );
        }
    }
}

#[test]
fn a_literal_or_an_operand_of_another_type_is_refused() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    v.set(u.here() + u.get([3.into()]) * 2.0);
    let recording = tape.finish().expect("the kernel is right");
    let program = Program::new(&recording);
    let run = |input: &mut dyn Operand, parameters: &[Scalar]| {
        let mut output = vec![0.0_f32; 5];
        let run = || {
            let operands: &mut [&mut dyn Operand] = &mut [input, &mut row_mut(&mut output, usize::MAX)];
            let (mut memory, points) = (Memory::default(), [[0; 3], [1, 1, 5]]);
            program.run(parameters, points, operands, &mut memory, Instructions::Portable);
        };
        catch_unwind(AssertUnwindSafe(run))
            .map_err(|panic| *panic.downcast::<String>().expect("it has a message"))
    };
    let right = recording.parameters();
    let wrong: Vec<_> = right
        .iter()
        .map(|&parameter| match parameter {
            Scalar::F32(number) => Scalar::F64(number.into()),
            other => other,
        })
        .collect();
    let (floats, doubles) = ([1.0_f32; 5], [1.0_f64; 5]);
    run(&mut row(&floats), right).expect("all types are right");
    for (panic, what) in [
        (run(&mut row(&doubles), right), "an operand has the type"),
        (run(&mut row(&floats), &wrong), "a literal has the type"),
    ] {
        let message = panic.expect_err("a type is wrong");
        assert!(message.contains(what), "{message}");
    }
}
