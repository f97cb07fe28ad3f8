//! From a launch to commands: transfers first, then the execution, then who owns what.

use super::{
    buffer::{BufferState, Pending, Place},
    launch::Work,
    shape::Shape,
    types::{Command, CommandId, CommandKind, NodeId, Target},
};
use crate::task::{BufferId, Kind, TaskId};
use anabranch_grid::{Chunk, Region};
use smallvec::SmallVec;
use std::mem::take;

/// One launch on one node.
pub(super) struct Derivation<'a> {
    pub(super) me: NodeId,
    pub(super) nodes: u16,
    pub(super) task: TaskId,
    pub(super) shape: &'a Shape,
    /// All buffers, and which of them are those of the shape.
    pub(super) states: &'a mut [Option<BufferState>],
    pub(super) slots: &'a [usize],
    /// The horizon that stands for all commands before it.
    pub(super) applied: CommandId,
    /// The number of the first command.
    pub(super) first: u64,
    /// What is generated. Dependencies are yet to be settled.
    pub(super) out: &'a mut Vec<Command>,
}

impl Derivation<'_> {
    /// Generates all commands of the task.
    pub(super) fn launch(&mut self, work: &Work) {
        match CommandKind::snapshot(work) {
            Some(kind) => {
                self.transfers();
                self.access(0, kind);
            }
            None => self.chunks(),
        }
    }

    fn chunks(&mut self) {
        self.transfers();
        self.overwrite();
        let first = self.out.len();
        for (at, chunk) in self.shape.own.clone().enumerate() {
            let split = &self.shape.split;
            let range = split.range(chunk..chunk + 1);
            let leaves = split.leaves_of(chunk..chunk + 1);
            let kind = CommandKind::Execute { chunk: Chunk { range, global: split.space() }, leaves };
            self.access(at, kind);
        }
        self.begin_reductions(first);
    }

    fn state(&mut self, slot: usize) -> &mut BufferState {
        self.states[self.slots[slot]].as_mut().expect("a buffer of this graph")
    }

    fn buffer(&self, slot: usize) -> BufferId {
        self.shape.buffers[slot]
    }

    /// A command that comes next.
    fn command(&self, kind: CommandKind) -> Command {
        Command::new(CommandId(self.first + self.out.len() as u64), self.task, kind)
    }

    fn transfers(&mut self) {
        for slot in 0..self.shape.buffers.len() {
            if self.state(slot).pending.is_some() {
                self.resolve_reduction(slot);
            }
            if self.nodes > 1 && self.shape.reads(slot).next().is_some() {
                self.push(slot);
                self.await_push(slot);
            }
        }
    }

    /// Sends to others what they need and only this node has.
    fn push(&mut self, slot: usize) {
        let shape = self.shape;
        let mut owned = Region::empty();
        for access in shape.reads(slot) {
            owned = owned.union(&self.state(slot).owned(&access.whole));
        }
        if owned.is_empty() {
            return;
        }
        let mut parts = shape.other_readers(self.me, self.nodes, slot, &owned);
        self.state(slot).send(&mut parts);
        if parts.is_empty() {
            return;
        }
        let sent = match parts.as_slice() {
            [(_, only)] => only.clone(),
            several => {
                let mut different: SmallVec<[&Region<3>; 8]> = several.iter().map(|(_, part)| part).collect();
                different.dedup();
                Region::from_boxes(different.iter().flat_map(|part| part.boxes()).copied())
            }
        };
        let target = |(node, region): &mut (NodeId, Region<3>)| Target { node: *node, region: take(region) };
        let targets = parts.iter_mut().map(target).collect();
        let mut push = self.command(CommandKind::Push { buffer: self.buffer(slot), targets });
        let applied = self.applied;
        let state = self.state(slot);
        state.before_read(&sent, &mut push);
        state.read(&sent, push.id, applied);
        self.out.push(push);
    }

    /// Waits for what this node needs and does not have.
    fn await_push(&mut self, slot: usize) {
        let shape = self.shape;
        let mut missing = Region::empty();
        for access in shape.reads(slot) {
            missing = missing.union(&self.state(slot).missing(access.mine()));
        }
        if missing.is_empty() {
            return;
        }
        let kind = CommandKind::AwaitPush { buffer: self.buffer(slot), region: missing.clone() };
        let mut arrival = self.command(kind);
        let applied = self.applied;
        let state = self.state(slot);
        state.before_write(&missing, &mut arrival);
        state.write(&missing, arrival.id, applied, Place::Copied);
        self.out.push(arrival);
    }

    /// The command that accesses what this node's chunk `at` does.
    fn access(&mut self, at: usize, kind: CommandKind) {
        let mut command = self.command(kind);
        let shape = self.shape;
        for access in &shape.accesses {
            let (region, state) = (access.chunk(at), self.state(access.slot));
            if access.mode.reads() {
                state.before_read(region, &mut command);
            }
            if access.mode.writes() {
                state.before_write(region, &mut command);
            }
        }
        let applied = self.applied;
        for access in &shape.accesses {
            let (region, state) = (access.chunk(at), self.state(access.slot));
            if access.mode.writes() {
                state.write(region, command.id, applied, Place::Owned);
            } else {
                state.read(region, command.id, applied);
            }
        }
        self.out.push(command);
    }

    /// What the task writes is current nowhere until its chunks have written it.
    fn overwrite(&mut self) {
        let shape = self.shape;
        for access in shape.accesses.iter().filter(|access| access.mode.writes()) {
            let state = self.state(access.slot);
            state.overwritten(&access.whole);
            if access.mine() != &access.whole {
                state.lose(&access.whole);
            }
        }
    }

    /// The buffers that are reduced to become pending. `first`: where in `out` the executions begin.
    fn begin_reductions(&mut self, first: usize) {
        let split = &self.shape.split;
        for &slot in &self.shape.reductions {
            let pending = Pending {
                reduction: self.task,
                region: self.state(slot).whole().into(),
                leaves: split.leaves,
                mine: split.leaves_of(self.shape.own.clone()),
                writers: self.out[first..].iter().map(|command| command.id).collect(),
            };
            let state = self.state(slot);
            state.overwritten(&pending.region);
            state.lose(&pending.region);
            state.pending = Some(Box::new(pending));
        }
    }

    /// Where a part of a pending buffer is read: every node that reads it gets the partial results and combines them
    /// for itself; the first of them becomes the owner.
    fn resolve_reduction(&mut self, slot: usize) {
        let (shape, me, nodes) = (self.shape, self.me, self.nodes);
        let Some(pending) = self.state(slot).pending.take() else { return };
        let mine = shape.read_by_me(slot).intersects(&pending.region);
        let [precedes, follows] = shape.readers_around(me, nodes, slot, &pending.region);
        if !(mine || precedes || follows) {
            self.state(slot).pending = Some(pending);
            return;
        }
        let takes_part = !pending.mine.is_empty();
        let owner = mine && !precedes;
        let mut others = SmallVec::<[NodeId; 4]>::new();
        if takes_part || owner {
            let parts = shape.other_readers(me, nodes, slot, &pending.region);
            others.extend(parts.into_iter().map(|(node, _)| node));
        }
        if takes_part && !others.is_empty() {
            self.push_partials(slot, &pending, &others);
        }
        if mine {
            let by = self.reduce(slot, &pending);
            let place = if owner { Place::Owned } else { Place::Copied };
            let applied = self.applied;
            let state = self.state(slot);
            state.write(&pending.region, by, applied, place);
            if owner {
                let mut parts = others.iter().map(|&node| (node, pending.region.clone())).collect();
                state.send(&mut parts);
            }
        }
    }

    fn push_partials(&mut self, slot: usize, pending: &Pending, targets: &[NodeId]) {
        let mut push = self.command(CommandKind::PushPartials {
            buffer: self.buffer(slot),
            region: pending.region.clone(),
            reduction: pending.reduction,
            leaves: pending.mine.clone(),
            targets: targets.into(),
        });
        pending.writers.iter().for_each(|&writer| push.after(writer, Kind::True));
        self.out.push(push);
    }

    /// Waits for the partial results of others, and combines all of them.
    fn reduce(&mut self, slot: usize, pending: &Pending) -> CommandId {
        let (buffer, region, reduction) = (self.buffer(slot), pending.region.clone(), pending.reduction);
        let mut arrival = None;
        if pending.mine != (0..pending.leaves) {
            let await_partials = self.command(CommandKind::AwaitPartials {
                buffer,
                region: region.clone(),
                reduction,
                present: pending.mine.clone(),
                leaves: pending.leaves,
            });
            arrival = Some(await_partials.id);
            self.out.push(await_partials);
        }
        let leaves = pending.leaves;
        let mut reduce = self.command(CommandKind::Reduce { buffer, region, reduction, leaves });
        pending.writers.iter().copied().chain(arrival).for_each(|writer| reduce.after(writer, Kind::True));
        self.state(slot).before_write(&pending.region, &mut reduce);
        let id = reduce.id;
        self.out.push(reduce);
        id
    }
}
