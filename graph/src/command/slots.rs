//! The states of all buffers of a command graph, in slots.

use super::{
    buffer::BufferState,
    interned::{InternedState, Patterns},
    shape::Shape,
    types::{Command, CommandId, CommandKind},
    versions::{Done, Versions},
};
use crate::task::BufferId;
use anabranch_grid::{Extent, Region};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A place for the state of one buffer.
///
/// [Derivations](super::derive) work on live states, [memos](super::memo) on interned ones. A state
/// changes its form when a launch needs the other one.
pub(super) enum Slot {
    Free,
    Live(BufferState),
    Interned(InternedState),
}

/// The slots of all buffers.
#[derive(Default)]
pub(super) struct BufferSlots {
    by_id: FxHashMap<BufferId, usize>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Of the buffers that may have several memories.
    versions: FxHashMap<BufferId, Versions>,
}

impl BufferSlots {
    /// Adds a buffer.
    ///
    /// # Panics
    /// If the buffer has a slot already.
    pub(super) fn insert(&mut self, buffer: BufferId, state: BufferState) {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(Slot::Free);
        }
        self.slots[slot] = Slot::Live(state);
        assert!(self.by_id.insert(buffer, slot).is_none(), "buffer {} exists already", buffer.0);
    }

    /// Removes a buffer, if it has a slot.
    pub(super) fn remove(&mut self, buffer: BufferId) {
        if let Some(slot) = self.by_id.remove(&buffer) {
            self.slots[slot] = Slot::Free;
            self.free.push(slot);
            self.versions.remove(&buffer);
        }
    }

    /// Whether some buffer may have several memories.
    pub(super) fn have_versions(&self) -> bool {
        !self.versions.is_empty()
    }

    /// Sets the largest number of memories of a buffer.
    pub(super) fn set_versions(&mut self, buffer: BufferId, versions: usize) {
        assert!(self.by_id.contains_key(&buffer), "a buffer of this graph");
        self.versions.entry(buffer).or_insert_with(Versions::new).set_max(versions);
    }

    /// The number of the current memory of a buffer.
    pub(super) fn version(&self, buffer: BufferId) -> u32 {
        self.versions.get(&buffer).map_or(0, Versions::current)
    }

    /// Discards the contents of a buffer. Leaves its memory if commands still read it.
    pub(super) fn discard(&mut self, buffer: BufferId, done: Done<'_>) {
        let slot = *self.by_id.get(&buffer).expect("a buffer of this graph");
        self.make_live(slot);
        self.leave_if_read(buffer, slot, &[], done);
        self.live_mut(slot).discard();
        if let Some(versions) = self.versions.get_mut(&buffer) {
            versions.is_discarded = true;
        }
    }

    /// Leaves the memories of the buffers that a launch overwrites completely, if commands still read them
    /// that the launch does not come after anyway. The launch has no error.
    #[inline(never)]
    pub(super) fn leave_overwritten(&mut self, shape: &Shape, done: Done<'_>) {
        let slots = self.slots_of(&shape.buffers);
        let written = (0..slots.len()).filter(|&operand| shape.writes(operand));
        let written: SmallVec<[usize; 4]> =
            written.filter(|&operand| self.versions.contains_key(&shape.buffers[operand])).collect();
        if written.is_empty() {
            return;
        }
        let mut inputs = SmallVec::<[CommandId; 16]>::new();
        for access in shape.accesses.iter().filter(|access| access.mode.reads()) {
            self.add_writers(slots[access.operand], access.mine(), &mut inputs);
        }
        for operand in written {
            let buffer = shape.buffers[operand];
            if shape.overwrites(operand, &self.state_in(slots[operand]).whole()) {
                self.leave_if_read(buffer, slots[operand], &inputs, done);
            }
            if let Some(versions) = self.versions.get_mut(&buffer) {
                versions.is_discarded = false;
            }
        }
    }

    /// Leaves the memory of a buffer if commands other than `inputs` still read its contents.
    fn leave_if_read(&mut self, buffer: BufferId, slot: usize, inputs: &[CommandId], done: Done<'_>) {
        let Some(versions) = self.versions.get(&buffer) else { return };
        let counts = |reader: &CommandId| !inputs.contains(reader) && versions.counts(*reader, done);
        if !versions.are_several() || versions.is_discarded || !self.readers(slot).iter().any(counts) {
            return;
        }
        self.make_live(slot);
        let users = self.live_mut(slot).users();
        let users = self.versions.get_mut(&buffer).map(|versions| versions.leave(users, done));
        self.live_mut(slot).change_memory(users.unwrap_or_default());
    }

    /// Notes the pushes of a launch.
    #[inline]
    pub(super) fn note_pushes(&mut self, commands: &[Command]) {
        if self.versions.is_empty() {
            return;
        }
        for command in commands {
            let CommandKind::Push { buffer, .. } = command.kind else { continue };
            if let Some(mut versions) = self.versions.remove(&buffer) {
                let slot = self.by_id[&buffer];
                versions.ignore(command.id, || self.readers(slot).into_iter());
                self.versions.insert(buffer, versions);
            }
        }
    }

    /// The commands that have read a part of the buffer in a slot since it was written.
    fn readers(&self, slot: usize) -> SmallVec<[CommandId; 8]> {
        match &self.slots[slot] {
            Slot::Live(state) => state.readers.iter().map(|(_, reader)| *reader).collect(),
            Slot::Interned(interned) => interned.readers().collect(),
            Slot::Free => panic!("a buffer of this graph"),
        }
    }

    /// Adds the commands that wrote a region of the buffer in a slot.
    fn add_writers(&self, slot: usize, region: &Region<3>, to: &mut SmallVec<[CommandId; 16]>) {
        match &self.slots[slot] {
            Slot::Live(state) => to.extend(state.writers(region, CommandId::EPOCH)),
            Slot::Interned(interned) => {
                let symbols = interned.pattern.state().writers(region, CommandId::EPOCH);
                to.extend(symbols.into_iter().map(|symbol| interned.command(symbol)));
            }
            Slot::Free => panic!("a buffer of this graph"),
        }
    }

    fn live_mut(&mut self, slot: usize) -> &mut BufferState {
        match &mut self.slots[slot] {
            Slot::Live(state) => state,
            _ => panic!("the state of slot {slot} is not live"),
        }
    }

    /// The state of a buffer. An interned state has symbols in the place of commands.
    pub(super) fn state(&self, buffer: BufferId) -> &BufferState {
        self.state_in(*self.by_id.get(&buffer).expect("a buffer of this graph"))
    }

    /// The state in a slot. An interned state has symbols in the place of commands.
    pub(super) fn state_in(&self, slot: usize) -> &BufferState {
        match &self.slots[slot] {
            Slot::Live(state) => state,
            Slot::Interned(interned) => interned.pattern.state(),
            Slot::Free => panic!("a buffer of this graph"),
        }
    }

    pub(super) fn extent(&self, buffer: BufferId) -> Extent<3> {
        self.state(buffer).cells.extent()
    }

    /// The slots of buffers.
    pub(super) fn slots_of(&self, buffers: &[BufferId]) -> SmallVec<[usize; 4]> {
        buffers.iter().map(|buffer| self.by_id[buffer]).collect()
    }

    pub(super) fn make_live(&mut self, slot: usize) {
        if let Slot::Interned(interned) = &self.slots[slot] {
            self.slots[slot] = Slot::Live(interned.to_live());
        }
    }

    /// Interns the state in a slot, or interns it again if its pattern would become simpler.
    pub(super) fn make_interned(&mut self, slot: usize, applied: CommandId, patterns: &mut Patterns) {
        if let Slot::Interned(interned) = &mut self.slots[slot] {
            interned.merge_extra_readers(applied);
            if !interned.can_be_simplified(applied) {
                return;
            }
            self.make_live(slot);
        }
        let Slot::Live(mut state) = std::mem::replace(&mut self.slots[slot], Slot::Free) else {
            panic!("a buffer of this graph");
        };
        state.replace_before(applied);
        self.slots[slot] = Slot::Interned(patterns.intern(state));
    }

    /// The states in these slots, as the operands of a launch.
    pub(super) fn operands<'a>(&'a mut self, positions: &'a [usize]) -> Operands<'a> {
        Operands { slots: &mut self.slots, positions }
    }
}

