//! The states of all buffers of a command graph, in slots.

use super::{
    buffer::BufferState,
    interned::{InternedState, Patterns},
    types::CommandId,
};
use crate::task::BufferId;
use anabranch_grid::Extent;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A place for the state of one buffer.
///
/// [Derivations](super::derive) work on live states, [replays](super::replay) on interned ones. A state changes its form
/// when a launch needs the other one.
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
