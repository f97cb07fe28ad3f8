//! The values that tasks compute, in the runtime and in the model.

use anabranch::{Operator, grid::Region};

/// Operators of reductions. The results of the last two depend on the order of the operands and on the shape
/// of the tree.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Sum,
    /// A sum of floating-point numbers, which are stored as their bits.
    FloatSum,
    /// Neither commutative nor associative. The identity is 0.
    Tree,
}

impl Operator<u64> for Op {
    fn identity(&self) -> u64 {
        if let Self::FloatSum = self { (-0.0_f64).to_bits() } else { 0 }
    }

    fn combine(&self, a: u64, b: u64) -> u64 {
        match (self, a, b) {
            (Self::Sum, ..) => a.wrapping_add(b),
            (Self::FloatSum, ..) => {
                // A buffer may hold any bits, and the bits of a NaN result are unspecified.
                let number = |bits| Some(f64::from_bits(bits)).filter(|x| x.is_finite()).unwrap_or(1.0);
                (number(a) + number(b)).to_bits()
            }
            (Self::Tree, 0, x) | (Self::Tree, x, 0) => x,
            (Self::Tree, ..) => mix(a.rotate_left(1), b) | 1,
        }
    }
}

impl Op {
    /// The value to combine for an element.
    pub fn value(self, seed: usize, element: u64) -> u64 {
        let x = mix(seed as u64, element);
        match self {
            Self::FloatSum => ((x % 2000) as f64 * 0.1 - 100.0).to_bits(),
            Self::Sum | Self::Tree => x | 1,
        }
    }
}
pub fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

/// The initial value of an element.
pub fn initial(slot: usize, at: usize) -> u64 {
    mix(slot as u64, at as u64)
}

/// The value that a kernel writes. It depends on the point, on the previous value (`before`), and on some of
/// the elements of `region`.
pub fn computed<const D: usize>(
    seed: usize,
    point: [usize; 3],
    before: u64,
    region: &Region<D>,
    read: impl Fn([usize; D]) -> u64,
) -> u64 {
    let begin = point.iter().fold(mix(seed as u64, before), |hash, i| mix(hash, *i as u64));
    let stride = region.len() / 12 + 1;
    let points = region.boxes().iter().flat_map(|range| range.points());
    points.step_by(stride).fold(begin, |hash, p| mix(hash, read(p.0)))
}

/// The point, extended with zeros to three dimensions.
pub fn padded<const D: usize>(point: [usize; D]) -> [usize; 3] {
    std::array::from_fn(|d| if d < D { point[d] } else { 0 })
}

/// The index of the element, in a buffer of `len` elements, into which the element at `point` is reduced.
pub fn reduced_into(point: [usize; 3], len: usize) -> usize {
    (7 * point[0] + 3 * point[1] + point[2]) % len.max(1)
}
