//! Interned states: the state of a buffer, separated into its pattern and the commands that it names.
//!
//! A program that repeats itself brings its buffers into the same states again and again, except for the
//! commands in them. A [`Pattern`] is such a state with *symbols* (1, 2, 3, …) in the place of commands.
//! Equal patterns are one allocation, so comparing two states' patterns is comparing pointers.
//!
//! Commands that have read the same box since it was written share a symbol, so a buffer that is read in
//! every step and never written has the same pattern after each.

use super::{
    buffer::{BufferState, Cell, PendingReduction, Reader},
    source::Source,
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
pub(super) struct Pattern {
    /// By position.
    cells: Vec<(GridBox<3>, Cell)>,
    state: BufferState,
    symbols: usize,
}

/// The parts that make two patterns equal.
#[derive(PartialEq, Eq, Hash)]
struct Structure<'a> {
    cells: &'a [(GridBox<3>, Cell)],
    readers: &'a [Reader],
    sent: &'a [(NodeId, Region<3>)],
    pending: Option<&'a PendingReduction>,
    source: Option<&'a Source>,
}

impl<'a> Structure<'a> {
    fn new(cells: &'a [(GridBox<3>, Cell)], state: &'a BufferState) -> Self {
        Self {
            cells,
            readers: &state.readers,
            sent: &state.sent,
            pending: state.pending.as_deref(),
            source: state.source.as_deref(),
        }
    }
}

/// The command that each symbol of a pattern stands for. If a symbol stands for several readers: the last of
/// them.
pub(super) type Ids = SmallVec<[CommandId; 8]>;

/// Pairs of a symbol and one more of the readers that it stands for, beside the last. Ascending.
pub(super) type ExtraReaders = Vec<(u32, CommandId)>;

/// The state of a buffer, as a pattern and the commands that its symbols stand for.
#[derive(Clone)]
pub(super) struct InternedState {
    pub(super) pattern: Arc<Pattern>,
    pub(super) ids: Ids,
    pub(super) extra_readers: ExtraReaders,
    /// The task whose reduction is pending, if there is one.
    pub(super) reduction: TaskId,
}

/// The number of symbols of a pattern, and of extra readers of a state, above which commands before the
/// horizon are replaced by it.
const SYMBOLS: usize = 16;

impl Pattern {
    /// The state, with symbols in the place of commands.
    pub(super) fn state(&self) -> &BufferState {
        &self.state
    }

    /// The number of symbols.
    pub(super) fn symbols(&self) -> usize {
        self.symbols
    }

    /// A measure of the memory that the pattern takes.
    pub(super) fn size(&self) -> usize {
        2 * (self.cells.len() + self.state.readers.len() + self.state.sent.len())
    }
}

impl InternedState {
    /// The live state that this stands for.
    pub(super) fn to_live(&self) -> BufferState {
        let mut state = self.pattern.state.renamed(|symbol| self.command(symbol));
        if let Some(pending) = &mut state.pending {
            pending.reduction = self.reduction;
        }
        for &(symbol, command) in &self.extra_readers {
            // A write may have cut the box of the readers into several.
            let boxes = self.pattern.state.readers.iter().filter(|(_, reader)| reader.0 == u64::from(symbol));
            state.readers.extend(boxes.map(|(range, _)| (*range, command)));
        }
        state
    }

    /// The commands that have read a part of the buffer since it was written.
    pub(super) fn readers(&self) -> impl Iterator<Item = CommandId> {
        let last = self.pattern.state.readers.iter().map(|(_, reader)| self.command(*reader));
        last.chain(self.extra_readers.iter().map(|(_, reader)| *reader))
    }

    /// The command that a symbol of the pattern stands for.
    pub(super) fn command(&self, symbol: CommandId) -> CommandId {
        self.ids[symbol.0 as usize - 1]
    }

    /// Whether replacing the commands before the horizon by it would simplify a large pattern.
    pub(super) fn can_be_simplified(&self, applied: CommandId) -> bool {
        self.ids.len() > SYMBOLS && self.ids.iter().filter(|&&id| id <= applied).count() > 1
    }

    /// Replaces extra readers before the horizon by it, if there are many.
    #[inline]
    pub(super) fn merge_extra_readers(&mut self, applied: CommandId) {
        if self.extra_readers.len() > SYMBOLS {
            self.extra_readers.iter_mut().for_each(|(_, command)| *command = (*command).max(applied));
            self.extra_readers.sort_unstable();
            self.extra_readers.dedup();
        }
    }
}

