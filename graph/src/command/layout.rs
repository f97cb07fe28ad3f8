//! The state of a buffer, taken apart into its structure and the commands that it names.
//!
//! A program that repeats itself brings its buffers into the same states again and again, but for the commands in them.
//! A [`Layout`] is such a state with *symbols* (1, 2, 3, …) in the place of commands; equal layouts are one allocation, so that
//! asking whether a state is one that was seen before is a comparison of pointers.

use super::{
    buffer::{BufferState, Cell, Pending, Reader},
    hash::{Map, WordHasher},
    types::{CommandId, NodeId},
};
use crate::TaskId;
use anabranch_grid::{GridBox, Region};
use smallvec::SmallVec;
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

/// What makes two layouts equal.
#[derive(PartialEq, Eq, Hash)]
struct Structure {
    /// By position.
    cells: Vec<(GridBox<3>, Cell)>,
    readers: Vec<Reader>,
    sent: Vec<(NodeId, Region<3>)>,
    pending: Option<Box<Pending>>,
}

/// A state with symbols in the place of commands, and no task in the place of the pending reduction's.
pub(super) struct Layout {
    structure: Structure,
    pub(super) state: BufferState,
    pub(super) symbols: usize,
}

/// The commands that the symbols of a layout stand for.
pub(super) type Ids = SmallVec<[CommandId; 8]>;

/// The state of a buffer, in two parts.
#[derive(Clone)]
pub(super) struct Parted {
    pub(super) layout: Arc<Layout>,
    pub(super) ids: Ids,
    /// The task whose reduction is pending, if there is one.
    pub(super) reduction: TaskId,
}

/// How many symbols a layout may have before it is worth replacing commands before the horizon.
const SYMBOLS: usize = 16;

impl Layout {
    /// How much there is to keep.
    pub(super) fn size(&self) -> usize {
        let Structure { cells, readers, sent, .. } = &self.structure;
        2 * (cells.len() + readers.len() + sent.len())
    }
}

impl Parted {
    pub(super) fn whole(&self) -> BufferState {
        let mut state = self.layout.state.renamed(|symbol| self.ids[symbol.0 as usize - 1]);
        if let Some(pending) = &mut state.pending {
            pending.reduction = self.reduction;
        }
        state
    }

    /// Whether putting the horizon in the place of what precedes it would make for a simpler layout.
    pub(super) fn outgrown(&self, applied: CommandId) -> bool {
        self.ids.len() > SYMBOLS && self.ids.iter().filter(|&&id| id <= applied).count() > 1
    }
}

impl BufferState {
    fn commands(&self) -> impl Iterator<Item = CommandId> {
        let writers = self.cells.entries().map(|(_, cell)| cell.writer);
        let readers = self.readers.iter().map(|(_, reader)| *reader);
        writers.chain(readers).chain(self.pending.iter().flat_map(|pending| pending.writers.iter().copied()))
    }

    /// The same state with other commands.
    pub(super) fn renamed(&self, name: impl Fn(CommandId) -> CommandId) -> Self {
        let mut state = self.clone();
        let whole = state.whole();
        state.cells.apply(&whole, |cell| Cell { writer: name(cell.writer), ..*cell });
        state.readers.iter_mut().for_each(|(_, reader)| *reader = name(*reader));
        if let Some(pending) = &mut state.pending {
            pending.writers.iter_mut().for_each(|writer| *writer = name(*writer));
        }
        state
    }
}

/// All layouts that were seen.
#[derive(Default)]
pub(super) struct Layouts {
    by_hash: Map<u64, SmallVec<[Arc<Layout>; 1]>>,
}

impl Layouts {
    /// Takes a state apart.
    pub(super) fn part(&mut self, state: &BufferState) -> Parted {
        let mut ids: Ids = state.commands().collect();
        ids.sort_unstable();
        ids.dedup();
        // Symbols are in the order of what they stand for, so that comparing them gives the same.
        let symbol = |id| CommandId(ids.binary_search(&id).expect("every command has a symbol") as u64 + 1);
        let mut renamed = state.renamed(symbol);
        let pending = renamed.pending.as_mut();
        let reduction = pending.map_or(TaskId::EPOCH, |p| std::mem::replace(&mut p.reduction, TaskId::EPOCH));
        let layout = self.intern(renamed, ids.len());
        Parted { layout, ids, reduction }
    }

    fn intern(&mut self, state: BufferState, symbols: usize) -> Arc<Layout> {
        let mut cells: Vec<_> = state.cells.entries().map(|(range, cell)| (range, *cell)).collect();
        cells.sort_unstable_by_key(|(range, _)| range.min());
        let (readers, sent) = (state.readers.clone(), state.sent.clone());
        let structure = Structure { cells, readers, sent, pending: state.pending.clone() };
        let mut hasher = WordHasher::default();
        structure.hash(&mut hasher);
        let same = self.by_hash.entry(hasher.finish()).or_default();
        if let Some(layout) = same.iter().find(|layout| layout.structure == structure) {
            return layout.clone();
        }
        let layout = Arc::new(Layout { structure, state, symbols });
        same.push(layout.clone());
        layout
    }
}
