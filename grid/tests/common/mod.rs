//! Strategies and the bitmap oracle that the property tests share.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use anabranch_grid::{GridBox, Point};
use proptest::collection::vec;
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Points per axis.
pub const SIDE: usize = 6;

/// A quarter of the cases for three and more dimensions, which take longer. Proptest reads `PROPTEST_CASES`.
pub fn cases_in(dimensions: usize) -> ProptestConfig {
    let all = ProptestConfig::default();
    ProptestConfig { cases: all.cases.div_ceil(if dimensions >= 3 { 4 } else { 1 }), ..all }
}

/// All points that the tests use.
pub fn space<const D: usize>() -> GridBox<D> {
    GridBox::full([SIDE; D])
}

/// Any box of the space, empty ones included.
pub fn any_box<const D: usize>() -> impl Strategy<Value = GridBox<D>> {
    vec((0..=SIDE, 0..=SIDE), D).prop_map(|ends| {
        let min: [usize; D] = std::array::from_fn(|axis| ends[axis].0.min(ends[axis].1));
        let max: [usize; D] = std::array::from_fn(|axis| ends[axis].0.max(ends[axis].1));
        GridBox::new(min, max)
    })
}

/// A box with at least one point.
pub fn full_box<const D: usize>() -> impl Strategy<Value = GridBox<D>> {
    vec((0..SIDE, 1..=SIDE), D).prop_map(|axes| {
        let min: [usize; D] = std::array::from_fn(|axis| axes[axis].0);
        let max: [usize; D] = std::array::from_fn(|axis| (min[axis] + axes[axis].1).min(SIDE));
        GridBox::new(min, max)
    })
}

/// Some boxes, overlapping or not.
pub fn boxes<const D: usize>() -> impl Strategy<Value = Vec<GridBox<D>>> {
    vec(any_box::<D>(), 0..6)
}

/// A set of points of the space, as one flag per point.
#[derive(Clone, Debug, PartialEq)]
pub struct Bitmap<const D: usize>(Vec<bool>);

impl<const D: usize> Bitmap<D> {
    pub fn of(boxes: &[GridBox<D>]) -> Self {
        let mut bits = vec![false; space::<D>().len()];
        for point in boxes.iter().flat_map(|b| b.points()) {
            bits[index(point)] = true;
        }
        Self(bits)
    }

    pub fn zip(&self, other: &Self, op: impl Fn(bool, bool) -> bool) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(&a, &b)| op(a, b)).collect())
    }

    pub fn has(&self, point: Point<D>) -> bool {
        self.0[index(point)]
    }

    pub fn any(&self) -> bool {
        self.0.contains(&true)
    }

    pub fn points(&self) -> impl Iterator<Item = Point<D>> {
        space().points().filter(|&p| self.has(p))
    }
}

/// The row-major position of a point of the space.
pub fn index<const D: usize>(point: Point<D>) -> usize {
    point.0.iter().fold(0, |index, coordinate| index * SIDE + coordinate)
}

/// A hash that depends on a seed: a key for shuffling.
pub fn hash(seed: u64, value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, value).hash(&mut hasher);
    hasher.finish()
}
