//! What a recording takes of an operand, against what the task declares.

use crate::error::Mistake;
use anabranch_grid::{Extent, GridBox, Region};
use anabranch_kernel::{Access, Beyond};
use smallvec::{SmallVec, smallvec};
use std::array;

/// The declaration of an operand, for one chunk or for the whole index space.
pub(super) struct Reach<'a, const K: usize> {
    pub(super) region: &'a Region<K>,
    pub(super) extent: Extent<K>,
    pub(super) chunk: GridBox<K>,
}

/// The coordinates that an access takes along one dimension.
type Ranges = SmallVec<[[usize; 2]; 3]>;

/// Why an offset leads to no element.
#[derive(Debug)]
enum NoElement {
    BeforeTheFirst,
    BufferIsEmpty,
}

impl<const K: usize> Reach<'_, K> {
    /// What is wrong with an access of the recording.
    pub(super) fn mistake(&self, access: &Access) -> Option<Mistake> {
        let offset: [isize; K] = array::from_fn(|dim| access.offset[3 - K + dim]);
        if self.chunk.is_empty() || self.is_in_the_box(offset, access.beyond) {
            return None;
        }
        let missing = match self.taken(offset, access.beyond) {
            Ok(taken) => {
                let missing = taken.difference(self.region);
                if missing.is_empty() {
                    return None;
                }
                missing.to_string()
            }
            Err(NoElement::BeforeTheFirst) => "points before the first one".into(),
            Err(NoElement::BufferIsEmpty) => "an element of an empty buffer".into(),
        };
        Some(Mistake::OffsetOutside {
            offset: format!("{offset:?}"),
            at: access.at,
            chunk: self.chunk.to_string(),
            missing,
            region: self.region.to_string(),
        })
    }

    /// Whether the region is one box, in which all elements lie that an offset leads to. This is the usual case, and needs no memory.
    fn is_in_the_box(&self, offset: [isize; K], beyond: Beyond) -> bool {
        let [only] = self.region.boxes() else { return false };
        (0..K).all(|dim| {
            let size = self.extent.0[dim] as isize;
            let shifted = |at: usize| at as isize + offset[dim];
            let (min, max) = (shifted(self.chunk.min().0[dim]), shifted(self.chunk.max().0[dim]));
            let (min, max) = match beyond {
                Beyond::Refused => (min, max),
                Beyond::Value => (min.clamp(0, size), max.clamp(0, size)),
                Beyond::Nearest if size > 0 => (min.clamp(0, size - 1), max.clamp(1, size)),
                Beyond::OtherSide if 0 <= min && max <= size => (min, max),
                Beyond::Nearest | Beyond::OtherSide => return false,
            };
            only.min().0[dim] as isize <= min && max <= only.max().0[dim] as isize
        })
    }

    /// What is wrong with the declaration of an operand that the recording sets at each point.
    pub(super) fn mistake_of_result(&self) -> Option<Mistake> {
        let own = Region::from(self.chunk);
        (*self.region != own)
            .then(|| Mistake::NotOwnPoints { chunk: self.chunk.to_string(), region: self.region.to_string() })
    }

    /// The elements that an offset leads to.
    fn taken(&self, offset: [isize; K], beyond: Beyond) -> Result<Region<K>, NoElement> {
        let mut boxes = vec![(self.chunk.min().0, self.chunk.max().0)];
        for dim in 0..K {
            let ranges = self.along(dim, offset[dim], beyond)?;
            boxes = boxes
                .iter()
                .flat_map(|&(min, max)| {
                    ranges.iter().map(move |&[from, to]| {
                        let (mut min, mut max) = (min, max);
                        (min[dim], max[dim]) = (from, to);
                        (min, max)
                    })
                })
                .collect();
        }
        Ok(Region::from_boxes(boxes.into_iter().map(|(min, max)| GridBox::new(min, max))))
    }

    /// The coordinates along one dimension.
    fn along(&self, dim: usize, offset: isize, beyond: Beyond) -> Result<Ranges, NoElement> {
        let size = self.extent.0[dim] as isize;
        let [min, max] = [self.chunk.min().0[dim], self.chunk.max().0[dim]].map(|at| at as isize + offset);
        let range = |from: isize, to: isize| (from < to).then_some([from as usize, to as usize]);
        let inside = range(min.clamp(0, size), max.clamp(0, size));
        Ok(match beyond {
            Beyond::Refused if min < 0 => return Err(NoElement::BeforeTheFirst),
            Beyond::Nearest | Beyond::OtherSide if size == 0 => return Err(NoElement::BufferIsEmpty),
            Beyond::Refused => smallvec![[min as usize, max as usize]],
            Beyond::Value => inside.into_iter().collect(),
            Beyond::Nearest => {
                let first = (min < 0).then_some([0, 1]);
                let last = (max > size).then(|| [size as usize - 1, size as usize]);
                inside.into_iter().chain(first).chain(last).collect()
            }
            Beyond::OtherSide if max - min >= size => smallvec![[0, size as usize]],
            Beyond::OtherSide => {
                let first = min.rem_euclid(size);
                let rest = first + (max - min) - size;
                range(first, (first + max - min).min(size)).into_iter().chain(range(0, rest)).collect()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::panic::Location;
    use testing::deadline;

    proptest! {
        /// Against the coordinates of each point, one by one.
        #[test]
        fn the_ranges_are_those_of_all_points(
            size in 1_usize..9,
            (min, len) in (0_usize..9, 1_usize..9),
            offset in -20_isize..20,
            (box_min, box_len) in (0_usize..9, 1_usize..9),
            beyond in prop_oneof![Just(Beyond::Nearest), Just(Beyond::OtherSide), Just(Beyond::Value)],
        ) {
            let _deadline = deadline();
            let (min, max) = (min.min(size - 1), (min.min(size - 1) + len).min(size));
            let region = Region::empty();
            let reach = Reach { region: &region, extent: Extent([size]), chunk: GridBox::new([min], [max]) };
            let ours = reach.taken([offset], beyond).expect("the buffer has elements");
            let points = (min..max).filter_map(|at| {
                let (at, size) = (at as isize + offset, size as isize);
                match beyond {
                    Beyond::Nearest => Some(at.clamp(0, size - 1) as usize),
                    Beyond::OtherSide => Some(((at % size) + size) as usize % size as usize),
                    _ => (0..size).contains(&at).then_some(at as usize),
                }
            });
            let plain = Region::from_boxes(points.map(|at| GridBox::new([at], [at + 1])));
            prop_assert_eq!(&ours, &plain);
            // The shortcut for one box finds the same mistakes.
            let (min, max) = (box_min.min(size - 1), (box_min.min(size - 1) + box_len).min(size));
            let region = Region::from(GridBox::new([min], [max]));
            let reach = Reach { region: &region, ..reach };
            let access = Access { operand: 0, offset: [0, 0, offset], beyond, at: Location::caller() };
            prop_assert_eq!(reach.mistake(&access).is_none(), region.contains(&plain), "{}", region);
        }
    }
}
