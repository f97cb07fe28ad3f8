//! The state of a buffer, taken apart into its structure and the commands that it names.
//!
//! A program that repeats itself brings its buffers into the same states again and again, but for the commands in them.
//! A [`Layout`] is such a state with *symbols* (1, 2, 3, …) in the place of commands; equal layouts are one allocation, so that
//! asking whether a state is one that was seen before is a comparison of pointers.
//!
//! Commands that have read the same box since it was written share a symbol: a buffer that is read in every step and never
//! written has the same layout after each.

use super::{
    buffer::{BufferState, Cell, Pending, Reader},
    types::{CommandId, NodeId},
};
use crate::task::TaskId;
use anabranch_grid::{GridBox, Region};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

/// A state with symbols in the place of commands, and no task in the place of the pending reduction's.
pub(super) struct Layout {
    /// By position.
    cells: Vec<(GridBox<3>, Cell)>,
    pub(super) state: BufferState,
    pub(super) symbols: usize,
}

/// What makes two layouts equal.
#[derive(PartialEq, Eq, Hash)]
struct Structure<'a> {
    cells: &'a [(GridBox<3>, Cell)],
    readers: &'a [Reader],
    sent: &'a [(NodeId, Region<3>)],
    pending: Option<&'a Pending>,
}

impl<'a> Structure<'a> {
    fn new(cells: &'a [(GridBox<3>, Cell)], state: &'a BufferState) -> Self {
        Self { cells, readers: &state.readers, sent: &state.sent, pending: state.pending.as_deref() }
    }
}

/// The commands that the symbols of a layout stand for.
pub(super) type Ids = SmallVec<[CommandId; 8]>;

/// Symbols, ascending, each with one of the commands that it stands for beside the last.
pub(super) type Fellows = Vec<(u32, CommandId)>;

/// The state of a buffer, in two parts.
#[derive(Clone)]
pub(super) struct Parted {
    pub(super) layout: Arc<Layout>,
    /// For each symbol the last command that it stands for.
    pub(super) ids: Ids,
    /// The others, of those that stand for all readers of a box.
    pub(super) fellows: Fellows,
    /// The task whose reduction is pending, if there is one.
    pub(super) reduction: TaskId,
}

/// How many symbols a layout, or fellows a state, may have before it is worth replacing commands before the horizon.
const SYMBOLS: usize = 16;

impl Layout {
    /// How much there is to keep.
    pub(super) fn size(&self) -> usize {
        2 * (self.cells.len() + self.state.readers.len() + self.state.sent.len())
    }
}

impl Parted {
    pub(super) fn whole(&self) -> BufferState {
        let mut state = self.layout.state.renamed(|symbol| self.ids[symbol.0 as usize - 1]);
        if let Some(pending) = &mut state.pending {
            pending.reduction = self.reduction;
        }
        for &(symbol, command) in &self.fellows {
            let mut readers = self.layout.state.readers.iter();
            let (range, _) = readers.find(|(_, reader)| reader.0 == u64::from(symbol)).expect("a reader");
            state.readers.push((*range, command));
        }
        state
    }

    /// Whether putting the horizon in the place of what precedes it would make for a simpler layout.
    pub(super) fn outgrown(&self, applied: CommandId) -> bool {
        self.ids.len() > SYMBOLS && self.ids.iter().filter(|&&id| id <= applied).count() > 1
    }

    /// Forgets fellows before the horizon that another stands for, once there are many.
    #[inline]
    pub(super) fn forget(&mut self, applied: CommandId) {
        if self.fellows.len() > SYMBOLS {
            self.fellows.iter_mut().for_each(|(_, command)| *command = (*command).max(applied));
            self.fellows.sort_unstable();
            self.fellows.dedup();
        }
    }
}

/// A command as the state of a buffer names it: where a symbol is to stand for all readers of a box, with a number of
/// that box.
type Key = (CommandId, u32);

