//! A copy before its submission: its direction, its place on the device, its label and its body.

use super::{
    Slot,
    copy::{CopyBody, Direction},
    ended_copies::{CopyOf, End, Ended},
    residents::{Known, Version},
};
use crate::{data::stored::Stored, label::TaskLabel};
use anabranch_graph::{MemoryCopy, MemoryId, TaskId};
use std::sync::Arc;

/// A copy that is about to be submitted.
pub(super) struct PlannedCopy<'a> {
    pub(super) buffer: &'a Arc<dyn Stored>,
    version: u32,
    pub(super) copy: &'a MemoryCopy,
    pub(super) direction: Direction,
    /// The name of the device.
    name: &'a str,
    slot: Arc<Slot>,
    /// The memory of the device.
    pub(super) queue: MemoryId,
}

impl<'a> PlannedCopy<'a> {
    /// A copy of a part of this version.
    pub(super) fn new(
        devices: &'a [Known],
        (buffer, number): (&'a Arc<dyn Stored>, u32),
        version: &mut Version,
        copy: &'a MemoryCopy,
    ) -> Self {
        let (direction, other) = match copy.to {
            MemoryId::HOST => (Direction::ToHost, copy.from),
            device => (Direction::ToDevice, device),
        };
        let Known { device, name } = &devices[usize::from(other.0) - 1];
        let slot = version.slot(other, device, &**buffer);
        Self { buffer, version: number, copy, direction, name, slot, queue: other }
    }

    /// The name of the copy, for the task that needs it.
    pub(super) fn label(&self, of: &TaskLabel) -> TaskLabel {
        let to = match self.direction {
            Direction::ToHost => "the host",
            Direction::ToDevice => self.name,
        };
        TaskLabel { name: format!("copy of {} to {to}", self.buffer.label()).into(), location: of.location }
    }

    /// The body of the copy, whose end is noted for this task.
    pub(super) fn body(self, task: TaskId, ended: &Arc<Ended>) -> CopyBody {
        let Self { buffer, version, copy, direction, slot, .. } = self;
        let end = End::new(ended, CopyOf { buffer: buffer.id(), version, task });
        CopyBody::new(direction, (Arc::clone(buffer), version), copy.region.clone(), slot, end)
    }
}
