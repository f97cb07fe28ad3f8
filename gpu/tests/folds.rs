//! Kernels with folds and with operands of any rank on a GPU, against the processor.

#[allow(dead_code, reason = "the operands of the plain evaluation")]
#[path = "../../kernel/tests/array/mod.rs"]
mod array;
#[allow(dead_code, reason = "the plain evaluation: here the processor has the expected results")]
#[path = "../../kernel/tests/loops/mod.rs"]
mod loops;
mod support;

use anabranch_kernel::{Operator, Tape};
use loops::{Kernel, kernels};
use proptest::prelude::*;
use support::{
    Array, Elemental, Elements, gpu, on_gpu, on_processor,
    plain::{self, Plain},
};
use testing::deadline;

fn check<T: Plain + Elemental>(kernel: &Kernel<T>, seed: u64) -> Result<(), TestCaseError>
where
    Vec<T>: Into<Elements>,
{
    let Some(gpu) = gpu() else { return Ok(()) };
    let info = gpu.info();
    // The conversions of the list need all types.
    if !info.has_f64 || !info.has_i64 {
        return Ok(());
    }
    let array = |(salt, extent): (u64, [usize; 3])| {
        let count = extent.iter().product::<usize>() as u64;
        Array::new(extent, (0..count).map(|at| T::draw(seed ^ salt, at)).collect::<Vec<T>>())
    };
    let extents = kernel.inputs.iter().map(|&(_, extent)| extent).chain([kernel.points[1]]);
    let mut arrays: Vec<Array> = (0..).zip(extents).map(array).collect();
    let mut expected = arrays.clone();
    let recording = kernel.record();
    let result = on_gpu(&*gpu, &recording, kernel.points, &mut arrays);
    prop_assert!(result.is_ok(), "{result:?}");
    on_processor(&recording, kernel.points, &mut expected);
    let output = arrays.len() - 1;
    for (at, (&ours, &theirs)) in
        arrays[output].get::<T>().iter().zip(expected[output].get::<T>()).enumerate()
    {
        prop_assert!(ours == theirs, "element {at} is {ours:?}, not {theirs:?}");
    }
    Ok(())
}

macro_rules! oracles {
    ($($name:ident $number:ident),*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(kernel in kernels::<$number>(90), seed in any::<u64>()) {
                    let _deadline = deadline();
                    check(&kernel, seed)?;
                }
            )*
        }
    };
}

// Floats of random kernels may be rounded in other places.
oracles!(folds_of_i32_agree i32, folds_of_u32_agree u32, folds_of_i64_agree i64, folds_of_u64_agree u64);

#[test]
fn a_matrix_product_and_sums_along_axes_agree() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let (rows, inner, cols) = (19, 33, 70);
    let draw = |count: usize, salt: usize| {
        (0..count).map(|at| ((at * 7919 + salt) % 17) as f32 - 8.0).collect::<Vec<_>>()
    };
    let a = Array::new([1, rows, inner], draw(rows * inner, 1));
    let b = Array::new([1, inner, cols], draw(inner * cols, 2));

    let tape = Tape::new(2);
    let (left, right, c) = (tape.input::<f32, 2>(), tape.input::<f32, 2>(), tape.output::<f32, 2>());
    let (row, col) = (c.point(0), c.point(1));
    c.set(c.fold(0..inner, 0.0, |sum, k| sum + left.get([row, k]) * right.get([k, col])));
    let product = tape.finish().expect("the kernel is right");

    let tape = Tape::new(1);
    let (of, sum) = (tape.input_of_rank::<f32, 2, 1>(), tape.output::<f32, 1>());
    sum.set(sum.fold(0..inner, 0.0, |total, k| total + of.get([sum.point(0), k])));
    let sums_of_rows = tape.finish().expect("the kernel is right");

    let tape = Tape::new(1);
    let (of, sum) = (tape.input_of_rank::<f32, 2, 1>(), tape.output::<f32, 1>());
    sum.set(sum.fold(0..inner, 0.0, |total, k| total + of.get([k, sum.point(0)])));
    let sums_of_columns = tape.finish().expect("the kernel is right");

    for (recording, inputs, extent) in [
        (product, vec![a.clone(), b.clone()], [1, rows, cols]),
        (sums_of_rows, vec![a], [1, 1, rows]),
        (sums_of_columns, vec![b], [1, 1, cols]),
    ] {
        let mut arrays = inputs;
        arrays.push(Array::new(extent, vec![0.0_f32; extent.iter().product()]));
        let mut expected = arrays.clone();
        on_gpu(&*gpu, &recording, [[0; 3], extent], &mut arrays).expect("the device has these operations");
        on_processor(&recording, [[0; 3], extent], &mut expected);
        let (ours, theirs) = (&arrays[arrays.len() - 1], &expected[arrays.len() - 1]);
        // Small whole numbers are exact, wherever they are rounded.
        assert_eq!(ours.get::<f32>(), theirs.get::<f32>());
    }
}

#[test]
fn reductions_of_folds_and_of_numbers_agree() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let (rows, inner) = (9001, 7);
    let number = |at: usize| ((at * 7919) % 17) as f32 - 8.0;
    for [points, turns] in [[rows, inner], [1, inner], [rows, 0], [0, inner]] {
        let tape = Tape::new(1);
        let (of, factor) = (tape.input_of_rank::<f32, 2, 1>(), tape.input_of_rank::<f32, 0, 1>());
        let (sum, least) = (tape.accumulator(Operator::Sum, true), tape.accumulator(Operator::Min, false));
        let row = sum.point(0);
        let total = sum.fold(0..turns, factor.value(), |total, k| total + of.get([row, k]));
        sum.combine(total);
        least.combine_if(total.gt(-20.0), total);
        let recording = tape.finish().expect("the kernel is right");
        let matrix = (0..rows * inner).map(number).collect::<Vec<_>>();
        let one = |value: f32| Array::new([1; 3], vec![value]);
        let mut arrays = [Array::new([1, rows, inner], matrix), one(3.0), one(100.0), one(0.0)];
        let mut expected = arrays.clone();
        let points = [[0; 3], [1, 1, points]];
        on_gpu(&*gpu, &recording, points, &mut arrays).expect("the device has these operations");
        on_processor(&recording, points, &mut expected);
        // Small whole numbers are exact, wherever they are rounded.
        for (ours, theirs) in arrays.iter().zip(&expected) {
            assert_eq!(ours.get::<f32>(), theirs.get::<f32>(), "{points:?}, {turns} turns");
        }
        // The values do not all agree by being nothing.
        assert!(points[1][2] == 0 || arrays[2].get::<f32>()[0] != 100.0);
    }
}
