//! Philox-4x32-10: a block of four random words for each counter, by multiplications.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC
//! 2011,
//! <https://doi.org/10.1145/2063384.2063405>. The constants are those of the paper.

use anabranch::recorded::Value;
use std::array;

/// The factors of a round.
const FACTORS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What a round adds to the key.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

/// Which random numbers these are: the key, and the upper half of the counter. The lower half is the number
/// of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    pub(crate) seed: u64,
    pub(crate) stream: u64,
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

impl Sequence {
    /// The key of a round.
    fn key(self, round: u32) -> [u32; 2] {
        let seed = halves(self.seed);
        array::from_fn(|at| seed[at].wrapping_add(WEYL[at].wrapping_mul(round)))
    }

    /// `L` consecutive blocks, as the words that have the same place in each of them. The compiler makes
    /// vector instructions of the loops.
    pub(crate) fn blocks<const L: usize>(self, first: u64) -> [[u32; L]; 4] {
        let numbers: [u64; L] = array::from_fn(|block| first.wrapping_add(block as u64));
        let stream = halves(self.stream);
        let mut words = [
            numbers.map(|number| halves(number)[0]),
            numbers.map(|number| halves(number)[1]),
            [stream[0]; L],
            [stream[1]; L],
        ];
        for round in 0..ROUNDS {
            let key = self.key(round);
            let [first, second, third, fourth] = &mut words;
            for (((first, second), third), fourth) in first.iter_mut().zip(second).zip(third).zip(fourth) {
                let [a_low, a_high] = halves(u64::from(FACTORS[0]) * u64::from(*first));
                let [b_low, b_high] = halves(u64::from(FACTORS[1]) * u64::from(*third));
                *first = b_high ^ *second ^ key[0];
                *second = b_low;
                *third = a_high ^ *fourth ^ key[1];
                *fourth = a_low;
            }
        }
        words
    }

    /// The words of the block with this number, in a recorded kernel.
    pub(crate) fn recorded<'t>(self, block: Value<'t, u32>) -> [Value<'t, u32>; 4] {
        let stream = halves(self.stream);
        let [zero, low, high] = [0, stream[0], stream[1]].map(|word| block.literal(word));
        let mut words = [block, zero, low, high];
        for round in 0..ROUNDS {
            let [key_a, key_b] = self.key(round);
            let [a, b] = [0, 2].map(|at| product(words[at], FACTORS[at / 2]));
            words = [b.1 ^ words[1] ^ key_a, b.0, a.1 ^ words[3] ^ key_b, a.0];
        }
        words
    }
}

/// The lower and the upper half of a product of 64 bits. Not all devices have 64-bit integers, so it is made
/// of products of halves.
fn product(word: Value<'_, u32>, factor: u32) -> (Value<'_, u32>, Value<'_, u32>) {
    let (low, high) = (word & 0xFFFF, word >> 16);
    let [factor_low, factor_high] = [factor & 0xFFFF, factor >> 16];
    let first = low * factor_high + ((low * factor_low) >> 16);
    let second = high * factor_low + (first & 0xFFFF);
    (word * factor, high * factor_high + (first >> 16) + (second >> 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors are `kat_vectors` of the authors' library Random123.
    #[test]
    fn the_blocks_are_those_of_the_authors() {
        let block = |counter: u64, stream, seed| {
            let blocks = Sequence { seed, stream }.blocks::<3>(counter.wrapping_sub(1));
            blocks.map(|word| word[1])
        };
        assert_eq!(block(0, 0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(block(u64::MAX, u64::MAX, u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            block(0x85a3_08d3_243f_6a88, 0x0370_7344_1319_8a2e, 0x299f_31d0_a409_3822),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }
}
