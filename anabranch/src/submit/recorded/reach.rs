//! Compares the elements that a recording takes of an operand with the region that the task declares.

use super::access::padded;
use crate::error::Mistake;
use anabranch_grid::{GridBox, Region};
use anabranch_kernel::{Access, AccessAlong, Beyond};
use smallvec::{SmallVec, smallvec};
use std::fmt::Write as _;

/// The declaration of an operand, for one chunk or for the whole index space.
///
/// The graph and recordings pad a space of fewer than three dimensions at opposite ends. The graph pads it at
/// the end, so that dimension `k` of a buffer is dimension `k` of its regions. A recording pads it at the
/// front, so that the contiguous dimension always is the last of the three, whatever the rank.
pub(super) struct Reach<'a, const K: usize> {
    /// The declared region, as the graph has it: padded at the end.
    pub(super) region: &'a Region<3>,
    /// The number of dimensions of the buffer.
    pub(super) rank: usize,
    /// The extent of the buffer, as recordings have it: padded at the front.
    pub(super) extent: [usize; 3],
    pub(super) chunk: GridBox<K>,
}

/// The coordinates that an access takes along one dimension.
type Ranges = SmallVec<[[usize; 2]; 3]>;

/// Why coordinates lead to no element.
#[derive(Debug)]
enum NoElement {
    BeforeTheFirst,
    BufferIsEmpty,
}

