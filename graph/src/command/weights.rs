//! Weights of the nodes: the share of each node in an index space that all of them divide.
//!
//! A weight becomes a whole number as soon as it is given, and all shares follow from whole numbers. So all
//! nodes find the same shares, on whatever processors.

use rustc_hash::FxHasher;
use std::{
    hash::{Hash, Hasher},
    ops::Range,
    sync::Arc,
};

/// The number of bits of the whole number that stands for the largest weight.
const BITS: u32 = 32;

/// The weights of all nodes.
///
/// A node has a share of the rows of an index space in proportion to its weight. Only the ratios of the
/// weights matter. A weight counts to one part in 2^32 of the largest, and a node with weight 0 has no share.
/// Each border between the shares of two nodes is rounded to the nearest row, up if two are equally near. So
/// a share differs from the exact one by less than a row, a small change of the weights moves the borders a
/// little, and finding the share of a node takes the same time with any number of them.
///
/// ```
/// use anabranch_graph::command::Weights;
/// let weights = Weights::new(&[3.0, 0.0, 1.0]).unwrap();
/// assert_eq!([0, 1, 2].map(|node| weights.share(10, node)), [0..8, 8..8, 8..10]);
/// assert_eq!(Weights::new(&[1.5, 0.0, 0.5]), Some(weights));
/// assert_eq!(Weights::new(&[f64::NAN, 1.0]), None);
/// ```
#[derive(Clone, Debug)]
pub struct Weights(Arc<Sums>);

/// The sums of the weights of the nodes before each node, and of all.
#[derive(Debug)]
struct Sums {
    sums: Box<[u64]>,
    hash: u64,
}

impl Weights {
    /// The weights of the nodes, in their order; `None` unless each is a finite number that is at least 0,
    /// and one is larger.
    pub fn new(weights: &[f64]) -> Option<Self> {
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let valid = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
        if !valid || largest == 0.0 {
            return None;
        }
        let mut sum = 0;
        let sums = weights.iter().map(|&weight| {
            sum += whole(weight, largest);
            sum
        });
        let sums: Box<[u64]> = [0].into_iter().chain(sums).collect();
        let mut hasher = FxHasher::default();
        sums.hash(&mut hasher);
        Some(Self(Arc::new(Sums { sums, hash: hasher.finish() })))
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.0.sums.len() - 1
    }

    /// The share of a node in this number of rows.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn share(&self, rows: usize, node: usize) -> Range<usize> {
        self.share_of(rows, 0..self.nodes(), node..node + 1)
    }

    /// The share of the nodes `run` in things that the nodes `among` divide. They have none if all of these
    /// have weight 0.
    pub(super) fn share_of(&self, things: usize, among: Range<usize>, run: Range<usize>) -> Range<usize> {
        let first = self.0.sums[among.start];
        let all = u128::from(self.0.sums[among.end] - first);
        let border = |node: usize| match u128::from(self.0.sums[node] - first) {
            _ if all == 0 => 0,
            // At most 64 + 1 + 45 bits.
            before => ((2 * things as u128 * before + all) / (2 * all)) as usize,
        };
        border(run.start)..border(run.end)
    }

    /// Whether all nodes have the same weight.
    pub(super) fn are_equal(&self) -> bool {
        self.words().zip(1..).all(|(sum, nodes)| sum == nodes * self.0.sums[1])
    }

    /// The numbers that all shares follow from.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        self.0.sums[1..].iter().copied()
    }

    /// A hash that is the same for equal weights.
    pub(super) fn hash(&self) -> u64 {
        self.0.hash
    }
}

impl PartialEq for Weights {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.sums == other.0.sums
    }
}

impl Eq for Weights {}

impl Hash for Weights {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash.hash(hasher);
    }
}

/// A weight as a whole number: in proportion to the largest one, and 0 only if it is 0.
fn whole(weight: f64, largest: f64) -> u64 {
    if weight == 0.0 {
        return 0;
    }
    let ((mantissa, exponent), (_, of_largest)) = (parts(weight), parts(largest));
    let smaller = (f64::MANTISSA_DIGITS - BITS).saturating_add(of_largest - exponent);
    mantissa.checked_shr(smaller).unwrap_or(0).max(1)
}

