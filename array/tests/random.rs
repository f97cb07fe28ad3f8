//! Random numbers: the same in all places, and as they should be distributed.

mod common;

use anabranch_array::{Numeric, Random};
use common::{Drawn, bits, devices, hosts, places};
use testing::deadline;

const LENGTHS: [usize; 6] = [0, 1, 2, 63, 1001, 70_003];

/// Whether a device has these numbers.
fn lacks(error: &anabranch_array::ArrayError) -> bool {
    error.to_string().contains("64")
}

fn check_uniform<T: Drawn>() {
    for len in LENGTHS {
        let drawn = |random: &mut Random| random.uniform::<T, 1>([len]).map(|a| bits(&a.to_vec().unwrap()));
        let mut results = places().filter_map(|arrays| {
            let mut random = arrays.random(0x1234_5678_9abc_def0);
            match (drawn(&mut random), drawn(&mut random)) {
                (Ok(first), Ok(second)) => Some((first, second)),
                (Err(error), _) if arrays.device().is_some() && lacks(&error) => None,
                (result, _) => panic!("{result:?}"),
            }
        });
        let first = results.next().unwrap();
        assert!(results.all(|result| result == first), "{len}");
        assert!(len < 60 || first.0 != first.1);
    }
}

#[test]
fn uniform_numbers_are_the_same_in_all_places() {
    let _deadline = deadline();
    check_uniform::<u32>();
    check_uniform::<i32>();
    check_uniform::<u64>();
    check_uniform::<i64>();
    check_uniform::<f32>();
    check_uniform::<f64>();
}

/// The first words of the known sequence with key 0 and counter 0: see the tests of the generator.
#[test]
fn the_words_are_those_of_philox() {
    let _deadline = deadline();
    for arrays in places() {
        let words = arrays.random(0).uniform::<u32, 2>([2, 2]).unwrap().to_vec().unwrap();
        assert_eq!(words, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }
}

#[test]
fn an_array_is_filled_with_the_numbers_of_a_new_one() {
    let _deadline = deadline();
    for arrays in places() {
        let a = arrays.zeros::<f32, 2>([30, 7]).unwrap();
        let (mut one, mut other) = (arrays.random(3), arrays.random(3));
        one.fill_uniform(&a).unwrap();
        assert_eq!(a.to_vec().unwrap(), other.uniform::<f32, 2>([30, 7]).unwrap().to_vec().unwrap());
        one.fill_normal(&a).unwrap();
        assert_eq!(
            bits(&a.to_vec().unwrap()),
            bits(&other.normal::<f32, 1>([210]).unwrap().to_vec().unwrap())
        );
    }
}

fn moments(values: &[f64]) -> [f64; 3] {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let central = |power| values.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
    [mean, central(2), central(4)]
}

#[test]
fn numbers_have_their_distribution() {
    let _deadline = deadline();
    for arrays in [&hosts()[1]].into_iter().chain(devices()) {
        let mut random = arrays.random(11);
        let n = 200_000;
        let uniform: Vec<f32> = random.uniform([n]).unwrap().to_vec().unwrap();
        assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)));
        let [mean, variance, _] = moments(&uniform.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        assert!((mean - 0.5).abs() < 0.004 && (variance - 1.0 / 12.0).abs() < 0.001, "{mean}, {variance}");
        let normal: Vec<f32> = random.normal([n]).unwrap().to_vec().unwrap();
        assert!(normal.iter().all(|x| x.is_finite()));
        let [mean, variance, fourth] = moments(&normal.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        assert!((mean).abs() < 0.012 && (variance - 1.0).abs() < 0.02, "{mean}, {variance}");
        assert!((fourth - 3.0).abs() < 0.15, "{fourth}");
    }
}

/// Neighbours that come from one pair of words do not depend on each other.
#[test]
fn normal_numbers_are_not_correlated() {
    let _deadline = deadline();
    let normal: Vec<f64> = hosts()[0].random(5).normal([100_000]).unwrap().to_vec().unwrap();
    for distance in 1..5 {
        let pairs = normal.iter().zip(&normal[distance..]);
        let covariance = pairs.map(|(a, b)| a * b).sum::<f64>() / normal.len() as f64;
        assert!(covariance.abs() < 0.02, "{distance}: {covariance}");
    }
}

#[test]
fn normal_numbers_of_devices_are_near_those_of_the_host() {
    let _deadline = deadline();
    let of = |arrays: &anabranch_array::Arrays| {
        arrays.random(8).normal::<f32, 1>([5001]).unwrap().to_vec().unwrap()
    };
    let expected = of(&hosts()[0]);
    assert!(hosts().iter().all(|arrays| bits(&of(arrays)) == bits(&expected)));
    for arrays in devices() {
        let far = of(arrays).into_iter().zip(&expected).find(|(a, b)| (a - **b).abs() > 1e-3);
        assert!(far.is_none(), "{arrays:?}: {far:?}");
    }
}

/// A type of numbers must be an element of arrays to be drawn.
#[allow(dead_code, reason = "that it compiles is the test")]
fn any_number_can_be_drawn<T: Numeric>(random: &mut Random) {
    let _ = random.uniform::<T, 1>([1]);
}
