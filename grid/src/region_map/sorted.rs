//! The sorted list of a region map's entries: how entries are found and replaced.

use super::entry::{Entry, Run, exchange, merge};
use crate::grid_box::GridBox;
use smallvec::SmallVec;
use std::ops::Range;

/// Positions of entries in the list, ascending.
pub(super) type Positions = SmallVec<[usize; 8]>;

/// Disjoint entries, sorted by their minimum on one axis.
#[derive(Clone)]
pub(super) struct Sorted<const D: usize, V> {
    pub(super) list: SmallVec<[Entry<D, V>; 1]>,
    axis: usize,
    /// Whether the entries are known to be split along `axis` only.
    pub(super) are_intervals: bool,
    /// The number of entries that searches looked at in vain since `axis` was last reconsidered.
    wasted: usize,
    /// The position of the last change; the next operation is often near it.
    pub(super) hint: usize,
}

/// The number of steps that an operation goes from the last change before it uses binary search.
const STEPS: usize = 4;

impl<const D: usize, V: Clone + PartialEq> Sorted<D, V> {
    pub(super) fn new(only: Option<Entry<D, V>>) -> Self {
        let list = only.into_iter().collect();
        Self { list, axis: 0, are_intervals: true, wasted: 0, hint: 0 }
    }

    pub(super) fn as_slice(&self) -> &[Entry<D, V>] {
        &self.list
    }

    pub(super) fn get(&self, at: usize) -> &Entry<D, V> {
        &self.list[at]
    }

    /// The axis that entries are sorted along.
    pub(super) fn axis(&self) -> usize {
        self.axis
    }

    /// Chooses the axis while there is only one entry.
    pub(super) fn set_axis(&mut self, axis: usize) {
        debug_assert_eq!(self.list.len(), 1);
        (self.axis, self.wasted, self.are_intervals) = (axis, 0, true);
        self.restore_reach(0..1);
    }

    /// Replaces all entries by one.
    pub(super) fn reset(&mut self, only: Entry<D, V>) {
        self.list.truncate(1);
        self.list[0] = only;
        self.are_intervals = true;
        self.restore_reach(0..1);
    }

    pub(super) fn set_value(&mut self, at: usize, value: V) {
        self.list[at].value = value;
    }

    pub(super) fn value_mut(&mut self, at: usize) -> &mut V {
        &mut self.list[at].value
    }

    /// Whether two entries that are consecutive in this part of the list have equal values and together form
    /// a box.
    pub(super) fn has_equal_neighbours(&self, among: Range<usize>) -> bool {
        let equal = |pair: &[Entry<D, V>]| {
            pair[0].range.joined(&pair[1].range).is_some() && pair[0].value == pair[1].value
        };
        self.list[among].windows(2).any(equal)
    }

    /// Consecutive entries that include all entries that overlap `target`.
    pub(super) fn near(&self, target: &GridBox<D>) -> &[Entry<D, V>] {
        let all_hit = self.are_intervals && self.list.len() > 1;
        &self.list[if all_hit { self.overlapping_intervals(target) } else { self.near_positions(target) }]
    }

    /// The positions of the entries that overlap or touch `target` on the sorted axis, and of entries between
    /// them.
    fn near_positions(&self, target: &GridBox<D>) -> Range<usize> {
        if self.list.len() <= 1 {
            return 0..self.list.len();
        }
        let (low, high) = (target.min()[self.axis], target.max()[self.axis]);
        let start = self.first_reaching(low);
        start..self.first_beginning(start, high.saturating_add(1))
    }

    /// The position of the first entry from `start` on that begins at `high` or later, or the end.
    #[inline]
    pub(super) fn first_beginning(&self, start: usize, high: usize) -> usize {
        let rest = &self.list[start..];
        let before = |entry: &Entry<D, V>| entry.range.min()[self.axis] < high;
        let few = rest.iter().take(STEPS).take_while(|entry| before(entry)).count();
        start + if few < STEPS { few } else { few + rest[few..].partition_point(before) }
    }

    /// The position of the first entry whose `reach` is at least `low`, or the end. Goes a few steps from the
    /// hint, then uses binary search.
    #[inline]
    pub(super) fn first_reaching(&self, low: usize) -> usize {
        let before = |at: usize| self.list[at].reach < low;
        let mut at = self.hint.min(self.list.len());
        for _ in 0..STEPS {
            if at > 0 && !before(at - 1) {
                at -= 1;
            } else if at < self.list.len() && before(at) {
                at += 1;
            } else {
                return at;
            }
        }
        self.list.partition_point(|entry| entry.reach < low)
    }

    /// The positions [near](Self::near_positions) `target`, and those of them whose entries share points with
    /// `target`. May sort the entries along a better axis before.
    pub(super) fn overlapping(&mut self, target: &GridBox<D>) -> (Range<usize>, Positions) {
        self.reconsider_axis();
        let near = self.near_positions(target);
        self.hint = near.start;
        let mut hits = Positions::new();
        for (at, entry) in near.clone().zip(&self.list[near.clone()]) {
            if entry.range.intersects(target) {
                hits.push(at);
            }
        }
        self.wasted += near.len() - hits.len();
        (near, hits)
    }

    /// Whether the entry `at`, if it had `value`, would form a box with an equal neighbour among `near`.
    pub(super) fn can_join(&self, near: Range<usize>, at: usize, value: &V) -> bool {
        let range = self.list[at].range;
        self.list[near].iter().any(|other| range.joined(&other.range).is_some() && other.value == *value)
    }

    /// Whether `target`, if it had `value`, would form a box with an equal neighbour among `near`.
    pub(super) fn joins(&self, near: Range<usize>, target: &GridBox<D>, value: &V) -> bool {
        self.list[near].iter().any(|other| other.value == *value && target.joined(&other.range).is_some())
    }

