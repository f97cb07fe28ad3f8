//! Elementwise operations against loops in Rust, in all places.

mod common;

use anabranch_array::ArrayError;
use common::{Drawn, bits, coordinates, elements, hosts, number, places, points, shape, simulated};
use proptest::prelude::*;
use testing::deadline;

/// The shape with 1 along the axes whose bit is set.
fn flattened<const D: usize>(mut shape: [usize; D], axes: usize) -> [usize; D] {
    (0..D).filter(|axis| axes >> axis & 1 == 1).for_each(|axis| shape[axis] = 1);
    shape
}

/// The element of an array that is broadcast.
fn broadcast<T: Copy, const D: usize>(values: &[T], shape: [usize; D], point: [usize; D]) -> T {
    let point = std::array::from_fn(|axis| if shape[axis] == 1 { 0 } else { point[axis] });
    values[number(shape, point)]
}

fn check_zip<const D: usize>(shape: [usize; D], [left, right]: [usize; 2], seed: u64) {
    let shapes = [flattened(shape, left & !right), flattened(shape, right & !left)];
    let values = [0, 1].map(|at| elements::<i32>(seed + at as u64, shapes[at].iter().product()));
    let expected: Vec<i32> = points(shape)
        .into_iter()
        .map(|point| {
            let [x, y] = [0, 1].map(|at| broadcast(&values[at], shapes[at], point));
            x.wrapping_mul(3).wrapping_sub(y)
        })
        .collect();
    for arrays in places() {
        let [a, b] = [0, 1].map(|at| arrays.from_slice(shapes[at], &values[at]).unwrap());
        let result = a.zip(&b, |x, y| x * 3 - y).unwrap();
        assert_eq!((result.shape(), result.to_vec().unwrap()), (shape, expected.clone()), "{arrays:?}");
    }
}

macro_rules! check_zip_of {
    ($($name:ident $float:ident),*) => {
        $(
            /// Sums, differences and products, which are rounded alike in all places.
            fn $name<const D: usize>(shape: [usize; D], [left, right]: [usize; 2], seed: u64) {
                let shapes = [flattened(shape, left & !right), flattened(shape, right & !left)];
                let values = [0, 1].map(|at| elements::<$float>(seed + at as u64, shapes[at].iter().product()));
                let expected = |of: fn($float, $float) -> $float| {
                    let element = |point| {
                        let [x, y] = [0, 1].map(|at| broadcast(&values[at], shapes[at], point));
                        of(x, y)
                    };
                    bits(&points(shape).into_iter().map(element).collect::<Vec<$float>>())
                };
                let expected = [expected(|x, y| x + y), expected(|x, y| x - y), expected(|x, y| x * y)];
                for arrays in places() {
                    let [a, b] = [0, 1].map(|at| arrays.from_slice(shapes[at], &values[at]).unwrap());
                    let ours = [a.zip(&b, |x, y| x + y), a.zip(&b, |x, y| x - y), a.zip(&b, |x, y| x * y)];
                    for (ours, expected) in ours.into_iter().zip(&expected) {
                        match ours {
                            Ok(ours) => assert_eq!(&bits(&ours.to_vec().unwrap()), expected, "{arrays:?}"),
                            // The device has no such numbers.
                            Err(error) => {
                                let may_lack = arrays.device().is_some() && error.to_string().contains("64");
                                assert!(may_lack, "{error}");
                            }
                        }
                    }
                }
            }
        )*
    };
}

check_zip_of!(check_zip_of_f32 f32, check_zip_of_f64 f64);