impl<const K: usize> Reach<'_, K> {
    /// What is wrong with an access of the recording.
    pub(super) fn mistake(&self, access: &Access) -> Option<Mistake> {
        let is_nothing = access.along.iter().any(|along| along.numbers.is_empty());
        if is_nothing || self.chunk.is_empty() || self.is_in_the_box(access) {
            return None;
        }
        let missing = match self.taken(access) {
            Ok(taken) => {
                let missing = taken.difference(self.region);
                if missing.is_empty() {
                    return None;
                }
                self.print(&missing)
            }
            Err(NoElement::BeforeTheFirst) => "points before the first one".into(),
            Err(NoElement::BufferIsEmpty) => "an element of an empty buffer".into(),
        };
        let (at, chunk, region) = (access.at, self.chunk.to_string(), self.print(self.region));
        Some(match self.offset(access) {
            Some(offset) => {
                Mistake::OffsetOutside { offset: format!("{offset:?}"), at, chunk, missing, region }
            }
            None => {
                let coordinates = self.coordinates(access);
                Mistake::CoordinatesOutside { coordinates, at, chunk, missing, region }
            }
        })
    }

    /// Whether the region is one box, in which all elements lie that an access takes. This is the usual case,
    /// and needs no memory.
    fn is_in_the_box(&self, access: &Access) -> bool {
        let [only] = self.region.boxes() else { return false };
        (0..self.rank).all(|dim| {
            let (min, max) = self.bounds(access, dim);
            let size = self.size(dim);
            let (min, max) = match access.beyond {
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
        let own = Region::from(self.chunk.cast());
        (*self.region != own)
            .then(|| Mistake::NotOwnPoints { chunk: self.chunk.to_string(), region: self.print(self.region) })
    }

    /// What an access takes along a dimension of the buffer.
    fn along<'a>(&self, access: &'a Access, dim: usize) -> &'a AccessAlong {
        &access.along[3 - self.rank + dim]
    }

    fn size(&self, dim: usize) -> isize {
        self.extent[3 - self.rank + dim] as isize
    }

    /// The first coordinate that an access takes along a dimension, and the one behind the last, as if the
    /// buffer had no edge.
    fn bounds(&self, access: &Access, dim: usize) -> (isize, isize) {
        let AccessAlong { point, numbers } = self.along(access, dim);
        let [min, max] = [padded(self.chunk.min().0, 0), padded(self.chunk.max().0, 1)];
        let [min, max] = point.map_or([0, 1], |dim| [min[dim], max[dim]]);
        (min as isize + numbers.start, max as isize + numbers.end - 1)
    }

    /// The elements that an access takes. If two of its coordinates are the same one of the point, it is the
    /// box around them.
    fn taken(&self, access: &Access) -> Result<Region<3>, NoElement> {
        let mut boxes = vec![([0; 3], [1; 3])];
        for dim in 0..self.rank {
            let ranges = self.ranges(access, dim)?;
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
    fn ranges(&self, access: &Access, dim: usize) -> Result<Ranges, NoElement> {
        let ((min, max), size) = (self.bounds(access, dim), self.size(dim));
        let range = |from: isize, to: isize| (from < to).then_some([from as usize, to as usize]);
        let inside = range(min.clamp(0, size), max.clamp(0, size));
        Ok(match access.beyond {
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

    /// The offset from the point, if all coordinates are those of the point and one number each.
    fn offset(&self, access: &Access) -> Option<Vec<isize>> {
        let along = (0..self.rank).map(|dim| {
            let AccessAlong { point, numbers } = self.along(access, dim);
            (*point == Some(3 - K + dim) && numbers.len() == 1).then_some(numbers.start)
        });
        along.collect::<Option<_>>().filter(|_| self.rank == K)
    }

    /// The coordinates of an access, as the program writes them.
    fn coordinates(&self, access: &Access) -> String {
        let along = (0..self.rank).map(|dim| {
            let AccessAlong { point, numbers } = self.along(access, dim);
            let mut text = String::new();
            if let Some(dim) = point {
                let _ = write!(text, "point({})", dim + K - 3);
            }
            let _ = match (text.is_empty(), numbers.len(), numbers.start) {
                (false, 1, 0) => Ok(()),
                (true, 1, number) => write!(text, "{number}"),
                (true, ..) => write!(text, "{numbers:?}"),
                (false, 1, number) if number < 0 => write!(text, " - {}", -number),
                (false, 1, number) => write!(text, " + {number}"),
                (false, ..) => write!(text, " + ({numbers:?})"),
            };
            text
        });
        format!("[{}]", along.collect::<Vec<_>>().join(", "))
    }

    /// A region of the buffer, with as many dimensions as the buffer.
    fn print(&self, region: &Region<3>) -> String {
        match self.rank {
            0 => region.cast::<0>().to_string(),
            1 => region.cast::<1>().to_string(),
            2 => region.cast::<2>().to_string(),
            _ => region.to_string(),
        }
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
            iterations in 1_isize..6,
            (box_min, box_len) in (0_usize..9, 1_usize..9),
            beyond in prop_oneof![Just(Beyond::Nearest), Just(Beyond::OtherSide), Just(Beyond::Value)],
        ) {
            let _deadline = deadline();
            let (min, max) = (min.min(size - 1), (min.min(size - 1) + len).min(size));
            let region = Region::empty();
            let chunk = GridBox::new([min], [max]);
            let reach = Reach { region: &region, rank: 1, extent: [1, 1, size], chunk };
            let nowhere = AccessAlong { point: None, numbers: 0..1 };
            let along = AccessAlong { point: Some(2), numbers: offset..offset + iterations };
            let along = [nowhere.clone(), nowhere, along];
            let access = Access { operand: 0, along, beyond, at: Location::caller() };
            let ours = reach.taken(&access).expect("the buffer has elements");
            let points = (min..max).flat_map(|at| (0..iterations).map(move |iteration| at as isize + iteration));
            let points = points.filter_map(|at| {
                let (at, size) = (at + offset, size as isize);
                match beyond {
                    Beyond::Nearest => Some(at.clamp(0, size - 1) as usize),
                    Beyond::OtherSide => Some(((at % size) + size) as usize % size as usize),
                    _ => (0..size).contains(&at).then_some(at as usize),
                }
            });
            let plain = Region::from_boxes(points.map(|at| GridBox::new([at, 0, 0], [at + 1, 1, 1])));
            prop_assert_eq!(&ours, &plain);
            // The shortcut for one box finds the same mistakes.
            let (min, max) = (box_min.min(size - 1), (box_min.min(size - 1) + box_len).min(size));
            let region = Region::from(GridBox::new([min, 0, 0], [max, 1, 1]));
            let reach = Reach { region: &region, ..reach };
            prop_assert_eq!(reach.mistake(&access).is_none(), region.contains(&plain), "{}", region);
        }
    }
}