    /// Whether no other entry overlaps the entry `at` on the sorted axis, and `target` is a band of it: a
    /// part that differs on that axis only.
    pub(super) fn is_band(&self, at: usize, target: &GridBox<D>) -> bool {
        let (axis, range) = (self.axis, self.list[at].range);
        let is_band = range.contains(target)
            && range.with_axis(axis, target.min()[axis]..target.max()[axis]) == *target;
        let starts_alone = at == 0 || self.list[at - 1].reach <= range.min()[axis];
        let ends_alone = self.list.get(at + 1).is_none_or(|next| range.max()[axis] <= next.range.min()[axis]);
        is_band && starts_alone && ends_alone
    }

    /// Gives a [band](Self::is_band) of the entry `at` a value that no neighbour of the band has. The rests
    /// of the entry keep their outer neighbours, so nothing needs to be merged or sorted.
    pub(super) fn split_band(&mut self, at: usize, target: &GridBox<D>, value: V) {
        let axis = self.axis;
        let Entry { range, value: rest, .. } = self.list[at].clone();
        let part = |range: Range<usize>, value: V| {
            let reach = range.end;
            Entry { range: target.with_axis(axis, range), value, reach }
        };
        let before = range.min()[axis]..target.min()[axis];
        let after = target.max()[axis]..range.max()[axis];
        let mut parts = SmallVec::<[Entry<D, V>; 2]>::new();
        let band = part(before.end..after.start, value);
        if before.is_empty() {
            self.list[at] = band;
        } else {
            self.list[at] = part(before, rest.clone());
            parts.push(band);
        }
        if !after.is_empty() {
            parts.push(part(after, rest));
        }
        self.list.insert_many(at + 1, parts);
    }

    /// Replaces the entries `old` by `run`, which covers the same points, and merges equal neighbours among
    /// `run` and the entries `near` that touch `target`, the box whose values are new.
    pub(super) fn replace(
        &mut self,
        target: &GridBox<D>,
        near: Range<usize>,
        mut old: Positions,
        mut run: Run<D, V>,
    ) {
        self.are_intervals = false;
        let len = self.list.len();
        let mut replaced = std::mem::take(&mut old).into_iter().peekable();
        for at in near.clone() {
            let is_replaced = replaced.next_if_eq(&at).is_some();
            if !is_replaced && self.list[at].range.touches(target) {
                run.push(self.list[at].clone());
                old.push(at);
            } else if is_replaced {
                old.push(at);
            }
        }
        merge(&mut run);
        run.sort_unstable_by_key(|entry| entry.range.min()[self.axis]);
        exchange(&mut self.list, &old, run);
        self.restore_order(near.start..near.end + self.list.len() - len);
    }

    /// Cuts the entries `near` that stick out of `target` along its border.
    pub(super) fn split(&mut self, target: &GridBox<D>, near: Range<usize>) {
        self.are_intervals = false;
        let len = self.list.len();
        let mut pieces = Run::new();
        for entry in &mut self.list[near.clone()] {
            if entry.range.intersects(target) && !target.contains(&entry.range) {
                let (first, low) = (pieces.len(), entry.range.low(self.axis));
                entry.without(target, self.axis, &mut pieces);
                entry.range = entry.range.intersection(target);
                // A piece that begins where the whole entry began takes its place, so that only the other
                // pieces are out of order.
                let heir = pieces[first..].iter_mut().find(|piece| piece.range.low(self.axis) == low);
                if let Some(heir) = heir.filter(|_| entry.range.low(self.axis) != low) {
                    std::mem::swap(entry, heir);
                }
            }
        }
        pieces.sort_unstable_by_key(|piece| piece.range.low(self.axis));
        self.list.insert_many(near.end, pieces);
        self.restore_order(near.start..near.end + self.list.len() - len);
    }

    /// Sorts these entries, which cover the same points as those that were in their place.
    fn restore_order(&mut self, changed: Range<usize>) {
        let first = |entry: &Entry<D, V>| entry.range.min()[self.axis];
        if !self.list[changed.clone()].is_sorted_by_key(first) {
            // Stable, because it is quick where only a few entries are out of order.
            self.list[changed.clone()].sort_by_key(first);
        }
        self.restore_reach(changed);
    }

    /// Recomputes `reach` for these entries. Later entries keep theirs: the changed entries cover the same
    /// points as before, so they reach as far.
    fn restore_reach(&mut self, changed: Range<usize>) {
        let mut reach = if changed.start == 0 { 0 } else { self.list[changed.start - 1].reach };
        if D == 0 {
            return;
        }
        for entry in &mut self.list[changed] {
            reach = reach.max(entry.range.max()[self.axis]);
            entry.reach = reach;
        }
    }

    /// Sorts the entries along the axis with the most distinct cuts, once scanning in vain has cost more than
    /// sorting.
    fn reconsider_axis(&mut self) {
        if self.wasted <= 64 * self.list.len() {
            return;
        }
        self.wasted = 0;
        let cuts = |axis: usize| {
            let mut cuts: Vec<_> = self.list.iter().map(|entry| entry.range.low(axis)).collect();
            cuts.sort_unstable();
            cuts.dedup();
            cuts.len()
        };
        let Some(best) = (0..D).max_by_key(|&axis| (cuts(axis), axis == self.axis)) else { return };
        if best != self.axis {
            self.axis = best;
            self.list.sort_unstable_by_key(|entry| entry.range.low(best));
            self.restore_reach(0..self.list.len());
        }
        let Some(bounds) = self.list.first().map(|first| first.range) else { return };
        self.are_intervals = self.list.iter().all(|entry| entry.range.is_interval_of(&bounds, best));
    }
}
