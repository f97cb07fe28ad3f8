//! Searches, selections and sorting, against the standard library.

mod common;

use anabranch::min;
use anabranch_array::{Array, Arrays};
use common::{Drawn, bits, coordinates, devices, elements, hosts, places, shape};
use proptest::prelude::*;
use testing::deadline;

/// The number of the least or greatest element: of equal ones the first; NaN only if there is nothing else.
fn extreme<T: Drawn>(values: impl Iterator<Item = T>, is_better: fn(&T, &T) -> bool) -> Option<usize> {
    let mut best: Option<(usize, T)> = None;
    #[allow(clippy::eq_op, reason = "only a number is equal to itself")]
    for (at, value) in values.enumerate() {
        let replaces = |best: &T| is_better(&value, best) || (best != best && value == value);
        if best.as_ref().is_none_or(|(_, best)| replaces(best)) {
            best = Some((at, value));
        }
    }
    best.map(|(at, _)| at)
}

fn check_extremes<T: Drawn, const D: usize>(arrays: &Arrays, values: &[T], shape: [usize; D]) {
    let a = arrays.from_slice(shape, values).unwrap();
    let expected = |is_better| {
        let at: Option<usize> = extreme(values.iter().copied(), is_better);
        at.map(|at| (coordinates(shape, at), values[at].bits()))
    };
    let ours = |found: Option<([usize; D], T)>| found.map(|(at, value)| (at, value.bits()));
    assert_eq!(ours(a.find_min().unwrap().wait().unwrap()), expected(T::lt), "{values:?}");
    assert_eq!(ours(a.find_max().unwrap().wait().unwrap()), expected(T::gt), "{values:?}");
    for axis in 0..D {
        let (len, inner): (usize, usize) = (shape[axis], shape[axis + 1..].iter().product());
        let lines = shape[..axis].iter().product::<usize>() * inner;
        let expected = |is_better: fn(&T, &T) -> bool| -> Vec<u32> {
            let of_line = |line: usize| {
                let start = line / inner * len * inner + line % inner;
                let line = (0..len).map(|at| values[start + at * inner]);
                extreme(line, is_better).map_or(0, |at| at as u32)
            };
            (0..lines).map(of_line).collect()
        };
        let least = a.arg_min(axis).unwrap().to_vec().unwrap();
        assert_eq!(least, expected(T::lt), "{shape:?}, axis {axis}: {values:?}");
        let greatest = a.arg_max(axis).unwrap().to_vec().unwrap();
        assert_eq!(greatest, expected(T::gt), "{shape:?}, axis {axis}: {values:?}");
    }
}

fn check_selection<const D: usize>(arrays: &Arrays, values: &[i32], shape: [usize; D]) {
    let a = arrays.from_slice(shape, values).unwrap();
    let holds = |value: &i32| value % 3 == 0;
    let numbers: Vec<u32> =
        values.iter().enumerate().filter(|(_, value)| holds(value)).map(|(at, _)| at as u32).collect();
    let first = a.find_first(|x| (x % 3).equals(0)).unwrap().wait().unwrap();
    assert_eq!(first, numbers.first().map(|&at| coordinates(shape, at as usize)));
    let found = a.find_all(|x| (x % 3).equals(0)).unwrap().wait().unwrap();
    assert_eq!((found.shape(), found.to_vec().unwrap()), ([numbers.len()], numbers.clone()));
    let mask = a.mask(|x| (x % 3).equals(0)).unwrap();
    let selected: Array<i32, 1> = a.select(&mask).unwrap().wait().unwrap();
    let expected: Vec<i32> = values.iter().copied().filter(holds).collect();
    assert_eq!(selected.to_vec().unwrap(), expected);
    // What is selected is an array like any other, although its buffer is longer.
    let sum = expected.iter().fold(0, |sum: i32, x| sum.wrapping_add(*x));
    assert_eq!(selected.reduce(anabranch::sum()).unwrap().get([]).unwrap(), sum);
    assert_eq!(selected.copy().unwrap().sort().unwrap().len(), expected.len());
    selected.fill(1).unwrap();
    let ones = selected.scan(anabranch::sum()).unwrap().to_vec().unwrap();
    assert!(ones.into_iter().eq(1..=expected.len() as i32));
}