/// A command in the state of a buffer, and 0. If it stands for all readers of a box: the last of them, and a
/// number of the box. Each key becomes one symbol.
type Key = (CommandId, u32);

impl BufferState {
    /// The same state with other names for commands.
    pub(super) fn renamed(&self, name: impl Fn(CommandId) -> CommandId) -> Self {
        let mut state = self.clone();
        state.rename_writers(&name);
        state.readers.iter_mut().for_each(|(_, reader)| *reader = name(*reader));
        state
    }

    /// Gives other names to all commands but the readers.
    fn rename_writers(&mut self, name: impl Fn(CommandId) -> CommandId) {
        let whole = self.whole();
        self.cells.apply(&whole, |cell| Cell { writer: name(cell.writer), ..*cell });
        if let Some(pending) = &mut self.pending {
            pending.writers.iter_mut().for_each(|writer| *writer = name(*writer));
        }
    }

    /// Keeps the last reader of each box. Returns the readers' keys, and the other readers with the numbers
    /// of their boxes.
    fn keep_last_readers(&mut self) -> (SmallVec<[Key; 8]>, ExtraReaders) {
        let mut kept: SmallVec<[Reader; 8]> = SmallVec::new();
        let (mut keys, mut extra) = (SmallVec::<[Key; 8]>::new(), ExtraReaders::new());
        for &(range, reader) in &self.readers {
            match kept.iter().position(|(other, _)| *other == range) {
                Some(at) => {
                    let number = at as u32 + 1;
                    extra.push((number, reader.min(keys[at].0)));
                    keys[at] = (reader.max(keys[at].0), number);
                }
                None => {
                    kept.push((range, reader));
                    keys.push((reader, 0));
                }
            }
        }
        if !extra.is_empty() {
            self.readers.clear();
            self.readers.extend(kept);
        }
        (keys, extra)
    }
}

/// All patterns, each once.
#[derive(Default)]
pub(super) struct Patterns {
    by_hash: FxHashMap<u64, SmallVec<[Arc<Pattern>; 1]>>,
}

impl Patterns {
    /// Interns a state.
    pub(super) fn intern(&mut self, mut state: BufferState) -> InternedState {
        let (readers, mut extra_readers) = state.keep_last_readers();
        let writers = state.cells.entries().map(|(_, cell)| cell.writer);
        let pending = state.pending.iter().flat_map(|pending| pending.writers.iter().copied());
        let mut keys: SmallVec<[Key; 8]> = writers.chain(pending).map(|id| (id, 0)).collect();
        keys.extend_from_slice(&readers);
        keys.sort_unstable();
        keys.dedup();
        // Symbols have the order of the commands that they stand for, so that comparing symbols compares
        // commands.
        let symbol = |key| keys.binary_search(&key).expect("every command has a symbol") as u64 + 1;
        state.rename_writers(|id| CommandId(symbol((id, 0))));
        for ((_, reader), key) in state.readers.iter_mut().zip(&readers) {
            *reader = CommandId(symbol(*key));
        }
        for (number, _) in &mut extra_readers {
            *number = symbol(readers[*number as usize - 1]) as u32;
        }
        extra_readers.sort_unstable();
        let pending = state.pending.as_mut();
        let reduction = pending.map_or(TaskId::EPOCH, |p| std::mem::replace(&mut p.reduction, TaskId::EPOCH));
        let pattern = self.pattern(state, keys.len());
        InternedState { pattern, ids: keys.iter().map(|(id, _)| *id).collect(), extra_readers, reduction }
    }

    fn pattern(&mut self, state: BufferState, symbols: usize) -> Arc<Pattern> {
        let mut cells: Vec<_> = state.cells.entries().map(|(range, cell)| (range, *cell)).collect();
        cells.sort_unstable_by_key(|(range, _)| range.min());
        let structure = Structure::new(&cells, &state);
        let mut hasher = FxHasher::default();
        structure.hash(&mut hasher);
        let same = self.by_hash.entry(hasher.finish()).or_default();
        let known = same.iter().find(|pattern| Structure::new(&pattern.cells, &pattern.state) == structure);
        if let Some(pattern) = known {
            return pattern.clone();
        }
        let pattern = Arc::new(Pattern { cells, state, symbols });
        same.push(pattern.clone());
        pattern
    }
}
