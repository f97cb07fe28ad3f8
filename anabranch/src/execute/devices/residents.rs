//! The buffers that have met a device, and where they are current.

use super::{OnDevice, Slot, ended_copies::Ended, writers::Writers};
use crate::{
    data::stored::Stored,
    device::Device,
    execute::task::{node::Node, properties::Needs},
};
use anabranch_graph::{Access, BufferId, MemoryId, Residence, TaskId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::{
    ptr,
    sync::{Arc, Weak},
};

/// The devices of a runtime, and the buffers that have met one of them. It is a part of the state that
/// submissions change under the lock.
#[derive(Default)]
pub(in crate::execute) struct Residents {
    /// The memory of the first one is number 1.
    pub(super) devices: Vec<Known>,
    pub(super) buffers: FxHashMap<BufferId, Resident>,
    pub(super) ended: Arc<Ended>,
    /// With several nodes: the copies that are not known to have ended.
    pub(super) steps: FxHashMap<TaskId, Predecessor>,
    /// With several nodes: the number of copies so far.
    pub(super) copies: u64,
}

/// A copy, or the writer of what one copies, and what comes after it needs of it.
#[derive(Clone)]
pub(in crate::execute) struct Predecessor {
    pub(in crate::execute) node: Node,
    pub(in crate::execute) needs: Needs,
}

/// A device, and its name: no code of devices runs under the lock.
pub(super) struct Known {
    pub(super) device: Arc<dyn Device>,
    pub(super) name: String,
}

/// A buffer that has met a device.
pub(in crate::execute) struct Resident {
    pub(super) buffer: Weak<dyn Stored>,
    versions: Vec<Version>,
}

pub(super) struct Version {
    pub(super) residence: Residence<TaskId>,
    /// The places on the devices.
    slots: Vec<Option<Arc<Slot>>>,
    /// With several nodes: the last writer of each part.
    pub(super) writers: Option<Box<Writers>>,
}

impl Resident {
    pub(super) fn version(&mut self, number: u32) -> Option<&mut Version> {
        let number = number as usize;
        if self.versions.len() <= number {
            let extent = self.buffer.upgrade()?.extent();
            let new = || Version { residence: Residence::new(extent), slots: Vec::new(), writers: None };
            self.versions.resize_with(number + 1, new);
        }
        self.versions.get_mut(number)
    }
}

impl Version {
    pub(super) fn slot(
        &mut self,
        memory: MemoryId,
        device: &Arc<dyn Device>,
        buffer: &dyn Stored,
    ) -> Arc<Slot> {
        let place = usize::from(memory.0);
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        Arc::clone(self.slots[place].get_or_insert_with(|| Slot::new(device, buffer)))
    }
}

impl Residents {
    /// Forgets a buffer. The caller drops what this returns outside of locks: devices free its memory.
    pub(in crate::execute) fn remove(&mut self, buffer: BufferId) -> Option<Resident> {
        self.buffers.remove(&buffer)
    }

    /// The memory of a device.
    pub(super) fn memory_of(&self, device: &Arc<dyn Device>) -> Option<MemoryId> {
        let place = self
            .devices
            .iter()
            .position(|known| ptr::addr_eq(Arc::as_ptr(&known.device), Arc::as_ptr(device)))?;
        Some(MemoryId(place as u16 + 1))
    }

    /// The memory where a task runs.
    pub(in crate::execute) fn place(&self, device: Option<OnDevice<'_>>) -> MemoryId {
        let on = device.map(|on| self.memory_of(on.device).expect("the runtime has met the device"));
        on.unwrap_or(MemoryId::HOST)
    }

    /// Notes the buffers of a task on a device.
    pub(super) fn meet(&mut self, on: OnDevice<'_>, accesses: &[Access]) {
        for (access, buffer) in accesses.iter().zip(on.buffers) {
            let resident = || Resident { buffer: Arc::downgrade(buffer), versions: Vec::new() };
            self.buffers.entry(access.buffer).or_insert_with(resident);
        }
    }

    /// Learns how copies have ended.
    pub(super) fn learn(&mut self) {
        for (copy, well) in self.ended.take() {
            self.steps.remove(&copy.task);
            let Some(resident) = self.buffers.get_mut(&copy.buffer) else { continue };
            let Some(Version { residence, .. }) = resident.versions.get_mut(copy.version as usize) else {
                continue;
            };
            match well {
                true => residence.done(&copy.task),
                false => residence.failed(&copy.task),
            }
        }
    }

    /// Notes what a task writes in a memory, which the graph has accepted with these versions.
    pub(super) fn written(&mut self, memory: MemoryId, accesses: &[Access], versions: &[u32]) {
        for (access, &version) in accesses.iter().zip(versions).filter(|(access, _)| access.mode.writes()) {
            let resident = self.buffers.get_mut(&access.buffer);
            if let Some(Version { residence, .. }) = resident.and_then(|resident| resident.version(version)) {
                residence.written(memory, &access.region);
            }
        }
    }

    /// The places on a device of what a task there accesses, in these versions.
    pub(in crate::execute) fn slots(
        &mut self,
        on: OnDevice<'_>,
        accesses: &[Access],
        versions: &[u32],
    ) -> SmallVec<[Arc<Slot>; 4]> {
        let memory = self.place(Some(on));
        let mut slots = SmallVec::new();
        for ((access, buffer), &version) in accesses.iter().zip(on.buffers).zip(versions) {
            let resident = self.buffers.get_mut(&access.buffer);
            let version = resident.and_then(|resident| resident.version(version));
            slots.extend(version.map(|version| version.slot(memory, on.device, &**buffer)));
        }
        slots
    }
}
