//! Several nodes on which tasks fail and are cancelled. Each part of a task fails, is cancelled or is skipped
//! by itself, and a part races with a cancellation for itself. So the model takes the statuses of all parts
//! from the observations of all nodes. It follows what must be lost: what a part that is not done was to
//! write, until another part writes it. What needs that cannot be done, on whatever node; all else that is
//! there must be there in all bits. What may be poisoned is more: all that a task was to write, if one of its
//! parts is not done.

use super::{
    Model, Part, Task,
    cancellations::Cancellations,
    causes::NotDone,
    observation::{Captured, Observation, Observed},
};
use crate::program::{Order, Program};
use anabranch::{Status, grid::Region};

/// What a node may see in a step.
#[derive(Clone, Default)]
pub(super) struct Bound {
    /// Of a task: the statuses of this node's part that are possible. All, if it has none.
    pub(super) statuses: Option<Vec<Status>>,
    /// Of a capture: the values, if all of them are there.
    pub(super) values: Option<Vec<u64>>,
}

/// What the model expects of a node, when all nodes are known.
#[allow(dead_code, reason = "the fuzz target runs programs on one node")]
pub struct OnNodes {
    pub expected: Vec<Observed>,
    bounds: Vec<Bound>,
}

#[allow(dead_code, reason = "the fuzz target runs programs on one node")]
impl OnNodes {
    /// What the model expects of this node. `all` is what all nodes have seen.
    pub fn new(program: &Program, all: &[Vec<Observed>], node: u16) -> Self {
        let cancellations = all.iter().enumerate().map(|(node, seen)| Cancellations::of(program, seen, node));
        let cancellations = cancellations.collect();
        let mut model = Model { all, cancellations, ..Model::new(program, &all[usize::from(node)], node) };
        Self { expected: model.run(), bounds: model.bounds }
    }

    /// What this node may see in a step, for a message.
    pub fn describe(&self, step: usize) -> String {
        let Bound { statuses, values } = &self.bounds[step];
        format!("{:?}, statuses {statuses:?}, values {values:?}", self.expected[step].what)
    }

    /// Whether the node may see this in a step.
    pub fn is_possible(&self, step: usize, seen: &Observed) -> bool {
        let bound = &self.bounds[step];
        let is_there = |values: &Vec<u64>| bound.values.as_ref() == Some(values);
        match (&seen.what, &self.expected[step].what) {
            (Observation::Task(status, _), Observation::Task(..)) => {
                bound.statuses.as_ref().is_none_or(|possible| possible.contains(status))
            }
            (Observation::Captured(captured), Observation::Captured(Captured::Failed(_))) => match captured {
                Captured::Values(values) => is_there(values),
                Captured::Failed(_) => true,
            },
            (
                Observation::Report(report, captured),
                Observation::Report(Some(_), _) | Observation::Report(_, Some(Captured::Failed(_))),
            ) => match captured {
                Some(Captured::Values(values)) => report.is_none() && is_there(values),
                _ => true,
            },
            (Observation::GroupReports(seen), Observation::GroupReports(expected)) => {
                seen.len() == expected.len()
                    && seen.iter().zip(expected).all(|(seen, expected)| expected.is_some() || seen.is_none())
            }
            (seen, expected) => seen == expected,
        }
    }
}

impl Model<'_> {
    /// Whether a node has seen that its part of a step has this status. On one node this is not known.
    pub(super) fn has_status(&self, i: usize, node: usize, status: Status) -> bool {
        let seen = self.all.get(node).map(|seen| &seen[i].what);
        matches!(seen, Some(Observation::Task(seen, _)) if *seen == status)
    }

    /// Whether the part of a node is done.
    pub(super) fn has_done(&self, i: usize, node: usize) -> bool {
        if self.all.is_empty() { self.causes.is_done(i) } else { self.has_status(i, node, Status::Done) }
    }

    /// How the step ends if a part of it does not succeed. Failures take precedence, as in the chains of
    /// causes.
    pub(super) fn not_done_on_nodes(&self, i: usize, needs: &[usize], task: &Task) -> Option<NotDone> {
        let any = |status| task.parts.iter().any(|part| self.has_status(i, part.node, status));
        if task.fails && any(Status::Failed) {
            return Some(NotDone::Failed);
        }
        let cancelled = any(Status::Cancelled).then_some(NotDone::Cancelled);
        self.causes.skipped(needs).or(cancelled).or(task.fails.then_some(NotDone::Failed))
    }

    /// Notes which statuses this node's part of a task may have.
    pub(super) fn bound_statuses(&mut self, i: usize, task: &Task, needs: bool) {
        let part = task.parts.iter().find(|part| part.node == self.node);
        let Some(part) = part.filter(|_| !self.all.is_empty()) else { return };
        let cancellations = &self.cancellations[self.node];
        // Of two tasks whose effects have no order, one does not need the other.
        let is_broken =
            |&(object, order): &(usize, Order)| order == Order::Sequential && self.cluster[object].0.lost;
        let is_broken = task.on_cluster.iter().any(is_broken);
        let possible = [
            (
                Status::Done,
                !is_broken
                    && !self.is_lost(&part.reads)
                    && !part.pieces.iter().any(|p| p.fails)
                    && !cancellations.must[i],
            ),
            (Status::Skipped, needs),
            (Status::Cancelled, cancellations.may[i]),
            (Status::Failed, task.fails),
        ];
        let statuses = possible.into_iter().filter(|(_, is_possible)| *is_possible).map(|(status, _)| status);
        self.bounds[i].statuses = Some(statuses.collect());
    }

    /// Whether something of what is read must be lost.
    fn is_lost(&self, reads: &[(usize, Region<3>)]) -> bool {
        reads.iter().any(|(slot, region)| self.buffers[*slot].cells(region).any(|cell| cell.lost))
    }

    /// What a part of a task was to write and must have lost. Of several pieces it is not known which were
    /// skipped or cancelled. So those are lost that need something that is, and the one that fails: if it did
    /// not fail, it did not run.
    fn lost_writes(&self, i: usize, part: &Part) -> Vec<Region<3>> {
        if self.has_done(i, part.node) {
            return vec![];
        }
        if part.pieces.len() < 2 {
            return vec![part.writes.clone()];
        }
        let lost = part.pieces.iter().filter(|piece| piece.fails || self.is_lost(&piece.reads));
        lost.map(|piece| piece.writes.clone()).collect()
    }

    /// Marks what the parts of a task were to write as lost, or as there. On one node the task is the part.
    pub(super) fn lose(&mut self, i: usize, task: &Task) {
        if self.all.is_empty() {
            let lost = !self.causes.is_done(i);
            return task.writes.iter().for_each(|(to, region)| self.buffers[*to].set_lost(region, lost));
        }
        let [(to, region)] = &task.writes[..] else { return };
        let lost: Vec<_> = task.parts.iter().flat_map(|part| self.lost_writes(i, part)).collect();
        // No node does anything for an empty index space, so an update leaves what is there.
        if !(task.update && task.parts.is_empty()) {
            self.buffers[*to].set_lost(region, false);
        }
        lost.iter().for_each(|writes| self.buffers[*to].set_lost(writes, true));
    }
}
