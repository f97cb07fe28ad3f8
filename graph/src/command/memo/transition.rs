//! Transitions: the effect of a launch on states of certain patterns.

use super::symbols::Bindings;
use crate::{
    command::{
        derive::Derivation,
        error::CommandError,
        interned::{ExtraReaders, InternedState, Pattern, Patterns},
        launch::Work,
        shape::Shape,
        slots::{Operands, Slot},
        types::{Command, CommandId, CommandKind, Context},
    },
    task::{BufferId, TaskId},
};
use smallvec::SmallVec;
use std::sync::Arc;

/// The effect of a launch on states of certain patterns.
///
/// The symbols of a transition are those of the first operand's pattern, then those of the next and so on,
/// and then the commands that the launch generates.
pub(super) struct Transition {
    before: SmallVec<[Arc<Pattern>; 2]>,
    commands: Vec<Command>,
    after: SmallVec<[After; 2]>,
}

/// The pattern of an operand after a transition, and the transition's symbols that its own symbols stand for.
struct After {
    pattern: Arc<Pattern>,
    ids: SmallVec<[u32; 8]>,
    extra_readers: ExtraReaders,
}

impl Transition {
    /// Derives a launch in terms of symbols. The states of the operands are interned.
    pub(super) fn derive(
        work: &Work,
        shape: &Shape,
        context: &Context,
        operands: &Operands<'_>,
        patterns: &mut Patterns,
    ) -> Result<Self, CommandError> {
        let mut symbols = 0;
        let mut states: SmallVec<[Slot; 4]> = SmallVec::new();
        let mut before = SmallVec::new();
        for operand in 0..operands.len() {
            let pattern = &operands.interned(operand).pattern;
            let state = pattern.state().renamed(|symbol| CommandId(symbol.0 + symbols));
            states.push(Slot::Live(state));
            symbols += pattern.symbols() as u64;
            before.push(pattern.clone());
        }
        shape.check_written(context.task, |operand| operands.interned(operand).pattern.state())?;
        let positions: SmallVec<[usize; 4]> = (0..states.len()).collect();
        let symbolic = Context {
            task: TaskId::EPOCH,
            applied: CommandId::EPOCH,
            first: symbols + 1,
            rank: context.rank,
        };
        let mut commands = Vec::new();
        Derivation::new(symbolic, shape, Operands::new(&mut states, &positions), &mut commands).run(work);
        let after = states.into_iter().map(|state| {
            let Slot::Live(state) = state else { panic!("a derivation leaves states live") };
            let InternedState { pattern, ids, extra_readers, .. } = patterns.intern(state);
            After { pattern, ids: ids.iter().map(|id| id.0 as u32).collect(), extra_readers }
        });
        Ok(Self { before, commands, after: after.collect() })
    }

    /// Whether the operands have the patterns that the transition starts from.
    pub(super) fn starts_from(&self, operands: &Operands<'_>) -> bool {
        let patterns = (0..operands.len()).map(|operand| &operands.interned(operand).pattern);
        self.before.iter().zip(patterns).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// A measure of the memory that the transition takes.
    pub(super) fn size(&self) -> usize {
        let targets = |command: &Command| match &command.kind {
            CommandKind::Push { targets, exchange, .. } => {
                1 + targets.len() + exchange.as_ref().map_or(0, |parts| parts.len())
            }
            CommandKind::AwaitPush { exchange: Some(parts), .. } => 1 + parts.len(),
            CommandKind::PushPartials { targets, .. } => 1 + targets.len(),
            _ => 1,
        };
        let patterns = self.after.iter().map(|after| after.pattern.size());
        10 + self.commands.iter().map(targets).chain(patterns).sum::<usize>()
    }

    /// Appends the commands of the launch to `out`, which is empty, and updates the states of the operands.
    /// The dependencies of the commands are not finished.
    pub(super) fn apply(
        &self,
        shape: &Shape,
        context: &Context,
        operands: &mut Operands<'_>,
        out: &mut Vec<Command>,
    ) {
        let mut ids: SmallVec<[CommandId; 24]> = SmallVec::new();
        let mut extra_readers: SmallVec<[(u32, CommandId); 16]> = SmallVec::new();
        for operand in 0..operands.len() {
            let state = operands.interned(operand);
            let before = ids.len() as u32;
            if !state.extra_readers.is_empty() {
                extra_readers
                    .extend(state.extra_readers.iter().map(|&(symbol, command)| (before + symbol, command)));
            }
            ids.extend_from_slice(&state.ids);
        }
        let bindings = Bindings { ids: &ids, extra_readers: &extra_readers, first: context.first };
        out.extend(self.commands.iter().map(|command| Command {
            id: bindings.last(command.id.0 as u32),
            task: context.task,
            kind: command.kind.clone(),
            dependencies: bindings.dependencies(&command.dependencies),
            conflicts: SmallVec::new(),
        }));
        for command in &mut out[..] {
            if let Some((buffer, reduction)) = command.kind.reduction_mut() {
                let operand = shape.buffers.iter().position(|&other| other == buffer);
                *reduction = operands.interned(operand.expect("a buffer of the launch")).reduction;
            }
        }
        for (operand, after) in self.after.iter().enumerate() {
            let state = operands.interned_mut(operand);
            after.apply(&bindings, state);
            if shape.reductions.contains(&operand) {
                state.reduction = context.task;
            }
        }
    }
}

impl After {
    /// Makes `state` the state after the transition.
    #[inline]
    fn apply(&self, bindings: &Bindings<'_>, state: &mut InternedState) {
        if !Arc::ptr_eq(&state.pattern, &self.pattern) {
            state.pattern = self.pattern.clone();
        }
        state.ids.clear();
        state.ids.extend(self.ids.iter().map(|&symbol| bindings.last(symbol)));
        state.extra_readers.clear();
        if !bindings.extra_readers.is_empty() || !self.extra_readers.is_empty() {
            bindings.add_extra_readers(&self.ids, &self.extra_readers, &mut state.extra_readers);
        }
    }
}

impl CommandKind {
    /// The buffer that is reduced to, and the task that computed the partial results.
    fn reduction_mut(&mut self) -> Option<(BufferId, &mut TaskId)> {
        match self {
            Self::PushPartials { buffer, reduction, .. }
            | Self::AwaitPartials { buffer, reduction, .. }
            | Self::Reduce { buffer, reduction, .. } => Some((*buffer, reduction)),
            _ => None,
        }
    }
}
