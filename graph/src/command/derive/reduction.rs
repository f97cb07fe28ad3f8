//! Reductions: a task computes partial results, and the first later task that reads the buffer makes every
//! node that reads it combine them.

use super::derivation::Derivation;
use crate::{
    command::{
        buffer::{Location, PendingReduction},
        types::{CommandId, CommandKind, NodeId},
    },
    task::Kind,
};
use smallvec::SmallVec;

impl Derivation<'_> {
    /// Makes the buffers that the task reduces to pending. `first` is the position in `out` of its first
    /// execution.
    pub(super) fn begin_reductions(&mut self, first: usize) {
        let split = &self.shape.split;
        for &operand in &self.shape.reductions {
            let pending = PendingReduction {
                reduction: self.context.task,
                region: self.state(operand).whole().into(),
                leaves: split.leaves,
                mine: split.leaves_of(self.shape.own.clone()),
                writers: self.out[first..].iter().map(|command| command.id).collect(),
            };
            let state = self.state(operand);
            state.note_overwrite(&pending.region);
            state.invalidate(&pending.region);
            state.pending = Some(Box::new(pending));
        }
    }

    /// Resolves a pending reduction if any node reads a part of it: every node that does gets the partial
    /// results and combines them for itself. The first of these nodes becomes the owner.
    pub(super) fn resolve_reduction(&mut self, operand: usize) {
        let (shape, rank, applied) = (self.shape, self.context.rank, self.context.applied);
        let Some(pending) = self.state(operand).pending.take() else { return };
        let is_mine = shape.read_by_me(operand).intersects(&pending.region);
        let [precedes, follows] = shape.readers_around(rank, operand, &pending.region);
        if !(is_mine || precedes || follows) {
            self.state(operand).pending = Some(pending);
            return;
        }
        let takes_part = !pending.mine.is_empty();
        let is_owner = is_mine && !precedes;
        let mut others = SmallVec::<[NodeId; 4]>::new();
        if takes_part || is_mine {
            let parts = shape.other_readers(rank, operand, &pending.region);
            others.extend(parts.into_iter().map(|(node, _)| node));
        }
        let everywhere = is_mine && others.len() + 1 == usize::from(rank.nodes);
        if takes_part && !others.is_empty() {
            self.push_partials(operand, &pending, &others, everywhere);
        }
        if is_mine {
            let by = self.reduce(operand, &pending, everywhere);
            let location = if is_owner { Location::Owned } else { Location::Copied };
            let state = self.state(operand);
            state.note_write(&pending.region, by, applied, location);
            if is_owner {
                let mut parts = others.iter().map(|&node| (node, pending.region.clone())).collect();
                state.note_sent(&mut parts);
            }
        }
    }

    fn push_partials(
        &mut self,
        operand: usize,
        pending: &PendingReduction,
        targets: &[NodeId],
        everywhere: bool,
    ) {
        let mut push = self.command(CommandKind::PushPartials {
            buffer: self.buffer(operand),
            region: pending.region.clone(),
            reduction: pending.reduction,
            leaves: pending.mine.clone(),
            targets: targets.into(),
            everywhere,
        });
        pending.writers.iter().for_each(|&writer| push.after(writer, Kind::True));
        self.out.push(push);
    }

    /// Waits for the partial results of other nodes and combines all of them. Returns the command that writes
    /// the result.
    fn reduce(&mut self, operand: usize, pending: &PendingReduction, everywhere: bool) -> CommandId {
        let (buffer, region, reduction) = (self.buffer(operand), pending.region.clone(), pending.reduction);
        let mut arrival = None;
        if pending.mine != (0..pending.leaves) {
            let await_partials = self.command(CommandKind::AwaitPartials {
                buffer,
                region: region.clone(),
                reduction,
                present: pending.mine.clone(),
                leaves: pending.leaves,
                everywhere,
            });
            arrival = Some(await_partials.id);
            self.out.push(await_partials);
        }
        let leaves = pending.leaves;
        let mut reduce = self.command(CommandKind::Reduce { buffer, region, reduction, leaves });
        pending.writers.iter().copied().chain(arrival).for_each(|writer| reduce.after(writer, Kind::True));
        self.state(operand).add_write_edges(&pending.region, &mut reduce);
        let id = reduce.id;
        self.out.push(reduce);
        id
    }
}