/// The states of the buffers of one launch, in the order in which the launch names the buffers.
pub(super) struct Operands<'a> {
    slots: &'a mut [Slot],
    /// The slot of each operand.
    positions: &'a [usize],
}

impl<'a> Operands<'a> {
    pub(super) fn new(slots: &'a mut [Slot], positions: &'a [usize]) -> Self {
        Self { slots, positions }
    }

    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    /// The state of an operand, which is live.
    #[inline]
    pub(super) fn live(&mut self, operand: usize) -> &mut BufferState {
        match &mut self.slots[self.positions[operand]] {
            Slot::Live(state) => state,
            _ => panic!("the state of operand {operand} is not live"),
        }
    }

    /// The state of an operand, which is interned.
    #[inline]
    pub(super) fn interned(&self, operand: usize) -> &InternedState {
        match &self.slots[self.positions[operand]] {
            Slot::Interned(state) => state,
            _ => panic!("the state of operand {operand} is not interned"),
        }
    }

    /// The state of an operand, which is interned.
    #[inline]
    pub(super) fn interned_mut(&mut self, operand: usize) -> &mut InternedState {
        match &mut self.slots[self.positions[operand]] {
            Slot::Interned(state) => state,
            _ => panic!("the state of operand {operand} is not interned"),
        }
    }
}
