//! What a residence knows about one box: the memories that are current there, and the copies that made them
//! so.

use super::memory::{Memories, MemoryId};
use smallvec::SmallVec;

/// The state of the elements of a box.
///
/// `pending` has at most one copy per memory, in the order of submission, so that equal states are equal
/// values. Each of its memories is in `current`. The memory that was written last is in `current` and never
/// in `pending`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell<C> {
    current: Memories,
    /// The copies that made a memory current and are not known to be done.
    pending: SmallVec<[(MemoryId, C); 2]>,
}

impl<C: Clone + Eq> Cell<C> {
    /// The state after a write in one memory.
    #[track_caller]
    pub(super) fn written(memory: MemoryId) -> Self {
        Self { current: Memories::only(memory), pending: SmallVec::new() }
    }

    #[inline]
    pub(super) fn is_current_in(&self, memory: Memories) -> bool {
        self.current.contains(memory)
    }

    /// Whether the host has the only current values.
    #[inline]
    pub(super) fn is_only_on_host(&self) -> bool {
        self.current == Memories::only(MemoryId::HOST)
    }

    /// The memory to copy from: the host's if it is current. Otherwise a device's that waits for no copy. A
    /// device that waits for one is no source then: all copies to devices come from the host, whose value has
    /// been struck out, so that copy fails too.
    pub(super) fn source(&self) -> MemoryId {
        if self.is_current_in(Memories::only(MemoryId::HOST)) {
            return MemoryId::HOST;
        }
        let pending = self.pending.iter().map(|&(memory, _)| Memories::only(memory));
        let settled = pending.fold(self.current, Memories::without);
        settled.first().expect("the memory that was written last is current and waits for no copy")
    }

    /// The copy that made `memory` current, if it is not known to be done.
    #[inline]
    pub(super) fn made_by(&self, memory: MemoryId) -> Option<&C> {
        self.pending.iter().find(|(to, _)| *to == memory).map(|(_, id)| id)
    }

    /// Whether a memory is current because of the copy `id`.
    #[inline]
    pub(super) fn depends_on(&self, id: &C) -> bool {
        self.pending.iter().any(|(_, copy)| copy == id)
    }

    /// The state after the submission of a copy to `memory`, which is not current yet.
    pub(super) fn copied(&self, memory: MemoryId, id: &C) -> Self {
        let mut cell = self.clone();
        cell.current = cell.current.union(Memories::only(memory));
        cell.pending.push((memory, id.clone()));
        cell
    }

    /// The state after the end of the copy `id`.
    pub(super) fn ended(&self, id: &C, end: End) -> Self {
        let mut cell = self.clone();
        cell.pending.retain(|(memory, copy)| {
            let ended = copy == id;
            if ended && end == End::Failed {
                cell.current = cell.current.without(Memories::only(*memory));
            }
            !ended
        });
        cell
    }

    /// The number of things that the cell keeps.
    pub(super) fn tracked(&self) -> usize {
        1 + self.pending.len()
    }
}

/// How a copy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Failed,
}
