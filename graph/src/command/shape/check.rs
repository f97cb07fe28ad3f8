//! The checks of a launch: range mappers are monotonic, pieces write disjoint regions whose union is the
//! region of the whole task, and what is read was written.

use super::{access::AccessShape, evaluate::Shape};
use crate::{
    command::{buffer::BufferState, error::CommandError},
    task::TaskId,
};
use anabranch_grid::{GridBox, Region};

impl Shape {
    /// Checks the range mappers: the reading ones for this node's chunk and its pieces, the writing ones for
    /// all nodes.
    pub(super) fn check(&self, task: TaskId) -> Result<(), CommandError> {
        if !self.is_cut() {
            return Ok(());
        }
        for (number, access) in self.accesses.iter().enumerate() {
            if access.map.is_exact(&self.split) {
                continue;
            }
            if access.mode.writes() {
                self.check_write(task, number)?;
            }
            if access.mode.reads() {
                self.check_read(task, number)?;
            }
        }
        Ok(())
    }

    /// Checks that the mapper of this access is monotonic for this node's chunk and its pieces.
    fn check_read(&self, task: TaskId, number: usize) -> Result<(), CommandError> {
        let access = &self.accesses[number];
        for chunk in self.own.clone() {
            let range = self.split.range(chunk..chunk + 1);
            check_part(task, number, range, access.mine(), &access.whole)?;
            for (at, region) in access.pieces().iter().enumerate() {
                check_part(task, number, self.split.piece(chunk, at), region, access.mine())?;
            }
        }
        Ok(())
    }

    /// Whether the index space has several pieces, on one node or several.
    fn is_cut(&self) -> bool {
        self.split.chunks() > 1 || (self.split.chunks() == 1 && self.split.pieces(0) > 1)
    }

    /// Checks that the pieces on all nodes write all that the task does, each point once. Every node checks
    /// all of them, so every node finds the same error.
    fn check_write(&self, task: TaskId, number: usize) -> Result<(), CommandError> {
        match self.is_tiled(&self.accesses[number]) {
            true => Ok(()),
            false => self.check_union(task, number),
        }
    }

    /// Whether the pieces write a box slice by slice, from one of its ends to the other. The usual splits and
    /// mappers do.
    fn is_tiled(&self, access: &AccessShape) -> bool {
        let [whole] = access.whole.boxes() else { return false };
        let mut rest = Some(*whole);
        for (_, region) in self.written(access) {
            rest = match (rest, region.boxes()) {
                (rest, []) => rest,
                (Some(rest), [slice]) => match without_slice(&rest, slice) {
                    Some(less) => less,
                    None => return false,
                },
                _ => return false,
            }
        }
        rest.is_none()
    }

    /// The pieces on all nodes and what they write.
    fn written(&self, access: &AccessShape) -> impl Iterator<Item = (GridBox<3>, Region<3>)> {
        self.split.all_pieces().map(|part| (part, access.map.region(&self.split, part)))
    }

    /// Checks the same as [`check_write`](Self::check_write), for regions of any shape and order.
    #[inline(never)]
    fn check_union(&self, task: TaskId, access: usize) -> Result<(), CommandError> {
        let written: Vec<_> = self.written(&self.accesses[access]).collect();
        for (part, region) in &written {
            check_part(task, access, *part, region, &self.accesses[access].whole)?;
        }
        let union: Region<3> = written.iter().map(|(_, region)| region.clone()).collect();
        if written.iter().map(|(_, region)| count(region)).sum::<u128>() != count(&union) {
            for (i, (later, again)) in written.iter().enumerate() {
                for (earlier, region) in &written[..i] {
                    if region.intersects(again) {
                        let (parts, common) = ([*earlier, *later].into(), region.intersection(again).into());
                        return Err(CommandError::OverlappingWrites { task, access, parts, common });
                    }
                }
            }
        }
        let missing = self.accesses[access].whole.difference(&union);
        if missing.is_empty() {
            return Ok(());
        }
        Err(CommandError::InexactWrite { task, access, part: self.split.space(), missing: missing.into() })
    }

    /// Checks that everything that the task reads was written on some node. `state` gives the state of an
    /// operand.
    pub(in crate::command) fn check_written<'a>(
        &self,
        task: TaskId,
        state: impl Fn(usize) -> &'a BufferState,
    ) -> Result<(), CommandError> {
        for access in self.accesses.iter().filter(|access| access.mode.reads()) {
            let missing = state(access.operand).nowhere(&access.whole);
            if !missing.is_empty() {
                let buffer = self.buffers[access.operand];
                return Err(CommandError::NeverWritten { task, buffer, missing: missing.into() });
            }
        }
        Ok(())
    }
}

/// Checks that the region of a part of the index space is contained in the region of a larger part.
fn check_part(
    task: TaskId,
    access: usize,
    part: GridBox<3>,
    region: &Region<3>,
    larger: &Region<3>,
) -> Result<(), CommandError> {
    if larger.contains(region) {
        return Ok(());
    }
    Err(CommandError::NotMonotonic { task, access, part, beyond: region.difference(larger).into() })
}

/// The number of points of a region.
fn count(region: &Region<3>) -> u128 {
    region
        .boxes()
        .iter()
        .map(|range| range.extent().0.map(|size| size as u128).iter().product::<u128>())
        .sum()
}

/// What is left of a box without a slice at one of its ends, which is as wide as the box on the other axes.
/// `None` if it is no such slice, and `Some(None)` if nothing is left.
#[inline]
fn without_slice(whole: &GridBox<3>, slice: &GridBox<3>) -> Option<Option<GridBox<3>>> {
    let ([mut min, mut max], [from, to]) = ([whole.min().0, whole.max().0], [slice.min().0, slice.max().0]);
    let is_as_wide = |axis: &usize| from[*axis] == min[*axis] && to[*axis] == max[*axis];
    let Some(axis) = (0..3).find(|axis| !is_as_wide(axis)) else { return Some(None) };
    if !(axis + 1..3).all(|axis| is_as_wide(&axis)) {
        return None;
    }
    if from[axis] == min[axis] && to[axis] < max[axis] {
        min[axis] = to[axis];
    } else if to[axis] == max[axis] && from[axis] > min[axis] {
        max[axis] = from[axis];
    } else {
        return None;
    }
    Some(Some(GridBox::new(min, max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuboid(ranges: [[usize; 2]; 3]) -> GridBox<3> {
        GridBox::new(ranges.map(|range| range[0]), ranges.map(|range| range[1]))
    }

    /// Compares with the differences of regions.
    #[test]
    fn a_slice_is_cut_from_either_end_of_a_box_on_any_axis() {
        let whole = cuboid([[1, 4], [2, 5], [0, 3]]);
        let ranges = || (0..6).flat_map(|low| (low + 1..7).map(move |high| [low, high]));
        let mut slices = 0;
        for slice in
            ranges().flat_map(|a| ranges().flat_map(move |b| ranges().map(move |c| cuboid([a, b, c]))))
        {
            let rest = Region::from(whole).difference(&slice.into());
            let is_slice = whole.contains(&slice) && rest.boxes().len() <= 1;
            let expected = is_slice.then(|| rest.boxes().first().copied());
            assert_eq!(without_slice(&whole, &slice), expected, "{slice}");
            slices += usize::from(is_slice);
        }
        // On each axis two from each end, and the box itself.
        assert_eq!(slices, 13);
    }
}
