//! A rolling hash that is the same on every node, in every run and on every machine.
//!
//! Nodes compare such hashes of their programs, so the definition stands here and no library's hasher is
//! used. The same function makes the keys by which both graphs recognise submissions that repeat, for its
//! speed.

use anabranch_grid::{GridBox, Region};

/// A hash of a sequence of words.
///
/// ```
/// use anabranch_graph::RollingHash;
///
/// let hash = |words: [u64; 2]| {
///     let mut hash = RollingHash::default();
///     words.into_iter().for_each(|word| hash.add(word));
///     hash.value()
/// };
/// assert_eq!(hash([1, 2]), hash([1, 2]));
/// assert_ne!(hash([1, 2]), hash([2, 1]));
/// ```
///
/// Each word is combined with the state by exclusive or; a multiplication with an odd number (2^64 divided by
/// the golden ratio) and a rotation spread its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollingHash(u64);

impl Default for RollingHash {
    fn default() -> Self {
        Self(0x6a09_e667_f3bc_c908)
    }
}

impl RollingHash {
    /// The hash of all words so far.
    pub fn value(self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    /// Adds a word.
    #[inline]
    pub fn add(&mut self, word: u64) {
        self.0 = ((self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(29);
    }

    /// Adds several words at the cost of one: their weighted sum, whose terms the processor computes in
    /// parallel.
    #[inline]
    pub(crate) fn add_all<const N: usize>(&mut self, words: [u64; N]) {
        let mut weight = 0xd1b5_4a32_d192_ed03u64;
        let mut sum = 0u64;
        for word in words {
            sum = sum.wrapping_add((word ^ word >> 31).wrapping_add(weight >> 17).wrapping_mul(weight));
            weight = weight.wrapping_mul(0x8cb9_2ba7_2f3d_8dd7).wrapping_add(2);
        }
        self.add(sum ^ sum >> 29);
    }

    pub(crate) fn add_box(&mut self, range: &GridBox<3>) {
        let ([a, b, c], [d, e, f]) = (range.min().0, range.max().0);
        self.add_all([a, b, c, d, e, f].map(|at| at as u64));
    }

    pub(crate) fn add_region(&mut self, region: &Region<3>) {
        self.add(region.boxes().len() as u64);
        region.boxes().iter().for_each(|range| self.add_box(range));
    }
}
