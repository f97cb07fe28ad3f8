//! Launches that repeat are derived once and then replayed.
//!
//! What a launch generates depends on its shape (equal mappers, hints, index space and buffers) and on the structure of
//! its buffers' states, not on which commands those name. So a launch whose shape was seen before is derived in terms of
//! [symbols](super::layout): the result is a [`Transition`] from layouts to layouts, with commands that depend on symbols.
//! Whenever the same shape meets the same layouts again, the transition is applied with the commands that the symbols stand
//! for by then.

use super::{
    derive::Derivation,
    error::CommandError,
    hash::Rolling,
    launch::{BufferAccess, Hints, Launch, Reduction, Work},
    layout::{Fellows, Layout, Layouts, Parted},
    shape::Shape,
    types::{Command, CommandDependency, CommandId, CommandKind, NodeId},
};
use crate::task::{BufferId, TaskId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::{collections::hash_map::Entry, sync::Arc};

/// What a launch does to states of certain layouts. Symbols are those of the first buffer, of the next and so on, and
/// then the commands that it generates.
struct Transition {
    before: SmallVec<[Arc<Layout>; 2]>,
    commands: Vec<Command>,
    after: SmallVec<[After; 2]>,
}

/// A layout, and which of a transition's symbols its symbols are: first the last command that each stands for, then fellows.
struct After {
    layout: Arc<Layout>,
    ids: SmallVec<[u32; 8]>,
    fellows: Fellows,
}

/// A launch that was seen more than once.
struct Repeated {
    work: Work,
    hints: Hints,
    accesses: Vec<BufferAccess>,
    reductions: Vec<Reduction>,
    shape: Shape,
    digest: u64,
    transitions: Vec<Transition>,
    /// How often no transition was found since one was.
    misses: usize,
}

impl Repeated {
    fn new(launch: &Launch, shape: Shape) -> Self {
        Self {
            work: launch.work,
            hints: launch.hints,
            accesses: launch.accesses.to_vec(),
            reductions: launch.reductions.to_vec(),
            digest: digest(launch, &shape),
            shape,
            transitions: Vec::new(),
            misses: 0,
        }
    }

    fn is(&self, launch: &Launch) -> bool {
        let same_access = |(a, b): (&BufferAccess, &BufferAccess)| {
            a.buffer == b.buffer && a.mode == b.mode && Arc::ptr_eq(&a.mapper, &b.mapper)
        };
        self.work == launch.work
            && self.hints == launch.hints
            && self.accesses.len() == launch.accesses.len()
            && self.accesses.iter().zip(launch.accesses).all(same_access)
            && self.reductions == launch.reductions
    }
}

/// How many launches are noted as seen once.
const NOTED: usize = 256;

/// How much may be recorded: commands, targets, cells and so on, of some 100 bytes each. When there is more, all is forgotten.
const RECORDED: usize = 1 << 16;

/// How often a launch is recorded in vain before it is only tried now and then.
const PATIENCE: usize = 16;

/// The launches and states that were seen.
#[derive(Default)]
pub(super) struct Replay {
    /// Hashes of recent launches, at positions that they say.
    seen: Vec<u64>,
    repeated: FxHashMap<u64, Repeated>,
    pub(super) layouts: Layouts,
    recorded: usize,
    /// How many launches were recognised but none of them replayed, since one was.
    in_vain: usize,
}

impl Replay {
    /// The key of a launch that was seen before. The first time is only noted, as most programs have launches that do
    /// not repeat.
    pub(super) fn recognise(&mut self, launch: &Launch) -> Option<u64> {
        let key = hash(launch);
        if self.seen.is_empty() {
            self.seen = vec![0; NOTED];
        }
        let seen = std::mem::replace(&mut self.seen[key as usize % NOTED], key);
        let known = self.repeated.contains_key(&key);
        if known || seen != key {
            return known.then_some(key);
        }
        // A new mapper may lie where a forgotten one did, again and again.
        self.in_vain += 1;
        (self.in_vain <= PATIENCE || self.in_vain.is_multiple_of(PATIENCE)).then_some(key)
    }

    /// What a launch of this key asks of the buffers: the shape and its digest; `None` if another launch has the same key,
    /// or its states were different every time.
    pub(super) fn shape(
        &mut self,
        key: u64,
        launch: &Launch,
        evaluate: impl FnOnce() -> Result<Shape, CommandError>,
    ) -> Result<Option<(&Shape, u64)>, CommandError> {
        if self.recorded > RECORDED {
            self.repeated.clear();
            (self.layouts, self.recorded) = (Layouts::default(), 0);
        }
        let repeated = match self.repeated.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Repeated::new(launch, evaluate()?)),
        };
        if !repeated.is(launch) {
            return Ok(None);
        }
        if repeated.misses > PATIENCE {
            repeated.misses += 1;
            if !repeated.misses.is_multiple_of(PATIENCE) {
                return Ok(None);
            }
        }
        Ok(Some((&repeated.shape, repeated.digest)))
    }

    /// Applies the launch of this key to the states of its buffers, and appends its commands to `out`, their dependencies
    /// yet to be settled. The first is number `first`.
    pub(super) fn apply(
        &mut self,
        key: u64,
        place: (NodeId, u16),
        task: TaskId,
        (states, slots): (&mut [Option<Parted>], &[usize]),
        first: u64,
        out: &mut Vec<Command>,
    ) -> Result<(), CommandError> {
        let repeated = self.repeated.get_mut(&key).expect("a launch that was recognised");
        let same = |transition: &Transition| {
            let layouts = slots.iter().map(|&slot| &part(states, slot).layout);
            transition.before.iter().zip(layouts).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        let at = match repeated.transitions.iter().position(same) {
            Some(at) => {
                (repeated.misses, self.in_vain) = (0, 0);
                at
            }
            None => {
                repeated.misses += 1;
                let transition =
                    record(&repeated.shape, repeated.work, place, task, (states, slots), &mut self.layouts)?;
                self.recorded += transition.size();
                repeated.transitions.push(transition);
                repeated.transitions.len() - 1
            }
        };
        repeated.transitions[at].apply(&repeated.shape, task, (states, slots), first, out);
        Ok(())
    }
}