/// The mantissa of a positive number, as a whole number of 53 bits, and the exponent of 2 to go with it,
/// above that of the smallest number.
fn parts(number: f64) -> (u64, u32) {
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = number.to_bits();
    let (fraction, exponent) = (bits & ((1 << FRACTION) - 1), (bits >> FRACTION) as u32);
    match exponent {
        // A subnormal number.
        0 => {
            let shift = fraction.leading_zeros() - (u64::BITS - f64::MANTISSA_DIGITS);
            (fraction << shift, FRACTION + 1 - shift)
        }
        _ => (fraction | 1 << FRACTION, FRACTION + exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shares(weights: &Weights, rows: usize) -> Vec<Range<usize>> {
        (0..weights.nodes()).map(|node| weights.share(rows, node)).collect()
    }

    proptest! {
        #[test]
        fn shares_follow_each_other_in_proportion(
            weights in proptest::collection::vec(prop_oneof![Just(0), 1..100u32, any::<u32>()], 1..20),
            rows in prop_oneof![0..5usize, 0..100_000usize],
        ) {
            prop_assume!(weights.iter().any(|&weight| weight > 0));
            let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
            let given: Vec<_> = weights.iter().map(|&weight| f64::from(weight)).collect();
            let found = shares(&Weights::new(&given).unwrap(), rows);
            let mut next = 0;
            for (share, weight) in found.iter().zip(&given) {
                prop_assert_eq!(share.start, next);
                next = share.end;
                let exact = rows as f64 * weight / total;
                prop_assert!((share.len() as f64 - exact).abs() <= 1.0 + 1e-4, "{:?} for {}", share, exact);
                prop_assert!(*weight > 0.0 || share.is_empty());
            }
            prop_assert_eq!(next, rows);
            // Only the ratios matter, whatever the unit.
            for factor in [-900, -40, 1, 30, 900].map(|power| 2.0_f64.powi(power)) {
                let scaled: Vec<_> = given.iter().map(|weight| weight * factor).collect();
                prop_assert_eq!(&shares(&Weights::new(&scaled).unwrap(), rows), &found);
            }
        }

        #[test]
        fn whole_numbers_keep_their_ratios(numbers in proptest::collection::vec(0..1_u32 << 20, 1..9)) {
            prop_assume!(numbers.iter().any(|&number| number > 0));
            let weights = Weights::new(&numbers.iter().map(|&n| f64::from(n)).collect::<Vec<_>>()).unwrap();
            let total: u64 = numbers.iter().map(|&n| u64::from(n)).sum();
            let found = shares(&weights, total as usize);
            prop_assert!(found.iter().map(|share| share.len()).eq(numbers.iter().map(|&n| n as usize)));
        }
    }

    #[test]
    fn numbers_of_all_sizes_are_weights() {
        let shares = |given: &[f64], rows| shares(&Weights::new(given).unwrap(), rows);
        let least = f64::from_bits(1);
        assert_eq!(shares(&[least, 3.0 * least, 0.0], 8), [0..2, 2..8, 8..8]);
        assert_eq!(shares(&[f64::MAX, f64::MAX], 8), [0..4, 4..8]);
        assert_eq!(shares(&[f64::MAX, least, -0.0], 8), [0..8, 8..8, 8..8]);
        assert_eq!(shares(&[f64::MIN_POSITIVE, f64::MIN_POSITIVE / 2.0], 3), [0..2, 2..3]);
        assert_eq!(shares(&[1.0; 4096], usize::MAX).last().unwrap().end, usize::MAX);
        for wrong in [&[][..], &[0.0, -0.0], &[1.0, -1.0], &[1.0, f64::NAN], &[f64::INFINITY, 1.0]] {
            assert_eq!(Weights::new(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn equal_weights_are_equal() {
        assert!(Weights::new(&[0.1; 7]).unwrap().are_equal());
        assert!(Weights::new(&[5.0]).unwrap().are_equal());
        assert!(!Weights::new(&[0.1, 0.1, 0.2]).unwrap().are_equal());
        assert!(!Weights::new(&[1.0, 1.0, 0.0]).unwrap().are_equal());
        assert!(!Weights::new(&[0.0, 1.0]).unwrap().are_equal());
    }
}
