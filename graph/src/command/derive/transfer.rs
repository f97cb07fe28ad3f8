//! Transfers: what this node pushes to other nodes, and what it awaits from them.

use super::derivation::Derivation;
use crate::command::{
    buffer::Location,
    source::Parts,
    types::{Command, CommandId, CommandKind, NodeId, NodeRegions, Target},
};
use anabranch_grid::Region;
use smallvec::{SmallVec, smallvec};
use std::mem::take;

/// Commands, ascending.
type Writers = SmallVec<[CommandId; 4]>;

impl Derivation<'_> {
    /// Exchanges a region that all nodes read, if every node knows the part of each node. Returns false if
    /// the nodes must push and await what they lack instead.
    pub(super) fn exchange(&mut self, operand: usize) -> bool {
        let (shape, rank) = (self.shape, self.context.rank);
        let mut reads = shape.reads(operand).peekable();
        let Some(source) = reads.peek().and_then(|_| self.state(operand).source.take()) else { return false };
        if reads.all(|access| access.is_of(&shape.split, &source)) {
            self.state(operand).source = Some(source);
            return false;
        }
        let Some(region) = shape.read_by_all(rank.nodes, operand) else { return false };
        let parts = source.parts(&region);
        let own = parts.iter().find(|(node, _)| *node == rank.me).map(|(_, part)| part.clone());
        debug_assert_eq!(own.clone().unwrap_or_default(), self.state(operand).owned(&region));
        if let Some(own) = &own {
            let others = (0..rank.nodes).map(NodeId).filter(|&node| node != rank.me);
            let mut to: NodeRegions = others.map(|node| (node, own.clone())).collect();
            self.state(operand).note_sent(&mut to);
            let push = self.push_after_writers(operand, own);
            self.push_together(operand, to, own, push, Some(&parts));
        }
        let missing = self.state(operand).missing(&region);
        if !missing.is_empty() {
            self.await_together(operand, missing, Some(&parts));
        }
        true
    }

    /// Sends to other nodes what they read and only this node has: one message to each node for each buffer
    /// and task.
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
        let push = self.push_after_writers(operand, &sent);
        let waits_for_one = push.dependencies.windows(2).all(|pair| pair[0].on == pair[1].on);
        if parts.len() == 1 || waits_for_one {
            return self.push_together(operand, parts, &sent, push, None);
        }
        for parts in self.with_common_writers(operand, parts) {
            let sent = union(&parts);
            let push = self.push_after_writers(operand, &sent);
            self.push_together(operand, parts, &sent, push, None);
        }
    }

    /// A push after the writers of what it sends.
    fn push_after_writers(&mut self, operand: usize, sent: &Region<3>) -> Command {
        let kind = CommandKind::Push { buffer: self.buffer(operand), targets: [].into(), exchange: None };
        let mut push = self.command(kind);
        self.state(operand).add_read_edges(sent, &mut push);
        push
    }

    /// Adds a push of these parts, whose union is `sent`.
    fn push_together(
        &mut self,
        operand: usize,
        mut parts: NodeRegions,
        sent: &Region<3>,
        mut push: Command,
        exchange: Option<&Parts>,
    ) {
        let target = |(node, region): &mut (NodeId, Region<3>)| Target { node: *node, region: take(region) };
        let targets = parts.iter_mut().map(target).collect();
        push.kind = CommandKind::Push { buffer: self.buffer(operand), targets, exchange: exchange.cloned() };
        let applied = self.context.applied;
        self.state(operand).note_read(sent, push.id, applied);
        self.out.push(push);
    }

    /// Puts those parts together that the same commands of this node wrote, so that no part waits for the
    /// writer of another.
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
        let shape = self.shape;
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
            self.await_together(operand, region, None);
        }
    }

    /// Adds a command that awaits this region.
    fn await_together(&mut self, operand: usize, region: Region<3>, exchange: Option<&Parts>) {
        let (buffer, applied) = (self.buffer(operand), self.context.applied);
        let exchange = exchange.cloned();
        let kind = CommandKind::AwaitPush { buffer, region: region.clone(), exchange };
        let mut arrival = self.command(kind);
        let state = self.state(operand);
        state.add_write_edges(&region, &mut arrival);
        state.note_write(&region, arrival.id, applied, Location::Copied);
        self.out.push(arrival);
    }

    /// Cuts a region into parts that the same pieces of this node read, so that no piece waits for what it
    /// does not read.
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
