//! Reductions and scans against loops in Rust: all elements, and along each axis.

mod common;

use anabranch::{Operator, and, max, min, operator, or, product, sum};
use anabranch_array::Arrays;
use common::{Drawn, bits, devices, elements, exact, hosts, number, places, points, shape, signs};
use proptest::prelude::*;
use std::ops::Add;
use testing::deadline;

/// The last value that is not 0: an operator that does not commute.
fn last() -> impl Operator<u64> + Copy {
    operator(0, |a, b| if b == 0 { a } else { b })
}

/// Every third element is 0, so that the operator above has something to do.
fn with_zeros(seed: u64, len: usize) -> Vec<u64> {
    let values = elements::<u64>(seed, len).into_iter().enumerate();
    values.map(|(at, value)| if at % 3 == 0 { 0 } else { value }).collect()
}

/// The running results along an axis, or of all elements.
fn scanned<T: Copy, const D: usize>(
    values: &[T],
    shape: [usize; D],
    axis: Option<usize>,
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut result = values.to_vec();
    for (at, mut point) in points(shape).into_iter().enumerate() {
        let before = match axis {
            None => at.checked_sub(1),
            Some(axis) => point[axis].checked_sub(1).map(|previous| {
                point[axis] = previous;
                number(shape, point)
            }),
        };
        if let Some(before) = before {
            result[at] = combine(result[before], values[at]);
        }
    }
    result
}

/// The last elements of each line.
fn ends<T: Copy, const D: usize>(scanned: &[T], shape: [usize; D], axis: usize, identity: T) -> Vec<T> {
    let mut reduced = shape;
    reduced[axis] = 1;
    let end = |mut point: [usize; D]| {
        let last = shape[axis].checked_sub(1)?;
        point[axis] = last;
        Some(scanned[number(shape, point)])
    };
    points(reduced).into_iter().map(|point| end(point).unwrap_or(identity)).collect()
}

fn check<T: Drawn, const D: usize, O: Operator<T> + Copy>(
    arrays: &Arrays,
    values: &[T],
    shape: [usize; D],
    operator: O,
) {
    let combine = |a, b| operator.combine(a, b);
    let a = arrays.from_slice(shape, values).unwrap();
    let of_all = scanned(values, shape, None, combine);
    assert_eq!(bits(&a.scan(operator).unwrap().to_vec().unwrap()), bits(&of_all), "{shape:?}");
    let total = of_all.last().copied().unwrap_or(operator.identity());
    assert_eq!(a.reduce(operator).unwrap().get([]).unwrap().bits(), total.bits(), "{shape:?}");
    for axis in 0..D {
        let along = scanned(values, shape, Some(axis), combine);
        let ours = a.scan_axis(axis, operator).unwrap();
        assert_eq!(bits(&ours.to_vec().unwrap()), bits(&along), "{shape:?}, axis {axis}");
        let ours = a.reduce_axis(axis, operator).unwrap();
        assert_eq!(
            (ours.shape()[axis], ours.len()),
            (1, a.len().checked_div(shape[axis]).unwrap_or_else(|| points(ours.shape()).len()))
        );
        let expected = ends(&along, shape, axis, operator.identity());
        assert_eq!(bits(&ours.to_vec().unwrap()), bits(&expected), "{shape:?}, axis {axis}");
    }
}

/// The numbers, with positive zeros.
fn without_minus<T: Drawn + Add<Output = T>>(numbers: Vec<T>) -> Vec<T> {
    numbers.into_iter().map(|number| number + T::default()).collect()
}

