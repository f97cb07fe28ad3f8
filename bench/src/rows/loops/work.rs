//! The items of loops and their data: the same for every contender, including those in C++ (peers/peer.hpp).

use std::hint::black_box;

use crate::harness::{Failure, Load, Samples};

/// Number `i` of the sequence of SplitMix64.
#[inline]
pub fn random(i: u64) -> u64 {
    let i = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let i = (i ^ (i >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let i = (i ^ (i >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    i ^ (i >> 31)
}

/// Number `i` of the same sequence, scaled to the range from 0 to 1.
pub fn fraction(i: usize) -> f64 {
    (random(i as u64) >> 11) as f64 / (1u64 << 53) as f64
}

/// An item of one multiply-add. `black_box` keeps the compiler from combining it with the next item.
#[inline]
pub fn tiny(i: usize) {
    black_box((i as u64).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
}

/// An item of about a nanosecond.
#[inline]
pub fn small(i: usize) {
    black_box(random(i as u64));
}

/// An item of many steps, each of which needs the result of the one before.
#[inline]
pub fn work(item: usize, steps: usize) {
    black_box((0..steps).fold(item as u64, |x, _| random(x)));
}

/// The number of steps that take `ns` nanoseconds on this machine.
///
/// # Errors
/// If the clock does not tell.
pub fn steps(ns: f64) -> Result<usize, Failure> {
    const MANY: usize = 10_000;
    let times = Load::back_to_back(21, 1).time(|| work(0, MANY));
    let time = Samples::new(times).ok_or("the clock does not run")?.median();
    let steps = ns * MANY as f64 / time;
    if !(1.0..1e9).contains(&steps) {
        return Err(format!("{MANY} steps took {time} ns").into());
    }
    Ok(steps as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_split_mix() {
        let _deadline = testing::deadline();
        assert_eq!([0, 1].map(random), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert!((0..1000).map(fraction).all(|x| (0.0..1.0).contains(&x)));
    }
}
