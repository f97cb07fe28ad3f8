//! A sequence of numbers that a seed determines.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The generator SplitMix64: [Steele, Lea and Flood, 2014](https://doi.org/10.1145/2660193.2660195).
#[derive(Debug)]
pub(crate) struct Random(AtomicU64);

impl Random {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next number, below `bound`.
    pub(crate) fn below(&self, bound: usize) -> usize {
        let mut z = self.0.fetch_add(Self::STEP, Relaxed).wrapping_add(Self::STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// The numbers from 0 to `len - 1`, shuffled.
    pub(crate) fn shuffled(&self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        for i in (1..len).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}
