//! Complex numbers as elements, with the feature `num-complex`.

mod common;

use anabranch::{num_complex::Complex, prelude::*};
use common::runtimes;
use testing::deadline;

#[test]
fn complex_numbers_have_sums_with_the_same_bits_on_any_number_of_threads() {
    let _deadline = deadline();
    let values: Vec<_> =
        (0..1000).map(|i| Complex::new(0.1 * f64::from(i), -1.0 / f64::from(i + 1))).collect();
    let mut results = runtimes().map(|rt| {
        let u = rt.buffer_from(&values).unwrap();
        let (total, pairs) = (rt.buffer::<Complex<f64>, 0>([]), rt.buffer::<[Complex<f64>; 2], 0>([]));
        rt.task("sum")
            .over([1000])
            .read(&u, one_to_one())
            .reduce(&total, sum())
            .reduce(&pairs, sum())
            .kernel(|tile, (u, total, pairs)| {
                for p in tile.points() {
                    total.combine([], u[p]);
                    pairs.combine([], [u[p], -u[p]]);
                }
            })
            .unwrap();
        let (total, pairs) = rt.fence((&total, &pairs)).unwrap().wait().unwrap();
        let [same, opposite] = pairs[[]];
        assert_eq!((same, opposite), (total[[]], -total[[]]));
        [total[[]].re, total[[]].im].map(f64::to_bits)
    });
    let first = results.next().unwrap();
    assert!((f64::from_bits(first[0]) - 49950.0).abs() < 1e-6);
    assert!(results.all(|bits| bits == first));
}

#[test]
fn the_identity_of_the_sum_keeps_signed_zeros() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let total = rt.buffer::<Complex<f32>, 0>([]);
    rt.task("none").over([0]).reduce(&total, sum()).kernel(|_, _| ()).unwrap();
    let none = rt.fence(&total).unwrap().wait().unwrap()[[]];
    assert_eq!([none.re, none.im].map(f32::to_bits), [(-0.0_f32).to_bits(); 2]);
}
