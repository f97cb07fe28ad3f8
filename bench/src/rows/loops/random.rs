//! Numbers that look random and are the same for every contender, those in C++ included.

/// Number `i` (SplitMix64): as in peers/peer.hpp.
pub fn random(i: u64) -> u64 {
    let i = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let i = (i ^ (i >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let i = (i ^ (i >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    i ^ (i >> 31)
}

/// The same between 0 and 1.
pub fn fraction(i: usize) -> f64 {
    (random(i as u64) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_split_mix() {
        assert_eq!([0, 1].map(random), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert!((0..1000).map(fraction).all(|x| (0.0..1.0).contains(&x)));
    }
}
