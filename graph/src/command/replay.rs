//! Launches that repeat are derived once and then replayed.
//!
//! What a launch generates depends on its shape (equal mappers, hints, index space and buffers) and on the structure of
//! its buffers' states, not on which commands those name. So a launch whose shape was seen before is derived in terms of
//! [symbols](super::layout): the result is a [`Transition`] from layouts to layouts, with commands that depend on symbols.
//! Whenever the same shape meets the same layouts again, the transition is applied with the commands that the symbols stand
//! for by then.

use super::{
    derive::Derivation,
    hash::{Map, Rolling},
    launch::{BufferAccess, CommandError, Hints, Launch, Reduction, Work},
    layout::{Layout, Layouts, Parted},
    shape::Shape,
    types::{Command, CommandId, CommandKind, NodeId},
};
use crate::{BufferId, TaskId};
use smallvec::SmallVec;
use std::{collections::hash_map::Entry, sync::Arc};

/// What a launch does to states of certain layouts. Symbols are those of the first buffer, of the next and so on, and
/// then the commands that it generates.
struct Transition {
    before: SmallVec<[Arc<Layout>; 2]>,
    commands: Vec<Command>,
    after: SmallVec<[After; 2]>,
}

/// A layout, and which of a transition's symbols its symbols are.
type After = (Arc<Layout>, SmallVec<[u32; 8]>);

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

/// How many shapes, layouts, or transitions of a shape are kept; when there are more, all are forgotten.
const KEPT: [usize; 3] = [256, 1024, 64];

/// How often a launch is recorded in vain before it is only tried now and then.
const PATIENCE: usize = 32;

/// The launches and states that were seen.
#[derive(Default)]
pub(super) struct Replay {
    /// Hashes of recent launches, at positions that they say.
    seen: Vec<u64>,
    repeated: Map<u64, Repeated>,
    pub(super) layouts: Layouts,
}

impl Replay {
    /// The key of a launch that was seen before. The first time is only noted, as most programs have launches that do
    /// not repeat.
    pub(super) fn recognise(&mut self, launch: &Launch) -> Option<u64> {
        let key = hash(launch);
        if self.seen.is_empty() {
            self.seen = vec![0; KEPT[0]];
        }
        let seen = std::mem::replace(&mut self.seen[key as usize % KEPT[0]], key);
        (seen == key || self.repeated.contains_key(&key)).then_some(key)
    }

    /// What a launch of this key asks of the buffers: the shape and its digest; `None` if another launch has the same key,
    /// or its states were different every time.
    pub(super) fn shape(
        &mut self,
        key: u64,
        launch: &Launch,
        evaluate: impl FnOnce() -> Result<Shape, CommandError>,
    ) -> Result<Option<(&Shape, u64)>, CommandError> {
        if self.repeated.len() > KEPT[0] || self.layouts.len() > KEPT[1] {
            self.repeated.clear();
            self.layouts = Layouts::default();
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
        parts: &mut [Parted],
        first: u64,
        out: &mut Vec<Command>,
    ) -> Result<(), CommandError> {
        let repeated = self.repeated.get_mut(&key).expect("a launch that was recognised");
        let same = |transition: &Transition| {
            transition.before.iter().zip(parts.iter()).all(|(layout, part)| Arc::ptr_eq(layout, &part.layout))
        };
        let at = match repeated.transitions.iter().position(same) {
            Some(at) => {
                repeated.misses = 0;
                at
            }
            None => {
                repeated.misses += 1;
                if repeated.transitions.len() >= KEPT[2] {
                    repeated.transitions.clear();
                }
                let transition =
                    record(&repeated.shape, repeated.work, place, task, parts, &mut self.layouts)?;
                repeated.transitions.push(transition);
                repeated.transitions.len() - 1
            }
        };
        repeated.transitions[at].apply(&repeated.shape, task, parts, first, out);
        Ok(())
    }
}

/// Derives a launch in terms of symbols.
fn record(
    shape: &Shape,
    work: Work,
    (me, nodes): (NodeId, u16),
    task: TaskId,
    parts: &[Parted],
    layouts: &mut Layouts,
) -> Result<Transition, CommandError> {
    let mut symbols = 0;
    let mut states: SmallVec<[_; 4]> = SmallVec::new();
    for part in parts {
        states.push(Some(part.layout.state.renamed(|symbol| CommandId(symbol.0 + symbols))));
        symbols += part.layout.symbols as u64;
    }
    shape.check_written(task, |slot| states[slot].as_ref().expect("a state for each buffer"))?;
    let mut commands = Vec::new();
    let slots: SmallVec<[usize; 4]> = (0..parts.len()).collect();
    Derivation {
        me,
        nodes,
        task: TaskId::EPOCH,
        shape,
        states: &mut states,
        slots: &slots,
        applied: CommandId::EPOCH,
        first: symbols + 1,
        out: &mut commands,
    }
    .launch(&work);
    let after = states.iter().map(|state| {
        let part = layouts.part(state.as_ref().expect("a state for each buffer"));
        (part.layout, part.ids.iter().map(|id| id.0 as u32 - 1).collect())
    });
    let after = after.collect();
    Ok(Transition { before: parts.iter().map(|part| part.layout.clone()).collect(), commands, after })
}

impl Transition {
    fn apply(&self, shape: &Shape, task: TaskId, parts: &mut [Parted], first: u64, out: &mut Vec<Command>) {
        let mut ids: SmallVec<[CommandId; 32]> = SmallVec::new();
        parts.iter().for_each(|part| ids.extend_from_slice(&part.ids));
        ids.extend((0..self.commands.len() as u64).map(|at| CommandId(first + at)));
        let old = ids.len() - self.commands.len();
        for (at, command) in self.commands.iter().enumerate() {
            let mut kind = command.kind.clone();
            if let Some((buffer, reduction)) = kind.reduction_mut() {
                *reduction = pending_in(shape, parts, buffer);
            }
            let mut new = Command::new(ids[old + at], task, kind);
            for dependency in &command.dependencies {
                new.after(ids[dependency.on.0 as usize - 1], dependency.kind);
            }
            out.push(new);
        }
        for (slot, (part, (layout, symbols))) in parts.iter_mut().zip(&self.after).enumerate() {
            part.layout = layout.clone();
            part.ids = symbols.iter().map(|&symbol| ids[symbol as usize]).collect();
            if shape.reductions.contains(&slot) {
                part.reduction = task;
            }
        }
    }
}

fn pending_in(shape: &Shape, parts: &[Parted], buffer: BufferId) -> TaskId {
    let slot = shape.buffers.iter().position(|&other| other == buffer);
    parts[slot.expect("a buffer of the launch")].reduction
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
        space.max().0.into_iter().for_each(|at| hash.add(at as u64));
    }
    for access in launch.accesses {
        hash.add(access.buffer.0 << 2 | access.mode as u64);
        hash.add(Arc::as_ptr(&access.mapper) as *const () as u64);
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
    let hints = &launch.hints;
    let node = hints.node.map_or(u64::MAX, |node| node.0.into());
    [hints.tiling as usize, hints.granularity[0], hints.granularity[1], hints.chunks_per_node, hints.leaves]
        .into_iter()
        .for_each(|word| hash.add(word as u64));
    hash.add(node);
    for access in &shape.accesses {
        hash.add(shape.buffers[access.slot].0);
        hash.add(access.mode as u64);
        hash.add_region(&access.whole);
    }
    for reduction in launch.reductions {
        hash.add(reduction.buffer.0 << 1 | u64::from(reduction.include_current));
    }
    hash.value()
}
