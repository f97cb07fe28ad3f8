//! With several nodes: the copies that a step needs before it begins.
//!
//! The command graph of a node orders steps as if the node had one memory. A copy is no command. It comes
//! before a step, and has a part of what the step reads:
//!
//! - The copy comes after the step that has written that part ([`Writers`]). All earlier steps that used the
//!   part in any memory of the node have ended then: that writer comes after them. The writers of a part from
//!   before its buffer met a device are not known. Then the copy comes after all that the step depends on.
//! - Later writers come after the copy, because they come after the step.
//! - A later step that reads the part in the same memory comes after the copy, too.

use super::{
    OnDevice, Slot,
    copy::{CopyBody, Direction},
    planned_copy::PlannedCopy,
    residents::{Predecessor, Residents, Version},
    writers::{Waits, Writers},
};
use crate::{
    data::stored::Touch,
    execute::task::{node::Node, properties::Needs},
    label::TaskLabel,
};
use anabranch_graph::{Access, MemoryCopy, MemoryId, TaskId};
use smallvec::SmallVec;
use std::sync::Arc;

/// What a step or a copy comes after.
pub(in crate::execute) type Predecessors = SmallVec<[Predecessor; 2]>;

/// A copy that has no node yet.
pub(in crate::execute) struct NewCopy {
    pub(in crate::execute) label: TaskLabel,
    pub(in crate::execute) body: CopyBody,
    /// The part that is copied.
    pub(in crate::execute) part: Touch,
    /// The memory that it copies from.
    pub(in crate::execute) from: MemoryId,
    /// Whether it writes the memory of the host.
    pub(in crate::execute) is_to_host: bool,
    /// The copies and the writer that it comes after.
    pub(in crate::execute) after: Predecessors,
    /// Whether it also comes after all that the reader depends on.
    pub(in crate::execute) waits_as_reader: bool,
}

impl Version {
    fn writers(&mut self) -> &mut Writers {
        let extent = self.residence.extent();
        self.writers.get_or_insert_with(|| Box::new(Writers::new(extent)))
    }
}

impl Residents {
    /// The places of the accessed buffers on the device of a task, in these versions.
    pub(in crate::execute) fn slots_on_nodes(
        &mut self,
        on: OnDevice<'_>,
        accesses: &[Access],
        versions: &[u32],
    ) -> SmallVec<[Arc<Slot>; 4]> {
        self.meet(on, accesses);
        self.slots(on, accesses, versions)
    }

    /// Finds what a step lacks that reads and writes these parts, on a device or the host, and notes what it
    /// writes. `make` makes the node of each copy. Returns the copies that the step comes after.
    pub(in crate::execute) fn prepare_step(
        &mut self,
        label: &TaskLabel,
        (step, device): (&Node, Option<OnDevice<'_>>),
        touches: &[Touch],
        mut make: impl FnMut(NewCopy) -> Node,
    ) -> Predecessors {
        let mut after = Predecessors::new();
        if touches.is_empty() {
            return after;
        }
        self.learn();
        let memory = self.place(device);
        for touch in touches.iter().filter(|touch| touch.mode.reads()) {
            self.bring_to_step(label, memory, touch, &mut make, &mut after);
        }
        for touch in touches.iter().filter(|touch| touch.mode.writes()) {
            let resident = self.buffers.get_mut(&touch.buffer);
            let Some(resident) = resident.filter(|resident| resident.buffer.strong_count() > 0) else {
                continue;
            };
            let Some(version) = resident.version(touch.version) else { continue };
            version.residence.written(memory, &touch.region);
            version.writers().note(&touch.region, step);
        }
        after
    }

    /// Makes the copies that a memory needs for a part to be read there.
    fn bring_to_step(
        &mut self,
        label: &TaskLabel,
        memory: MemoryId,
        touch: &Touch,
        make: &mut impl FnMut(NewCopy) -> Node,
        after: &mut Predecessors,
    ) {
        let Self { devices, buffers, ended, steps, copies: count, .. } = self;
        let Some(resident) = buffers.get_mut(&touch.buffer) else { return };
        let Some(buffer) = resident.buffer.upgrade() else { return };
        let Some(version) = resident.version(touch.version) else { return };
        let missing = version.residence.missing(memory, &touch.region).into_iter();
        let cut = |MemoryCopy { from, to, region }| {
            let parts = version.writers().cut(&region).into_iter();
            parts.map(move |(region, waits)| (MemoryCopy { from, to, region }, waits))
        };
        let copies: SmallVec<[_; 2]> = missing.flat_map(cut).collect();
        for (copy, waits) in copies {
            let made_by = version.residence.made_by(copy.from, &copy.region);
            let mut after: Predecessors = made_by.filter_map(|id| steps.get(id).cloned()).collect();
            let waits_as_reader = matches!(waits, Waits::AsReader);
            if let Waits::For(node) = waits {
                // The copy finds out by itself what was not written.
                after.push(Predecessor { node, needs: Needs::End });
            }
            let planned = PlannedCopy::new(devices, (&buffer, touch.version), version, &copy);
            *count += 1;
            let (id, is_to_host) = (TaskId(*count), planned.direction == Direction::ToHost);
            let new = NewCopy {
                label: planned.label(label),
                body: planned.body(id, ended),
                part: Touch { region: copy.region.clone(), ..touch.clone() },
                from: copy.from,
                is_to_host,
                after,
                waits_as_reader,
            };
            // A step that reads in the memory of the host finds out by itself what is not there.
            let needs = if is_to_host { Needs::End } else { Needs::Contents };
            steps.insert(id, Predecessor { node: make(new), needs });
            version.residence.copied(&copy, id);
        }
        let made_by = version.residence.made_by(memory, &touch.region);
        after.extend(made_by.filter_map(|id| steps.get(id).cloned()));
    }
}