/// NaN meets no condition, and what is selected keeps its bits.
fn check_selection_of_floats<const D: usize>(arrays: &Arrays, values: &[f32], shape: [usize; D]) {
    let a = arrays.from_slice(shape, values).unwrap();
    let holds = |value: &f32| *value < 1.0;
    let first = a.find_first(|x| x.lt(1.0)).unwrap().wait().unwrap();
    assert_eq!(first, values.iter().position(holds).map(|at| coordinates(shape, at)), "{values:?}");
    let selected: Array<f32, 1> = a.select(&a.mask(|x| x.lt(1.0)).unwrap()).unwrap().wait().unwrap();
    let expected: Vec<f32> = values.iter().copied().filter(holds).collect();
    assert_eq!(bits(&selected.to_vec().unwrap()), bits(&expected), "{values:?}");
}

fn check_sort<T: Drawn, const D: usize>(arrays: &Arrays, values: &[T], shape: [usize; D]) {
    let sorted = arrays.from_slice(shape, values).unwrap().sort().unwrap();
    let mut expected = values.to_vec();
    if !expected.is_empty() {
        expected.chunks_mut(shape[D - 1]).for_each(|line| line.sort_by(T::order));
    }
    assert_eq!(bits(&sorted.to_vec().unwrap()), bits(&expected), "{shape:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn the_least_and_the_greatest_are_found(
        (one, three) in (shape::<1>(), shape::<3>()),
        seed in any::<u32>(),
    ) {
        let _deadline = deadline();
        let seed = u64::from(seed);
        let len = |shape: &[usize]| shape.iter().product();
        for arrays in places() {
            check_extremes(arrays, &elements::<f32>(seed, len(&one)), one);
            check_extremes(arrays, &elements::<f64>(seed, len(&three)), three);
            check_extremes(arrays, &elements::<u64>(seed, len(&three)), three);
            check_extremes(arrays, &vec![f32::NAN; len(&three)], three);
        }
    }

    #[test]
    fn what_meets_a_condition_is_found_and_selected(
        (one, four) in (shape::<1>(), shape::<4>()),
        seed in any::<u32>(),
    ) {
        let _deadline = deadline();
        for arrays in places() {
            check_selection(arrays, &elements(seed.into(), one.iter().product()), one);
            check_selection(arrays, &elements(seed.into(), four.iter().product()), four);
            check_selection_of_floats(arrays, &elements(seed.into(), one.iter().product()), one);
            check_selection_of_floats(arrays, &elements(seed.into(), four.iter().product()), four);
        }
    }

    #[test]
    fn lines_are_sorted((one, two) in (shape::<1>(), shape::<2>()), seed in any::<u32>()) {
        let _deadline = deadline();
        for arrays in places() {
            check_sort::<f32, 1>(arrays, &elements(seed.into(), one[0]), one);
            check_sort::<i64, 2>(arrays, &elements(seed.into(), two[0] * two[1]), two);
        }
    }
}

#[test]
fn large_arrays_are_searched_and_sorted_in_parts() {
    let _deadline = deadline();
    for arrays in places() {
        for shape in [[1, 100_003], [100_003, 1], [50_001, 3], [3, 50_001]] {
            let len = shape[0] * shape[1];
            check_extremes(arrays, &elements::<f32>(1, len), shape);
            check_extremes(arrays, &elements::<i32>(1, len), shape);
            check_selection(arrays, &elements(2, len), shape);
            check_sort::<f32, 2>(arrays, &elements(3, len), shape);
            check_sort::<u64, 2>(arrays, &elements(3, len), shape);
        }
        check_selection(arrays, &[1; 70_000], [70_000]);
        check_selection(arrays, &[3; 70_000], [70_000]);
    }
}

