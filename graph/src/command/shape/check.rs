//! The checks of a launch: range mappers are monotonic, pieces write disjoint regions whose union is the region of the whole
//! task, and what is read was written.

use super::{access::AccessShape, evaluate::Shape};
use crate::{
    command::{buffer::BufferState, error::CommandError},
    task::TaskId,
};
use anabranch_grid::{GridBox, Region};

impl Shape {
    /// Checks the range mappers: the reading ones for this node's chunk and its pieces, the writing ones for all nodes.
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

    /// Checks that the pieces on all nodes write all that the task does, each point once. Every node checks all of them, so
    /// every node finds the same error.
    fn check_write(&self, task: TaskId, number: usize) -> Result<(), CommandError> {
        let access = &self.accesses[number];
        let (mut order, mut points) = (Ascent::default(), 0);
        for (part, region) in self.written(access) {
            check_part(task, number, part, &region, &access.whole)?;
            points += count(&region);
            order.add(&region);
        }
        if !order.is_broken && points == count(&access.whole) {
            return Ok(());
        }
        self.check_union(task, number)
    }

    /// The pieces on all nodes and what they write.
    fn written(&self, access: &AccessShape) -> impl Iterator<Item = (GridBox<3>, Region<3>)> {
        self.split.all_pieces().map(|part| (part, access.map.region(&self.split, part)))
    }

    /// Checks the same as [`check_write`](Self::check_write), for regions of any shape and order.
    #[inline(never)]
    fn check_union(&self, task: TaskId, access: usize) -> Result<(), CommandError> {
        let written: Vec<_> = self.written(&self.accesses[access]).collect();
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

    /// Checks that everything that the task reads was written on some node. `state` gives the state of an operand.
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

/// Finds out whether regions are single boxes that follow each other along one axis, in one direction. Then they are
/// disjoint. The usual splits and mappers give such regions.
#[derive(Default)]
struct Ascent {
    last: Option<GridBox<3>>,
    /// The axis along which the first two boxes follow each other, and whether they do so upwards.
    direction: Option<(usize, bool)>,
    is_broken: bool,
}

impl Ascent {
    #[inline]
    fn add(&mut self, region: &Region<3>) {
        let [only] = region.boxes() else {
            self.is_broken |= !region.is_empty();
            return;
        };
        if let Some(last) = self.last.replace(*only) {
            let follows = |axis: usize, up: bool| {
                let (first, second) = if up { (&last, only) } else { (only, &last) };
                first.max()[axis] <= second.min()[axis]
            };
            match self.direction {
                Some((axis, up)) => self.is_broken |= !follows(axis, up),
                None => {
                    let mut all = (0..3).flat_map(|axis| [(axis, true), (axis, false)]);
                    self.direction = all.find(|&(axis, up)| follows(axis, up));
                    self.is_broken |= self.direction.is_none();
                }
            }
        }
    }
}
