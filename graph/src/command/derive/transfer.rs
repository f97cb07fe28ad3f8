//! Transfers: what this node pushes to other nodes, and what it awaits from them.

use super::derivation::Derivation;
use crate::command::{
    buffer::Location,
    types::{CommandKind, NodeId, Target},
};
use anabranch_grid::Region;
use smallvec::SmallVec;
use std::mem::take;

impl Derivation<'_> {
    /// Sends to other nodes what they read and only this node has: one push for each buffer and task.
    pub(super) fn push(&mut self, operand: usize) {
        let (shape, rank, applied) = (self.shape, self.context.rank, self.context.applied);
        if rank.nodes == 1 {
            return;
        }
        let mut owned = Region::empty();
        for access in shape.reads(operand) {
            owned = owned.union(&self.state(operand).owned(&access.whole));
        }
        if owned.is_empty() {
            return;
        }
        let mut parts = shape.other_readers(rank, operand, &owned);
        self.state(operand).note_sent(&mut parts);
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
        let mut push = self.command(CommandKind::Push { buffer: self.buffer(operand), targets });
        let state = self.state(operand);
        state.add_read_edges(&sent, &mut push);
        state.note_read(&sent, push.id, applied);
        self.out.push(push);
    }

    /// Waits for what this node reads and lacks: one await-push for each buffer and task.
    pub(super) fn await_push(&mut self, operand: usize) {
        let (shape, applied) = (self.shape, self.context.applied);
        if self.context.rank.nodes == 1 {
            return;
        }
        let mut missing = Region::empty();
        for access in shape.reads(operand) {
            missing = missing.union(&self.state(operand).missing(access.mine()));
        }
        if missing.is_empty() {
            return;
        }
        let kind = CommandKind::AwaitPush { buffer: self.buffer(operand), region: missing.clone() };
        let mut arrival = self.command(kind);
        let state = self.state(operand);
        state.add_write_edges(&missing, &mut arrival);
        state.note_write(&missing, arrival.id, applied, Location::Copied);
        self.out.push(arrival);
    }
}