/// Derives a launch in terms of symbols.
fn record(
    shape: &Shape,
    work: Work,
    (me, nodes): (NodeId, u16),
    task: TaskId,
    (parted, slots): (&[Option<Parted>], &[usize]),
    layouts: &mut Layouts,
) -> Result<Transition, CommandError> {
    let mut symbols = 0;
    let mut states: SmallVec<[_; 4]> = SmallVec::new();
    for &slot in slots {
        let part = part(parted, slot);
        states.push(Some(part.layout.state.renamed(|symbol| CommandId(symbol.0 + symbols))));
        symbols += part.layout.symbols as u64;
    }
    shape.check_written(task, |slot| states[slot].as_ref().expect("a state for each buffer"))?;
    let mut commands = Vec::new();
    let places: SmallVec<[usize; 4]> = (0..slots.len()).collect();
    Derivation {
        me,
        nodes,
        task: TaskId::EPOCH,
        shape,
        states: &mut states,
        slots: &places,
        applied: CommandId::EPOCH,
        first: symbols + 1,
        out: &mut commands,
    }
    .launch(&work);
    let after = states.into_iter().map(|state| {
        let Parted { layout, ids, fellows, .. } = layouts.part(state.expect("a state for each buffer"));
        After { layout, ids: ids.iter().map(|id| id.0 as u32).collect(), fellows }
    });
    let after = after.collect();
    let before = slots.iter().map(|&slot| part(parted, slot).layout.clone()).collect();
    Ok(Transition { before, commands, after })
}

impl Transition {
    /// How much there is to keep.
    fn size(&self) -> usize {
        let targets = |command: &Command| match &command.kind {
            CommandKind::Push { targets, .. } => 1 + targets.len(),
            CommandKind::PushPartials { targets, .. } => 1 + targets.len(),
            _ => 1,
        };
        let layouts = self.after.iter().map(|after| after.layout.size());
        10 + self.commands.iter().map(targets).chain(layouts).sum::<usize>()
    }

    fn apply(
        &self,
        shape: &Shape,
        task: TaskId,
        (states, slots): (&mut [Option<Parted>], &[usize]),
        first: u64,
        out: &mut Vec<Command>,
    ) {
        let mut ids: SmallVec<[CommandId; 24]> = SmallVec::new();
        let mut fellows: SmallVec<[(u32, CommandId); 16]> = SmallVec::new();
        for &slot in slots {
            let part = part(states, slot);
            let before = ids.len() as u32;
            if !part.fellows.is_empty() {
                fellows.extend(part.fellows.iter().map(|&(symbol, command)| (before + symbol, command)));
            }
            ids.extend_from_slice(&part.ids);
        }
        let named = Named { ids: &ids, fellows: &fellows, first };
        out.extend(self.commands.iter().map(|command| Command {
            id: named.last(command.id.0 as u32),
            task,
            kind: command.kind.clone(),
            dependencies: named.dependencies(&command.dependencies),
            conflicts: SmallVec::new(),
        }));
        for command in &mut out[..] {
            if let Some((buffer, reduction)) = command.kind.reduction_mut() {
                let slot = shape.buffers.iter().position(|&other| other == buffer);
                *reduction = part(states, slots[slot.expect("a buffer of the launch")]).reduction;
            }
        }
        for (at, (&slot, after)) in slots.iter().zip(&self.after).enumerate() {
            let part = states[slot].as_mut().expect("a state in two parts");
            if !Arc::ptr_eq(&part.layout, &after.layout) {
                part.layout = after.layout.clone();
            }
            part.ids.clear();
            part.ids.extend(after.ids.iter().map(|&symbol| named.last(symbol)));
            part.fellows.clear();
            if !fellows.is_empty() || !after.fellows.is_empty() {
                named.fellows(after, &mut part.fellows);
            }
            if shape.reductions.contains(&at) {
                part.reduction = task;
            }
        }
    }
}

