//! Permutations of axes and products of matrices, against loops in Rust.

mod common;

use common::{Drawn, bits, elements, exact, hosts, number, places, points, shape};
use proptest::prelude::*;
use testing::deadline;

/// All orders of the axes.
fn permutations<const D: usize>() -> Vec<[usize; D]> {
    points([D; D]).into_iter().filter(|axes| (0..D).all(|axis| axes.contains(&axis))).collect()
}

fn check<const D: usize>(shape: [usize; D], seed: u64) {
    check_of::<i32, D>(shape, seed);
    check_of::<f32, D>(shape, seed);
}

fn check_of<T: Drawn, const D: usize>(shape: [usize; D], seed: u64) {
    let values = elements::<T>(seed, shape.iter().product());
    for axes in permutations::<D>() {
        let result = axes.map(|axis| shape[axis]);
        let original = |point: [usize; D]| {
            let mut from = [0; D];
            (0..D).for_each(|axis| from[axes[axis]] = point[axis]);
            values[number(shape, from)]
        };
        let expected: Vec<T> = points(result).into_iter().map(original).collect();
        for arrays in places() {
            let permuted = arrays.from_slice(shape, &values).unwrap().permute(axes).unwrap();
            assert_eq!(permuted.shape(), result);
            assert!(bits(&permuted.to_vec().unwrap()) == bits(&expected), "{shape:?} to {axes:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn axes_are_permuted(
        (one, two, three, four) in (shape::<1>(), shape::<2>(), shape::<3>(), shape::<4>()),
        seed in any::<u32>(),
    ) {
        let _deadline = deadline();
        check([], seed.into());
        check(one, seed.into());
        check(two, seed.into());
        check(three, seed.into());
        check(four, seed.into());
    }

    #[test]
    fn products_are_those_of_loops(
        [m, inner, n] in proptest::array::uniform3(0_usize..30),
        seed in any::<u32>(),
    ) {
        let _deadline = deadline();
        check_product(m, inner, n, seed.into());
    }
}

#[test]
fn large_arrays_are_permuted_in_blocks() {
    let _deadline = deadline();
    check([129, 513], 1);
    check([70_000, 2], 2);
    check([33, 40, 65], 3);
}

fn check_product(m: usize, inner: usize, n: usize, seed: u64) {
    let (a, b) = (elements::<i32>(seed, m * inner), elements::<i32>(seed + 1, inner * n));
    let element = |[i, j]: [usize; 2]| {
        (0..inner).fold(0, |sum: i32, k| sum.wrapping_add(a[i * inner + k].wrapping_mul(b[k * n + j])))
    };
    let expected: Vec<i32> = points([m, n]).into_iter().map(element).collect();
    let (c, d) = (exact::<f32>(seed, m * inner), exact::<f32>(seed + 1, inner * n));
    for arrays in places() {
        let [a, b] = [([m, inner], &a), ([inner, n], &b)]
            .map(|(shape, values)| arrays.from_slice(shape, values).unwrap());
        let product = a.matmul(&b).unwrap();
        assert_eq!((product.shape(), product.to_vec().unwrap()), ([m, n], expected.clone()), "{arrays:?}");
        // Sums of small whole numbers are exact.
        let [a, b] = [([m, inner], &c), ([inner, n], &d)]
            .map(|(shape, values)| arrays.from_slice(shape, values).unwrap());
        let product = a.matmul(&b).unwrap().to_vec().unwrap();
        for ([i, j], ours) in points([m, n]).into_iter().zip(product) {
            let sum: f32 = (0..inner).map(|k| c[i * inner + k] * d[k * n + j]).sum();
            assert!(ours == sum || ours.is_nan() && sum.is_nan(), "[{i}, {j}] is {ours}, not {sum}");
        }
    }
}

#[test]
fn large_matrices_are_multiplied_in_bands() {
    let _deadline = deadline();
    check_product(203, 45, 31, 3);
}

#[test]
fn products_of_floats_have_the_same_bits_on_any_number_of_threads() {
    let _deadline = deadline();
    let mut products = hosts().iter().map(|arrays| {
        let mut random = arrays.random(4);
        let [a, b] = [[150, 90], [90, 70]].map(|shape| random.uniform::<f64, 2>(shape).unwrap());
        a.matmul(&b).unwrap().to_vec().unwrap().into_iter().map(f64::to_bits).collect::<Vec<_>>()
    });
    let first = products.next().unwrap();
    assert!(products.all(|product| product == first));
}

#[test]
fn wrong_axes_and_shapes_are_errors() {
    let _deadline = deadline();
    let a = hosts()[0].zeros::<f32, 2>([2, 3]).unwrap();
    let text = a.permute([1, 1]).unwrap_err().to_string();
    assert!(text.contains("the axes [1, 1] are no permutation"), "{text}");
    let text = a.permute([0, 2]).unwrap_err().to_string();
    assert!(text.contains("the axes [0, 2] are no permutation"), "{text}");
    let text = a.matmul(&a).unwrap_err().to_string();
    assert!(text.contains("arrays of the shapes [2, 3] and [2, 3]; the first matrix must have"), "{text}");
    assert_eq!(a.transpose().unwrap().shape(), [3, 2]);
}
