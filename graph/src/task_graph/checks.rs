//! The checks of the accesses of a task.

use super::{
    buffer::BufferTracker,
    edges::{Dependencies, add},
};
use crate::task::{Access, Dependency, GraphError, Kind, Mode, Origin, TaskId};
use anabranch_grid::{GridBox, Region};
use smallvec::SmallVec;

/// Whether an access overwrites all of a buffer that has versions, and no other access of the task uses the
/// buffer.
#[inline]
pub(super) fn is_overwrite(tracker: &BufferTracker, access: &Access, accesses: &[Access]) -> bool {
    tracker.renames()
        && access.mode == Mode::Write
        && accesses.iter().filter(|other| other.buffer == access.buffer).count() == 1
        && access.region.contains_box(&tracker.whole())
}

#[inline]
pub(super) fn check_bounds(tracker: &BufferTracker, i: usize, access: &Access) -> Result<(), GraphError> {
    let whole = tracker.whole();
    match access.region.boxes().iter().all(|range| whole.contains(range)) {
        true => Ok(()),
        false => Err(GraphError::Outside { access: i }),
    }
}

/// Adds the dependencies on the writers of the region that an access reads.
#[inline(always)]
pub(super) fn read(
    tracker: &BufferTracker,
    epoch: TaskId,
    i: usize,
    access: &Access,
    found: &mut Dependencies,
) -> Result<(), GraphError> {
    let mut missing = SmallVec::<[GridBox<3>; 1]>::new();
    let origin = Origin::Buffer(access.buffer);
    tracker.contents(&access.region, epoch, |part, writer| match writer {
        Some(on) => add(found, Dependency { on, kind: Kind::True, origin }),
        None => missing.push(part),
    });
    match missing.is_empty() {
        true => Ok(()),
        false => Err(GraphError::NeverWritten { access: i, missing: Region::from_boxes(missing) }),
    }
}

/// Checks that accesses of one task to one buffer overlap only if both read.
#[inline]
pub(super) fn check_overlap(earlier: &[Access], i: usize, access: &Access) -> Result<(), GraphError> {
    for (j, other) in earlier.iter().enumerate() {
        let shared = other.buffer == access.buffer && (other.mode.writes() || access.mode.writes());
        if shared && other.region.intersects(&access.region) {
            let common = other.region.intersection(&access.region);
            return Err(GraphError::Overlap { accesses: [j, i], common });
        }
    }
    Ok(())
}
