//! A plain evaluation of the tree of reductions, as its documentation says it.
#![allow(dead_code)]

use anabranch_kernel::{LANES, LEAF};

/// An operator and its identity.
#[derive(Clone, Copy)]
pub struct Tree<T> {
    pub identity: T,
    pub combine: fn(T, T) -> T,
}

impl<T: Copy> Tree<T> {
    /// The result of a box, whose values are those of a function; `None` over no points.
    pub fn total(
        &self,
        dimensions: usize,
        points: [[usize; 3]; 2],
        value: impl Fn([usize; 3]) -> T,
    ) -> Option<T> {
        let leaves = self.leaves(dimensions, points, value);
        (!leaves.is_empty()).then(|| self.of_leaves(&leaves))
    }

    /// The result of leaves: of the largest power of two of them that is less than all, and of the rest.
    pub fn of_leaves(&self, leaves: &[T]) -> T {
        if let [only] = leaves {
            return *only;
        }
        let (first, second) = leaves.split_at(leaves.len().next_power_of_two() / 2);
        (self.combine)(self.of_leaves(first), self.of_leaves(second))
    }

    /// The results of all leaves of a box.
    pub fn leaves(
        &self,
        dimensions: usize,
        [min, max]: [[usize; 3]; 2],
        value: impl Fn([usize; 3]) -> T,
    ) -> Vec<T> {
        let mut values = Vec::new();
        for z in min[0]..max[0] {
            for y in min[1]..max[1] {
                values.extend((min[2]..max[2]).map(|x| value([z, y, x])));
            }
        }
        if values.is_empty() {
            return Vec::new();
        }
        let row: usize = match dimensions {
            0 | 1 => 1,
            2 => max[2] - min[2],
            _ => (max[1] - min[1]) * (max[2] - min[2]),
        };
        let mut rows_of_band = 1;
        while (rows_of_band + 1) * row <= LEAF {
            rows_of_band += 1;
        }
        let bands = values.chunks(rows_of_band * row);
        bands.flat_map(|band| band.chunks(LEAF)).map(|values| self.leaf(values)).collect()
    }

    fn leaf(&self, values: &[T]) -> T {
        let lane = |lane: usize| {
            let values = values.iter().skip(lane).step_by(LANES);
            values.fold(self.identity, |result, &value| (self.combine)(result, value))
        };
        let mut lanes: Vec<T> = (0..LANES).map(lane).collect();
        while lanes.len() > 1 {
            let half = lanes.len() / 2;
            lanes = (0..half).map(|at| (self.combine)(lanes[at], lanes[at + half])).collect();
        }
        lanes[0]
    }
}