/// Around the lengths at which a device sorts in another way, and elements that are in order already.
#[test]
fn lines_of_all_lengths_are_sorted() {
    let _deadline = deadline();
    for arrays in hosts().iter().take(2).chain(devices()) {
        for len in [1, 2, 3, 31, 32, 33, 64, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 4097, 6145, 9000] {
            check_sort::<f32, 2>(arrays, &elements(4, 3 * len), [3, len]);
            check_sort::<f64, 2>(arrays, &elements(5, 2 * len), [2, len]);
            check_sort::<u32, 1>(arrays, &elements(6, len), [len]);
            check_sort::<i64, 1>(arrays, &elements(7, len), [len]);
        }
        let [ascending, descending, equal] =
            [|at| at, |at| 9000 - at, |_| 7].map(|f: fn(i32) -> i32| (0..9000).map(f).collect::<Vec<i32>>());
        check_sort(arrays, &[ascending, descending, equal].concat(), [3, 9000]);
    }
}

#[test]
fn along_an_axis_without_elements_the_position_is_0() {
    let _deadline = deadline();
    for arrays in places() {
        check_extremes::<f32, 1>(arrays, &[], [0]);
        check_extremes::<i32, 3>(arrays, &[], [2, 0, 3]);
    }
}

#[test]
fn subnormal_numbers_are_no_zeros_and_of_two_zeros_the_first_is_found() {
    let _deadline = deadline();
    for arrays in places() {
        check_extremes(arrays, &[f32::NAN, 0.0, 3e-45, 1e-45, -1e-45, -3e-45], [6]);
        check_extremes(arrays, &[f32::NAN, 3e-45, 1e-45, 2e-45], [4]);
        check_extremes(arrays, &[-1e-45_f32, -0.0, 0.0, -f32::NAN], [4]);
        check_extremes(arrays, &[0.0_f32, -0.0, 0.0, f32::NAN], [4]);
        check_extremes(arrays, &[f32::NEG_INFINITY, -f32::NAN, f32::INFINITY, f32::MAX, f32::MIN], [5]);
        check_extremes(arrays, &[f64::NAN, 1e-323, 5e-324, -5e-324, -1e-323], [5]);
        check_extremes(arrays, &[-5e-324, -0.0, 0.0, -f64::NAN], [4]);
        check_extremes(arrays, &[f64::NEG_INFINITY, -f64::NAN, f64::INFINITY, f64::MAX, f64::MIN], [5]);
        let a = arrays.from_slice([3], &[f32::NAN, 3e-45, 1e-45]).unwrap();
        assert_eq!(a.reduce(min()).unwrap().get([]).unwrap().to_bits(), 1);
        assert_eq!(a.scan(min()).unwrap().to_vec().unwrap()[1..], [3e-45, 1e-45]);
    }
}

#[test]
fn floats_are_sorted_with_what_is_no_number_last() {
    let _deadline = deadline();
    let values = [f32::NAN, 1e-45, 0.0, -0.0, f32::INFINITY, -f32::NAN, 1.0, -1e-45, f32::NEG_INFINITY];
    let expected = [f32::NEG_INFINITY, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::INFINITY];
    for arrays in places() {
        let sorted = arrays.from_slice([9], &values).unwrap().sort().unwrap().to_vec().unwrap();
        assert_eq!(bits(&sorted[..7]), bits(&expected));
        assert!(sorted[7..].iter().all(|value| value.is_nan()));
    }
}

#[test]
fn a_mask_of_another_shape_is_an_error() {
    let _deadline = deadline();
    let a = hosts()[0].zeros::<f32, 2>([2, 3]).unwrap();
    let mask = hosts()[0].zeros::<u32, 2>([3, 2]).unwrap();
    let text = a.select(&mask).unwrap_err().to_string();
    assert!(
        text.contains("arrays of the shapes [2, 3] and [3, 2]; a mask has the shape of the array"),
        "{text}"
    );
}
