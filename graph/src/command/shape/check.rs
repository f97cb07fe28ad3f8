//! The checks of a launch: range mappers are monotonic, chunks write disjoint regions whose union is the region of the whole
//! task, and what is read was written.

use super::evaluate::Shape;
use crate::{
    command::{buffer::BufferState, error::CommandError},
    task::TaskId,
};
use anabranch_grid::Region;
use std::ops::Range;

impl Shape {
    /// Checks the range mappers, as far as this node's chunks show.
    pub(super) fn check(&self, task: TaskId) -> Result<(), CommandError> {
        for (number, access) in self.accesses.iter().enumerate() {
            for (at, region) in access.own.iter().take(self.own.len()).enumerate() {
                if !access.whole.contains(region) {
                    let chunk = self.own.start + at;
                    let (part, beyond) =
                        (self.split.range(chunk..chunk + 1), region.difference(&access.whole));
                    return Err(CommandError::NotMonotonic {
                        task,
                        access: number,
                        part,
                        beyond: beyond.into(),
                    });
                }
            }
            if access.mode.writes() && !access.is_whole && !self.own.is_empty() {
                self.check_write(task, number, 0..self.split.chunks(), &access.whole)?;
            }
        }
        Ok(())
    }

    /// Checks that the halves of each run that holds chunks of this node write all that the run does, each point once. Every
    /// node checks the runs that hold its own chunks, so together the nodes check all runs.
    fn check_write(
        &self,
        task: TaskId,
        access: usize,
        run: Range<usize>,
        region: &Region<3>,
    ) -> Result<(), CommandError> {
        if run.len() <= 1 {
            return Ok(());
        }
        let split = &self.split;
        let middle = split.middle(&run);
        let halves = [run.start..middle, middle..run.end];
        let regions = halves.clone().map(|half| self.accesses[access].map.region(split, half));
        let [a, b] = &regions;
        if a.intersects(b) {
            let parts = halves.map(|half| split.range(half)).into();
            let common = a.intersection(b).into();
            return Err(CommandError::OverlappingWrites { task, access, parts, common });
        }
        let both = a.union(b);
        if both != *region {
            let part = split.range(run);
            let (missing, beyond) = (region.difference(&both), both.difference(region));
            return Err(if beyond.is_empty() {
                CommandError::InexactWrite { task, access, part, missing: missing.into() }
            } else {
                CommandError::NotMonotonic { task, access, part, beyond: beyond.into() }
            });
        }
        for (half, region) in halves.into_iter().zip(&regions) {
            if half.start < self.own.end && self.own.start < half.end {
                self.check_write(task, access, half, region)?;
            }
        }
        Ok(())
    }

    /// Checks that everything that this node reads was written on some node. `state` gives the state of an operand.
    pub(in crate::command) fn check_written<'a>(
        &self,
        task: TaskId,
        state: impl Fn(usize) -> &'a BufferState,
    ) -> Result<(), CommandError> {
        for access in self.accesses.iter().filter(|access| access.mode.reads()) {
            let missing = state(access.operand).nowhere(access.mine());
            if !missing.is_empty() {
                let buffer = self.buffers[access.operand];
                return Err(CommandError::NeverWritten { task, buffer, missing: missing.into() });
            }
        }
        Ok(())
    }
}
