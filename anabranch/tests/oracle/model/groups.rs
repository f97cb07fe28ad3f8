//! The groups of the model, and their failures that no wait has reported.

use super::observation::{Observed, Report};
use crate::program::{GROUPS, is_within};
use anabranch::Status;
use std::collections::BTreeSet;

/// All groups in the order in which they were made. The first stands for tasks in no group.
pub(super) struct Groups {
    all: Vec<Group>,
    /// The group that steps are submitted to.
    pub(super) current: usize,
    /// The group in each slot.
    slots: [usize; GROUPS.len()],
    /// Callbacks for which no step waits.
    callbacks: Vec<Callback>,
}

#[derive(Clone, Default)]
pub(super) struct Group {
    parent: Option<usize>,
    failures: BTreeSet<Failed>,
    skipped: u64,
    pub(super) is_cancelled: bool,
    /// The last step that added a failure.
    last: Option<usize>,
}

/// A failed step, or a callback at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Failed {
    pub(super) step: usize,
    pub(super) is_callback: bool,
}

/// A callback of a group, from the step that adds it.
struct Callback {
    step: usize,
    group: usize,
    was_cancelled: bool,
    had_failed: bool,
}

impl Groups {
    pub(super) fn new() -> Self {
        let mut groups =
            Self { all: vec![Group::default()], current: 0, slots: [0; GROUPS.len()], callbacks: Vec::new() };
        (0..GROUPS.len()).for_each(|slot| groups.make(slot));
        groups
    }

    fn make(&mut self, slot: usize) {
        let parent = GROUPS[slot].map(|parent| self.slots[parent]);
        self.slots[slot] = self.all.len();
        self.all.push(Group { parent, ..Group::default() });
    }

    pub(super) fn choose(&mut self, slot: Option<usize>) {
        self.current = slot.map_or(0, |slot| self.slots[slot]);
    }

    /// Cancels the group in this slot, if `here`, and makes new ones. Returns all groups that are cancelled.
    pub(super) fn cancel(&mut self, slot: usize, here: bool) -> Vec<usize> {
        let root = self.slots[slot];
        let parent = |group: &usize| self.all[*group].parent;
        let is_in_root = |group| std::iter::successors(Some(group), parent).any(|group| group == root);
        let cancelled: Vec<usize> = (0..self.all.len()).filter(|group| here && is_in_root(*group)).collect();
        cancelled.iter().for_each(|group| self.all[*group].is_cancelled = true);
        (0..GROUPS.len()).filter(|other| is_within(*other, slot)).for_each(|slot| self.make(slot));
        cancelled
    }

    pub(super) fn current(&self) -> &Group {
        &self.all[self.current]
    }

    /// Adds a failure, which `step` has or needs.
    pub(super) fn add_failure(&mut self, step: usize, failed: Failed, is_skipped: bool) {
        let group = &mut self.all[self.current];
        group.failures.insert(failed);
        group.skipped += u64::from(is_skipped);
        group.last = Some(step);
    }

    /// Counts a step that is skipped because of a copy.
    pub(super) fn add_skipped(&mut self, step: usize) {
        let group = &mut self.all[self.current];
        group.skipped += 1;
        group.last = Some(step);
    }

    /// Takes the failures of a group.
    pub(super) fn report(&mut self, group: usize, describe: impl Fn(Failed) -> String) -> Option<Report> {
        let group = &mut self.all[group];
        let (failures, skipped) = (std::mem::take(&mut group.failures), std::mem::take(&mut group.skipped));
        if failures.is_empty() && skipped == 0 {
            return None;
        }
        // Copies that have failed are not known here.
        let omitted = failures.len().saturating_sub(Report::MOST_LISTED) as u64;
        let listed = failures.into_iter().take(Report::MOST_LISTED).map(describe).collect();
        Some(Report { listed, omitted, skipped })
    }

    /// The number of groups, without the one that stands for tasks in no group.
    pub(super) fn count(&self) -> usize {
        self.all.len() - 1
    }

    /// The status of the group in this slot, none of whose tasks is in flight.
    pub(super) fn status(&self, slot: usize) -> Status {
        let Group { failures, is_cancelled, .. } = &self.all[self.slots[slot]];
        match (failures.is_empty(), is_cancelled) {
            (false, _) => Status::Failed,
            (true, true) => Status::Cancelled,
            (true, false) => Status::Done,
        }
    }

    /// A step adds a callback to the group in this slot, and does not wait.
    pub(super) fn add_callback(&mut self, step: usize, slot: usize) {
        let group = self.slots[slot];
        let Group { is_cancelled: was_cancelled, ref failures, .. } = self.all[group];
        let had_failed = !failures.is_empty();
        self.callbacks.push(Callback { step, group, was_cancelled, had_failed });
    }

    /// The statuses with which callbacks for which no step waits must have been called. The time at which the
    /// group was idle decides which of several it is.
    pub(super) fn called(&self, seen: &[Observed]) -> Vec<(usize, Vec<Status>)> {
        let called = |callback: &Callback| {
            let group = &self.all[callback.group];
            let may_be = |status| match status {
                Status::Done => !callback.was_cancelled,
                Status::Failed => callback.had_failed || group.last > Some(callback.step),
                Status::Cancelled => group.is_cancelled,
                _ => false,
            };
            let called = match seen[callback.step].called[..] {
                [status] if may_be(status) => vec![status],
                _ => vec![],
            };
            (callback.step, called)
        };
        self.callbacks.iter().map(called).collect()
    }
}