fn check_map<T: Drawn>(len: usize, seed: u64) {
    let values = elements::<T>(seed, len);
    let expected: Vec<T> = values.iter().map(|&x| if x < T::default() { T::default() } else { x }).collect();
    for arrays in places() {
        let a = arrays.from_slice([len], &values).unwrap();
        let result = match a.map(|x| x.lt(T::default()).select(T::default(), x)) {
            Ok(result) => result,
            // The device has no such numbers.
            Err(error) if arrays.device().is_some() && error.to_string().contains("64") => continue,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(bits(&result.to_vec().unwrap()), bits(&expected), "{arrays:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn zip_broadcasts_as_a_loop_does(
        (one, two, four) in (shape::<1>(), shape::<2>(), shape::<4>()),
        axes in any::<[u8; 2]>(),
        seed in any::<u32>(),
    ) {
        let _deadline = deadline();
        let axes = axes.map(usize::from);
        check_zip(one, axes, seed.into());
        check_zip(two, axes, seed.into());
        check_zip(four, axes, seed.into());
        check_zip_of_f32(two, axes, seed.into());
        check_zip_of_f64(four, axes, seed.into());
    }

    #[test]
    fn map_gives_what_a_loop_gives(len in 0_usize..400, seed in any::<u32>()) {
        let _deadline = deadline();
        check_map::<f32>(len, seed.into());
        check_map::<f64>(len, seed.into());
        check_map::<i32>(len, seed.into());
        check_map::<u32>(len, seed.into());
        check_map::<i64>(len, seed.into());
        check_map::<u64>(len, seed.into());
    }

    #[test]
    fn elements_come_from_coordinates(shape in shape::<3>()) {
        let _deadline = deadline();
        let expected: Vec<u32> = points(shape).iter().map(|[i, j, k]| (100 * i + 10 * j + k) as u32).collect();
        for arrays in places() {
            let of_closure = arrays.generate(shape, |[i, j, k]| i * 100 + j * 10 + k).unwrap();
            let of_function = arrays.from_fn(shape, |[i, j, k]| (100 * i + 10 * j + k) as u32).unwrap();
            prop_assert_eq!(of_closure.to_vec().unwrap(), expected.clone());
            prop_assert_eq!(of_function.to_vec().unwrap(), expected.clone());
        }
    }
}

#[test]
fn large_arrays_are_broadcast() {
    let _deadline = deadline();
    for shape in [[3, 40_001], [40_001, 3]] {
        for axes in [[0, 0], [1, 0], [0, 1], [1, 2], [2, 1], [3, 0]] {
            check_zip(shape, axes, 5);
        }
    }
}

#[test]
fn an_array_changes_in_place_and_its_handles_are_one_array() {
    let _deadline = deadline();
    for arrays in places() {
        let a = arrays.filled([3, 5], 2_i32).unwrap();
        let (clone, line) = (a.clone(), a.reshape([15]).unwrap());
        a.update(|x| x * x).unwrap();
        assert_eq!(clone.to_vec().unwrap(), [4; 15]);
        line.fill(7).unwrap();
        assert_eq!(a.get([2, 4]).unwrap(), 7);
        let copy = a.copy().unwrap();
        a.fill(0).unwrap();
        assert_eq!(copy.to_vec().unwrap(), [7; 15]);
        assert_eq!(arrays.zeros::<i32, 4>([1, 2, 1, 2]).unwrap().to_vec().unwrap(), [0; 4]);
    }
}

#[test]
fn a_single_number_is_an_array_without_dimensions() {
    let _deadline = deadline();
    for arrays in places() {
        let a = arrays.filled([], 3.0_f32).unwrap();
        let b = a.map(|x| x * 2.0).unwrap().zip(&a, |x, y| x + y).unwrap();
        assert_eq!((b.get([]).unwrap(), b.len()), (9.0, 1));
        let matrix = arrays.filled([2, 2], 1.0_f32).unwrap();
        let sum = matrix.zip(&b.reshape([1, 1]).unwrap(), |x, y| x + y).unwrap();
        assert_eq!(sum.to_vec().unwrap(), [10.0; 4]);
    }
}

#[test]
fn wrong_arguments_are_errors_that_say_what_is_wrong() {
    let _deadline = deadline();
    let arrays = &hosts()[0];
    let message = |result: Result<(), ArrayError>| result.unwrap_err().to_string();
    let (a, b) = (arrays.zeros::<f32, 2>([2, 3]).unwrap(), arrays.zeros::<f32, 2>([2, 4]).unwrap());

    let text = message(a.zip(&b, |x, y| x + y).map(drop));
    assert!(text.starts_with("`zip` (") && text.contains("elementwise.rs:"), "{text}");
    assert!(text.contains("arrays of the shapes [2, 3] and [2, 4]"), "{text}");
    let text = message(a.copy_from(&b));
    assert!(text.contains("[2, 3] and [2, 4]; a copy needs equal shapes"), "{text}");
    let text = message(arrays.from_slice([2, 2], &[1, 2, 3]).map(drop));
    assert!(text.contains("the shape [2, 2] has 4 elements, but there are 3"), "{text}");
    let text = message(a.reshape([7]).map(drop));
    assert!(text.contains("the shape [7] has 7 elements, but there are 6"), "{text}");
    let text = message(a.copy_from_slice(&[0.0]));
    assert!(text.contains("the shape [2, 3] has 6 elements, but there are 1"), "{text}");
    let text = message(arrays.zeros::<f32, 2>([1 << 20, 1 << 20]).map(drop));
    assert!(text.contains("4294967295 elements or more"), "{text}");
    let text = message(arrays.zeros::<f32, 2>([usize::MAX, 2]).map(drop));
    assert!(text.contains("elements or more"), "{text}");
    let text = message(a.get([2, 0]).map(drop));
    assert!(text.contains("there is no element [2, 0] in the shape [2, 3]"), "{text}");

    let on_device = arrays.on(&simulated()).zeros::<f32, 2>([2, 3]).unwrap();
    let text = message(a.zip(&on_device, |x, y| x + y).map(drop));
    assert!(text.contains("one array is on the host, the other one on the device"), "{text}");
    assert!(a.zip(&on_device.on_host(), |x, y| x + y).is_ok());
}

#[test]
fn coordinates_are_in_row_major_order() {
    let _deadline = deadline();
    let a = hosts()[0].zeros::<u32, 3>([3, 4, 5]).unwrap();
    assert!((0..60).all(|at| a.coordinates(at) == coordinates([3, 4, 5], at as usize)));
}
