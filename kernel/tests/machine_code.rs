//! Random kernels with more results, elements and numbers than a processor has registers, against a plain
//! evaluation point by point, on all instruction sets: machine code keeps some of them in registers and the
//! others in memory.

mod array;

use anabranch_kernel::{Float, Input, Instructions, Memory, Operand, Program, Signed, Tape, Value};
use array::{Array, row_mut};
use proptest::prelude::*;
use std::ops::{Add, Mul, Sub};
use testing::deadline;

/// What a kernel computes next. The numbers of earlier results count back from the last one.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An element of an input.
    Element {
        input: usize,
        shift: usize,
    },
    Literal(f32),
    Add(usize, usize),
    Sub(usize, usize),
    Mul(usize, usize),
    /// It is no part of a chain.
    Abs(usize),
}

/// The most elements after a point.
const SHIFTS: usize = 12;

fn kernels() -> impl Strategy<Value = Vec<Step>> {
    // How far back a step looks, and so how many results are needed at a time, and how many functions there
    // are.
    (1_usize..60, prop_oneof![2 => Just(0), 1 => 1..6_u32]).prop_flat_map(|(back, functions)| {
        let element = (0..2_usize, 0..=SHIFTS).prop_map(|(input, shift)| Step::Element { input, shift });
        let literal = (-2.0..2.0_f32).prop_map(Step::Literal);
        let both = (0..back, 0..back, 0..3).prop_map(|(a, b, what)| match what {
            0 => Step::Add(a, b),
            1 => Step::Sub(a, b),
            _ => Step::Mul(a, b),
        });
        let abs = (0..back).prop_map(Step::Abs);
        let step = prop_oneof![4 => element, 2 => literal, 14 => both, functions => abs];
        prop::collection::vec(step, 2..160)
    })
}

/// Numbers of a tape, or plain ones.
trait Numbers: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    fn abs(self) -> Self;
}

impl<T: Float + Signed> Numbers for Value<'_, T>
where
    Self: Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>,
{
    fn abs(self) -> Self {
        Value::abs(self)
    }
}

macro_rules! plain {
    ($($float:ident)*) => {
        $(
            impl Numbers for $float {
                fn abs(self) -> Self {
                    $float::abs(self)
                }
            }
        )*
    };
}

plain!(f32 f64);

/// The last result, and the sum of all results that nothing has used.
fn compute<V: Numbers>(
    steps: &[Step],
    element: impl Fn(usize, usize) -> V,
    literal: impl Fn(f32) -> V,
) -> [V; 2] {
    let mut results = vec![element(0, 0)];
    let mut is_used = vec![false];
    for &step in steps {
        let mut result = |back: usize| {
            let at = results.len() - 1 - back % results.len();
            is_used[at] = true;
            results[at]
        };
        let next = match step {
            Step::Element { input, shift } => element(input, shift),
            Step::Literal(value) => literal(value),
            Step::Add(a, b) => result(a) + result(b),
            Step::Sub(a, b) => result(a) - result(b),
            Step::Mul(a, b) => result(a) * result(b),
            Step::Abs(a) => result(a).abs(),
        };
        results.push(next);
        is_used.push(false);
    }
    let last = results[results.len() - 1];
    let unused = results.iter().zip(&is_used).filter(|&(_, is_used)| !is_used);
    [last, unused.map(|(&result, _)| result).reduce(|sum, next| sum + next).expect("the last one is unused")]
}

/// Runs a kernel with each set of instructions and compares it with the plain evaluation. `longest` is the
/// length of the slices of the operands.
fn check<T>(steps: &[Step], len: usize, longest: usize) -> Result<(), TestCaseError>
where
    T: Float + Numbers + From<f32> + Into<f64>,
    for<'t> Value<'t, T>: Numbers,
{
    let tape = Tape::new(1);
    let inputs: [Input<'_, T, 1>; 2] = [tape.input(), tape.input()];
    let outputs = [tape.output::<T, 1>(), tape.output()];
    let here = inputs[0].here();
    let results = compute(
        steps,
        |input, shift| inputs[input].at([shift as isize]),
        |value| here.literal(T::from(value)),
    );
    outputs.iter().zip(results).for_each(|(output, result)| output.set(result));
    let recording = tape.finish().expect("the kernel is right");
    let program = Program::new(&recording);
    let value = |at: usize| T::from((at * 7919 % 101) as f32 / 50.0 - 1.0);
    let elements = [0, 1].map(|input| (0..len + SHIFTS).map(|at| value(at + 37 * input)).collect::<Vec<T>>());
    let mut memory = Memory::default();
    for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        let mut ours = [vec![T::default(); len], vec![T::default(); len]];
        let [first, second] = &mut ours;
        let [a, b] = &elements;
        let operands: &mut [&mut dyn Operand] = &mut [
            &mut Array::new(&a[..], [1, 1, a.len()], longest),
            &mut Array::new(&b[..], [1, 1, b.len()], usize::MAX),
            &mut row_mut(first, longest),
            &mut row_mut(second, usize::MAX),
        ];
        program.run(recording.parameters(), [[0; 3], [1, 1, len]], operands, &mut memory, instructions);
        for at in 0..len {
            let plain = compute::<T>(steps, |input, shift| elements[input][at + shift], T::from);
            for (ours, plain) in ours.iter().zip(plain) {
                let [ours, plain]: [f64; 2] = [ours[at].into(), plain.into()];
                let same = ours.to_bits() == plain.to_bits() || ours.is_nan() && plain.is_nan();
                prop_assert!(same, "{instructions:?}: point {at} of {len} is {ours:?}, not {plain:?}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn kernels_of_f32_agree(steps in kernels(), len in 1_usize..200, longest in 1_usize..300) {
        let _deadline = deadline();
        check::<f32>(&steps, len, longest)?;
    }

    #[test]
    fn kernels_of_f64_agree(steps in kernels(), len in 1_usize..200, longest in 1_usize..300) {
        let _deadline = deadline();
        check::<f64>(&steps, len, longest)?;
    }
}
