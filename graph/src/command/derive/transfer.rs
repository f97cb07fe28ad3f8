//! Transfers: what this node pushes to other nodes, and what it awaits from them.

use super::derivation::Derivation;
use crate::command::{
    buffer::Location,
    types::{Command, CommandId, CommandKind, NodeId, NodeRegions, Target},
};
use anabranch_grid::Region;
use smallvec::{SmallVec, smallvec};
use std::mem::take;

/// Commands, ascending.
type Writers = SmallVec<[CommandId; 4]>;

impl Derivation<'_> {
    /// Sends to other nodes what they read and only this node has: one message to each node for each buffer and task.
    pub(super) fn push(&mut self, operand: usize) {
        let (shape, rank) = (self.shape, self.context.rank);
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
        let sent = union(&parts);
        let kind = CommandKind::Push { buffer: self.buffer(operand), targets: [].into() };
        let mut push = self.command(kind);
        self.state(operand).add_read_edges(&sent, &mut push);
        let waits_for_one = push.dependencies.windows(2).all(|pair| pair[0].on == pair[1].on);
        if parts.len() == 1 || waits_for_one {
            return self.push_together(operand, parts, &sent, push);
        }
        for parts in self.with_common_writers(operand, parts) {
            let sent = union(&parts);
            let kind = CommandKind::Push { buffer: self.buffer(operand), targets: [].into() };
            let mut push = self.command(kind);
            self.state(operand).add_read_edges(&sent, &mut push);
            self.push_together(operand, parts, &sent, push);
        }
    }

    /// Adds a push of these parts, whose union is `sent`.
    fn push_together(&mut self, operand: usize, mut parts: NodeRegions, sent: &Region<3>, mut push: Command) {
        let target = |(node, region): &mut (NodeId, Region<3>)| Target { node: *node, region: take(region) };
        let targets = parts.iter_mut().map(target).collect();
        push.kind = CommandKind::Push { buffer: self.buffer(operand), targets };
        let applied = self.context.applied;
        self.state(operand).note_read(sent, push.id, applied);
        self.out.push(push);
    }

    /// Puts those parts together that the same commands of this node wrote, so that no part waits for the writer of another.
    fn with_common_writers(&mut self, operand: usize, parts: NodeRegions) -> SmallVec<[NodeRegions; 2]> {
        let applied = self.context.applied;
        let mut writers: SmallVec<[Writers; 2]> = SmallVec::new();
        let mut groups: SmallVec<[NodeRegions; 2]> = SmallVec::new();
        let mut last = 0;
        for (node, region) in parts {
            // Often the next node gets the same region.
            let same =
                groups.get(last).and_then(|group| group.last()).is_some_and(|(_, part)| *part == region);
            if !same {
                let found = self.state(operand).writers(&region, applied);
                last = writers.iter().position(|known| *known == found).unwrap_or_else(|| {
                    writers.push(found);
                    groups.push(NodeRegions::new());
                    groups.len() - 1
                });
            }
            groups[last].push((node, region));
        }
        groups
    }

    /// Waits for what this node reads and lacks.
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
        for region in self.with_common_readers(operand, missing) {
            let kind = CommandKind::AwaitPush { buffer: self.buffer(operand), region: region.clone() };
            let mut arrival = self.command(kind);
            let state = self.state(operand);
            state.add_write_edges(&region, &mut arrival);
            state.note_write(&region, arrival.id, applied, Location::Copied);
            self.out.push(arrival);
        }
    }

    /// Cuts a region into parts that the same pieces of this node read, so that no piece waits for what it does not read.
    fn with_common_readers(&self, operand: usize, missing: Region<3>) -> SmallVec<[Region<3>; 2]> {
        let pieces = self.shape.pieces();
        if pieces <= 1 {
            return smallvec![missing];
        }
        let mut parts: SmallVec<[Region<3>; 2]> = SmallVec::new();
        let mut rest = missing.clone();
        for piece in 0..pieces {
            let reads = self.shape.reads(operand).map(|access| access.piece(piece).intersection(&missing));
            let reads = reads.reduce(|all, region| all.union(&region)).unwrap_or_default();
            if reads.is_empty() {
                continue;
            }
            for at in 0..parts.len() {
                let others = parts[at].difference(&reads);
                // Many small parts cost more than a piece gains that waits for less.
                if parts.len() < 4 * pieces && !others.is_empty() && others != parts[at] {
                    let common = parts[at].intersection(&reads);
                    parts[at] = others;
                    parts.push(common);
                }
            }
            let first = rest.intersection(&reads);
            rest = rest.difference(&first);
            parts.extend(Some(first).filter(|first| !first.is_empty()));
        }
        parts.extend(Some(rest).filter(|rest| !rest.is_empty()));
        parts
    }
}

/// The union of the regions of some nodes.
fn union(parts: &NodeRegions) -> Region<3> {
    match parts.as_slice() {
        [(_, only)] => only.clone(),
        several => {
            let mut different: SmallVec<[&Region<3>; 8]> = several.iter().map(|(_, part)| part).collect();
            different.dedup();
            Region::from_boxes(different.iter().flat_map(|part| part.boxes()).copied())
        }
    }
}