fn check_all<const D: usize>(shape: [usize; D], seed: u64) {
    let len = shape.iter().product();
    let (of_i64, with_zeros) = (elements::<i64>(seed, len), with_zeros(seed, len));
    let of_u32 = elements::<u32>(seed, len);
    // Which of two zeros comes first in the tree is no promise: all of them are positive.
    let of_f32: Vec<f32> = elements(seed, len).into_iter().map(|x: f32| x + 0.0).collect();
    let of_f64: Vec<f64> = elements(seed, len).into_iter().map(|x: f64| x + 0.0).collect();
    let (exact, exact_f64) = (exact::<f32>(seed, len), exact::<f64>(seed, len));
    // The sign of a sum that is zero is no promise.
    let (exact, exact_f64) = (without_minus(exact), without_minus(exact_f64));
    let (signs, signs_f64) = (signs::<f32>(seed, len), signs::<f64>(seed, len));
    for arrays in places() {
        check(arrays, &exact, shape, sum());
        check(arrays, &exact_f64, shape, sum());
        check(arrays, &signs, shape, product());
        check(arrays, &signs_f64, shape, product());
        check(arrays, &of_i64, shape, sum());
        check(arrays, &of_i64, shape, product());
        check(arrays, &of_i64, shape, min());
        check(arrays, &of_i64, shape, and());
        check(arrays, &with_zeros, shape, or());
        check(arrays, &of_u32, shape, product());
        check(arrays, &of_u32, shape, max());
        check(arrays, &with_zeros, shape, last());
        check(arrays, &of_f32, shape, max());
        check(arrays, &of_f64, shape, min());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn folds_give_what_loops_give(
        (one, two, three, four) in (shape::<1>(), shape::<2>(), shape::<3>(), shape::<4>()),
        seed in any::<u32>(),
    ) {
        let _deadline = deadline();
        check_all(one, seed.into());
        check_all(two, seed.into());
        check_all(three, seed.into());
        check_all(four, seed.into());
    }
}

#[test]
fn large_arrays_are_folded_in_parts() {
    let _deadline = deadline();
    check_all([100_003], 1);
    check_all([3, 50_001], 2);
    check_all([50_001, 3], 3);
    check_all([2, 300, 129], 4);
    check_all([2, 40_000, 2], 5);
}

#[test]
fn very_long_lines_are_scanned_in_parts_of_parts() {
    let _deadline = deadline();
    let values: Vec<u32> = (0..1_100_003_u32).map(|at| at.wrapping_mul(2_654_435_761)).collect();
    let sums = values.iter().scan(0_u32, |sum, &value| {
        *sum = sum.wrapping_add(value);
        Some(*sum)
    });
    let sums = sums.collect::<Vec<_>>();
    for arrays in devices() {
        let array = arrays.from_slice([values.len()], &values).unwrap();
        assert!(array.scan(sum()).unwrap().to_vec().unwrap() == sums, "{arrays:?}");
        assert_eq!(Some(&array.reduce(sum()).unwrap().get([]).unwrap()), sums.last());
    }
}

#[test]
fn a_sum_with_an_infinity_is_one_and_with_what_is_not_a_number_is_none() {
    let _deadline = deadline();
    let ones = |special: &[(usize, f32)]| {
        let mut values = vec![1.0_f32; 5000];
        special.iter().for_each(|&(at, value)| values[at] = value);
        values
    };
    for arrays in places() {
        for at in [0, 1, 2499, 4999] {
            let sum_of = |values: &[f32]| {
                let a = arrays.from_slice([values.len()], values).unwrap();
                let scan = a.scan(sum()).unwrap().to_vec().unwrap();
                assert!(scan[..at].iter().all(|sum| sum.is_finite()), "{at}: {arrays:?}");
                [a.reduce(sum()).unwrap().get([]).unwrap(), scan[values.len() - 1]]
            };
            assert_eq!(sum_of(&ones(&[(at, f32::INFINITY)])), [f32::INFINITY; 2], "{at}: {arrays:?}");
            assert!(sum_of(&ones(&[(at, f32::NAN)])).iter().all(|sum| sum.is_nan()), "{at}: {arrays:?}");
            let both = ones(&[(at, f32::INFINITY), (4999 - at, f32::NEG_INFINITY)]);
            let both = arrays.from_slice([5000], &both).unwrap().reduce(sum()).unwrap();
            assert!(both.get([]).unwrap().is_nan(), "{at}: {arrays:?}");
        }
    }
}

#[test]
fn sums_of_f64_are_close_to_those_of_a_loop_in_all_places() {
    let _deadline = deadline();
    let values: Vec<f64> = (0..100_003_u64).map(|at| (at * at % 1013) as f64 / 7.0 - 50.0).collect();
    let exact: f64 = values.iter().sum();
    for arrays in places() {
        let a = arrays.from_slice([values.len()], &values).unwrap();
        let ours = [
            a.reduce(sum()).unwrap().get([]).unwrap(),
            *a.scan(sum()).unwrap().to_vec().unwrap().last().unwrap(),
        ];
        assert!(ours.iter().all(|ours| (ours - exact).abs() < 1e-6), "{ours:?}, not {exact}: {arrays:?}");
    }
}

/// The sums of all elements, along each axis, and the same as scans.
fn sums(arrays: &Arrays, values: &[f32], shape: [usize; 2]) -> Vec<f32> {
    let a = arrays.from_slice(shape, values).unwrap();
    let total = a.reduce(sum()).unwrap().to_vec().unwrap();
    let axes = [0, 1].map(|axis| a.reduce_axis(axis, sum()).unwrap().to_vec().unwrap());
    let scans = [0, 1].map(|axis| a.scan_axis(axis, sum()).unwrap().to_vec().unwrap());
    let scan = a.scan(sum()).unwrap().to_vec().unwrap();
    [total, axes.concat(), scans.concat(), scan].concat()
}

/// The same, with more digits.
fn exact_sums(values: &[f32], shape: [usize; 2]) -> Vec<f64> {
    let values: Vec<f64> = values.iter().map(|&value| value.into()).collect();
    let all = scanned(&values, shape, None, |a, b| a + b);
    let scans = [0, 1].map(|axis| scanned(&values, shape, Some(axis), |a, b| a + b));
    let axes = [0, 1].map(|axis| ends(&scans[axis], shape, axis, 0.0));
    [all[all.len() - 1..].to_vec(), axes.concat(), scans.concat(), all].concat()
}

#[test]
fn sums_of_floats_have_the_same_bits_on_any_number_of_threads_and_in_each_run_on_a_device() {
    let _deadline = deadline();
    for shape in [[100_003, 1], [1, 100_003], [317, 331], [70_000, 2]] {
        let len = shape[0] * shape[1];
        let values: Vec<f32> = (0..len).map(|at| ((at * at) % 1013) as f32 / 7.0 - 50.0).collect();
        let exact = exact_sums(&values, shape);
        let most = 1e-6 * 50.0 * len as f64;
        let first = sums(&hosts()[0], &values, shape);
        assert!((f64::from(first[0]) - exact[0]).abs() < most, "{}, not {}", first[0], exact[0]);
        for arrays in &hosts()[1..] {
            assert!(bits(&sums(arrays, &values, shape)) == bits(&first), "{shape:?}");
        }
        for arrays in devices() {
            let ours = sums(arrays, &values, shape);
            assert!(bits(&sums(arrays, &values, shape)) == bits(&ours), "{shape:?}");
            assert_eq!(ours.len(), exact.len());
            for (ours, exact) in ours.into_iter().zip(&exact) {
                // A simulated device leaves the scans to the host, which adds 32,768 elements one after the
                // other.
                assert!((f64::from(ours) - exact).abs() < 10.0 * most, "{ours}, not {exact}: {shape:?}");
            }
        }
    }
}

#[test]
fn results_of_a_closure_are_reduced_in_all_places() {
    let _deadline = deadline();
    let values = elements::<i32>(9, 20 * 31);
    let squares: Vec<i32> = values.iter().map(|x| x.wrapping_mul(*x)).collect();
    for arrays in places() {
        let a = arrays.from_slice([20, 31], &values).unwrap();
        let total = a.map_reduce(|x| x * x, sum()).unwrap();
        assert_eq!(total.get([]).unwrap(), squares.iter().fold(0, |sum: i32, x| sum.wrapping_add(*x)));
        let rows = a.map_reduce_axis(1, |x| x * x, min()).unwrap();
        let expected: Vec<i32> = squares.chunks(31).map(|row| *row.iter().min().unwrap()).collect();
        assert_eq!(rows.to_vec().unwrap(), expected);
        // The result goes on where the array is.
        assert_eq!(total.device().is_some(), arrays.device().is_some());
        assert_eq!(rows.map(|x| x - 1).unwrap().to_vec().unwrap()[3], expected[3].wrapping_sub(1));
    }
}

#[test]
fn there_is_no_axis_behind_the_last() {
    let _deadline = deadline();
    let a = hosts()[0].zeros::<f32, 2>([2, 3]).unwrap();
    for result in [a.reduce_axis(2, sum()), a.scan_axis(2, sum())] {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("there is no axis 2 in the shape [2, 3]"), "{text}");
    }
}