/// The commands that a transition's symbols stand for.
struct Named<'a> {
    ids: &'a [CommandId],
    fellows: &'a [(u32, CommandId)],
    /// The first new command.
    first: u64,
}

impl Named<'_> {
    /// The last command that the symbol stands for.
    #[inline]
    fn last(&self, symbol: u32) -> CommandId {
        match self.ids.get(symbol as usize - 1) {
            Some(&id) => id,
            None => CommandId(self.first + u64::from(symbol) - 1 - self.ids.len() as u64),
        }
    }

    /// The others that it stands for.
    fn others(&self, symbol: u32) -> impl Iterator<Item = CommandId> {
        let from = self.fellows.partition_point(|(of, _)| *of < symbol);
        self.fellows[from..].iter().take_while(move |(of, _)| *of == symbol).map(|(_, command)| *command)
    }

    #[inline]
    fn dependencies(&self, of: &[CommandDependency]) -> SmallVec<[CommandDependency; 4]> {
        let last = |d: &CommandDependency| CommandDependency { on: self.last(d.on.0 as u32), ..*d };
        let mut found = of.iter().map(last).collect();
        if !self.fellows.is_empty() {
            self.add_others(of, &mut found);
        }
        found
    }

    #[inline(never)]
    fn add_others(&self, of: &[CommandDependency], to: &mut SmallVec<[CommandDependency; 4]>) {
        for dependency in of {
            let others = self.others(dependency.on.0 as u32);
            to.extend(others.map(|on| CommandDependency { on, ..*dependency }));
        }
    }

    /// The fellows in a state after the transition, by ascending symbol.
    #[inline(never)]
    fn fellows(&self, after: &After, into: &mut Fellows) {
        let mut more = after.fellows.iter().peekable();
        for (symbol, &before) in (1..).zip(&after.ids) {
            into.extend(self.others(before).map(|command| (symbol, command)));
            while let Some((_, before)) = more.next_if(|(of, _)| *of == symbol) {
                let before = before.0 as u32;
                into.extend(self.others(before).chain([self.last(before)]).map(|command| (symbol, command)));
            }
        }
    }
}

fn part(states: &[Option<Parted>], slot: usize) -> &Parted {
    states[slot].as_ref().expect("a state in two parts")
}

impl CommandKind {
    /// The buffer that is reduced to, and the task that does so.
    fn reduction_mut(&mut self) -> Option<(BufferId, &mut TaskId)> {
        match self {
            Self::PushPartials { buffer, reduction, .. }
            | Self::AwaitPartials { buffer, reduction, .. }
            | Self::Reduce { buffer, reduction, .. } => Some((*buffer, reduction)),
            _ => None,
        }
    }
}

/// A number for everything that makes a launch repeat another.
fn hash(launch: &Launch) -> u64 {
    let mut hash = Rolling::default();
    let space = match launch.work {
        Work::Kernel { space } | Work::HostChunks { space } => Some(space),
        _ => None,
    };
    hash.add(launch.work.code() << 1 | u64::from(space.is_some()));
    if let Some(space) = space {
        hash.add_box(&space);
    }
    for BufferAccess { buffer, mode, mapper } in launch.accesses {
        hash.add_all([buffer.0 << 2 | *mode as u64, Arc::as_ptr(mapper) as *const () as u64]);
    }
    launch.reductions.iter().for_each(|reduction| hash.add(reduction.buffer.0));
    // Zero says that nothing was seen yet.
    hash.value().max(1)
}

/// A hash of the launch, without its number and effects, that is the same on every node.
pub(super) fn digest(launch: &Launch, shape: &Shape) -> u64 {
    let mut hash = Rolling::default();
    hash.add(launch.work.code());
    hash.add_box(&shape.split.space());
    let Hints { tiling, granularity: [rows, columns], chunks_per_node, node, leaves } = launch.hints;
    let node = node.map_or(usize::MAX, |node| node.0.into());
    hash.add_all([tiling as usize, rows, columns, chunks_per_node, leaves, node].map(|word| word as u64));
    for access in &shape.accesses {
        hash.add(shape.buffers[access.slot].0 << 2 | access.mode as u64);
        hash.add_region(&access.whole);
    }
    for reduction in launch.reductions {
        hash.add(reduction.buffer.0 << 1 | u64::from(reduction.include_current));
    }
    hash.value()
}