impl BufferState {
    /// The same state with other commands.
    pub(super) fn renamed(&self, name: impl Fn(CommandId) -> CommandId) -> Self {
        let mut state = self.clone();
        state.rename(&name);
        state.readers.iter_mut().for_each(|(_, reader)| *reader = name(*reader));
        state
    }

    /// Gives all commands but the readers other names.
    fn rename(&mut self, name: impl Fn(CommandId) -> CommandId) {
        let whole = self.whole();
        self.cells.apply(&whole, |cell| Cell { writer: name(cell.writer), ..*cell });
        if let Some(pending) = &mut self.pending {
            pending.writers.iter_mut().for_each(|writer| *writer = name(*writer));
        }
    }

    /// Keeps the last reader of each box. Gives their keys, and the others by number of the box.
    fn keep_last_readers(&mut self) -> (SmallVec<[Key; 8]>, Fellows) {
        let mut kept: SmallVec<[Reader; 8]> = SmallVec::new();
        let (mut keys, mut fellows) = (SmallVec::<[Key; 8]>::new(), Fellows::new());
        for &(range, reader) in &self.readers {
            match kept.iter().position(|(other, _)| *other == range) {
                Some(at) => {
                    let number = at as u32 + 1;
                    fellows.push((number, reader.min(keys[at].0)));
                    keys[at] = (reader.max(keys[at].0), number);
                }
                None => {
                    kept.push((range, reader));
                    keys.push((reader, 0));
                }
            }
        }
        if !fellows.is_empty() {
            self.readers.clear();
            self.readers.extend(kept);
        }
        (keys, fellows)
    }
}

/// All layouts that were seen.
#[derive(Default)]
pub(super) struct Layouts {
    by_hash: FxHashMap<u64, SmallVec<[Arc<Layout>; 1]>>,
}

impl Layouts {
    /// Takes a state apart.
    pub(super) fn part(&mut self, mut state: BufferState) -> Parted {
        let (readers, mut fellows) = state.keep_last_readers();
        let writers = state.cells.entries().map(|(_, cell)| cell.writer);
        let pending = state.pending.iter().flat_map(|pending| pending.writers.iter().copied());
        let mut keys: SmallVec<[Key; 8]> = writers.chain(pending).map(|id| (id, 0)).collect();
        keys.extend_from_slice(&readers);
        keys.sort_unstable();
        keys.dedup();
        // Symbols are in the order of what they stand for, so that comparing them gives the same.
        let symbol = |key| keys.binary_search(&key).expect("every command has a symbol") as u64 + 1;
        state.rename(|id| CommandId(symbol((id, 0))));
        for ((_, reader), key) in state.readers.iter_mut().zip(&readers) {
            *reader = CommandId(symbol(*key));
        }
        for (number, _) in &mut fellows {
            *number = symbol(readers[*number as usize - 1]) as u32;
        }
        fellows.sort_unstable();
        let pending = state.pending.as_mut();
        let reduction = pending.map_or(TaskId::EPOCH, |p| std::mem::replace(&mut p.reduction, TaskId::EPOCH));
        let layout = self.intern(state, keys.len());
        Parted { layout, ids: keys.iter().map(|(id, _)| *id).collect(), fellows, reduction }
    }

    fn intern(&mut self, state: BufferState, symbols: usize) -> Arc<Layout> {
        let mut cells: Vec<_> = state.cells.entries().map(|(range, cell)| (range, *cell)).collect();
        cells.sort_unstable_by_key(|(range, _)| range.min());
        let structure = Structure::new(&cells, &state);
        let mut hasher = FxHasher::default();
        structure.hash(&mut hasher);
        let same = self.by_hash.entry(hasher.finish()).or_default();
        let known = same.iter().find(|layout| Structure::new(&layout.cells, &layout.state) == structure);
        if let Some(layout) = known {
            return layout.clone();
        }
        let layout = Arc::new(Layout { cells, state, symbols });
        same.push(layout.clone());
        layout
    }
}
