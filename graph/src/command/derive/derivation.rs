//! The steps of a derivation, and the execution of pieces.

use crate::{
    command::{
        buffer::{BufferState, Location},
        launch::Work,
        shape::Shape,
        slots::Operands,
        source::Source,
        types::{Command, CommandId, CommandKind, Context},
    },
    task::BufferId,
};
use anabranch_grid::Chunk;
use std::sync::Arc;

/// One launch on one node, while its commands are derived.
pub(in crate::command) struct Derivation<'a> {
    pub(super) context: Context,
    pub(super) shape: &'a Shape,
    operands: Operands<'a>,
    /// The commands so far. Their dependencies are not finished.
    pub(super) out: &'a mut Vec<Command>,
}

impl<'a> Derivation<'a> {
    /// Prepares the derivation of a launch. The states of `operands` are live, and `out` is empty.
    pub(in crate::command) fn new(
        context: Context,
        shape: &'a Shape,
        operands: Operands<'a>,
        out: &'a mut Vec<Command>,
    ) -> Self {
        Self { context, shape, operands, out }
    }

    /// Generates all commands of the task, without effects and without finishing their dependencies.
    pub(in crate::command) fn run(mut self, work: &Work) {
        for operand in 0..self.shape.buffers.len() {
            self.resolve_reduction(operand);
            if !self.exchange(operand) {
                self.push(operand);
                self.await_push(operand);
            }
        }
        match work.snapshot() {
            Some(kind) => self.access(0, kind),
            None => {
                self.overwrite();
                let first = self.out.len();
                self.execute();
                self.begin_reductions(first);
            }
        }
    }

    /// Marks the region that the task writes as overwritten, and as stale outside this node's chunk.
    fn overwrite(&mut self) {
        let shape = self.shape;
        for access in shape.accesses.iter().filter(|access| access.mode.writes()) {
            let nodes = self.context.rank.nodes;
            let state = self.state(access.operand);
            state.note_overwrite(&access.whole);
            if Source::is_of_use(nodes) {
                state.source = access.source(&shape.split, &state.whole()).map(Arc::new);
            }
            if access.mine() != &access.whole {
                state.invalidate(&access.whole);
            }
        }
    }

    /// Executes the pieces of this node's chunk, a command each.
    fn execute(&mut self) {
        let split = &self.shape.split;
        for chunk in self.shape.own.clone() {
            for at in 0..split.pieces(chunk) {
                let leaves = split.leaves_of_piece(chunk, at);
                let chunk = Chunk { range: split.piece(chunk, at), global: split.space() };
                self.access(at, CommandKind::Execute { chunk, leaves });
            }
        }
    }

    /// Adds a command with the accesses of piece number `at` of this node's chunk.
    fn access(&mut self, at: usize, kind: CommandKind) {
        let mut command = self.command(kind);
        let (shape, applied) = (self.shape, self.context.applied);
        for access in &shape.accesses {
            let (region, state) = (access.piece(at), self.state(access.operand));
            if access.mode.reads() {
                state.add_read_edges(region, &mut command);
            }
            if access.mode.writes() {
                state.add_write_edges(region, &mut command);
            }
        }
        for access in &shape.accesses {
            let (region, state) = (access.piece(at), self.state(access.operand));
            if access.mode.writes() {
                state.note_write(region, command.id, applied, Location::Owned);
            } else {
                state.note_read(region, command.id, applied);
            }
        }
        self.out.push(command);
    }

    /// The state of an operand.
    pub(super) fn state(&mut self, operand: usize) -> &mut BufferState {
        self.operands.live(operand)
    }

    pub(super) fn buffer(&self, operand: usize) -> BufferId {
        self.shape.buffers[operand]
    }

    /// The next command, without edges.
    pub(super) fn command(&self, kind: CommandKind) -> Command {
        let id = CommandId(self.context.first + self.out.len() as u64);
        Command::new(id, self.context.task, kind)
    }
}
