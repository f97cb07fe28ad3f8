//! The entries of a region map, sorted along one axis: where they are kept, found and exchanged.

use crate::GridBox;
use crate::intervals::is_interval;
use smallvec::SmallVec;
use std::ops::Range;

/// A box of points that have the same value.
#[derive(Clone)]
pub(crate) struct Entry<const D: usize, V> {
    pub(crate) range: GridBox<D>,
    pub(crate) value: V,
    /// The largest maximum on the sorted axis of this entry and all before it. It grows along the list, so that
    /// entries that end before a box are skipped by binary search.
    pub(crate) reach: usize,
}

/// Entries that take the place of others.
pub(crate) type Run<const D: usize, V> = SmallVec<[Entry<D, V>; 8]>;

/// Positions of entries in the list, ascending.
pub(crate) type Positions = SmallVec<[usize; 8]>;

/// Disjoint entries, sorted by their minimum on one axis.
#[derive(Clone)]
pub(crate) struct Sorted<const D: usize, V> {
    pub(crate) list: SmallVec<[Entry<D, V>; 1]>,
    axis: usize,
    /// Whether the entries are known to be split along `axis` only.
    pub(crate) are_intervals: bool,
    /// Entries looked at in vain since `axis` was last reconsidered.
    wasted: usize,
    /// Where the last change was: the next operation is often near.
    pub(crate) hint: usize,
}

/// How far from the last change an operation looks for its place step by step, before it searches.
const STEPS: usize = 4;

impl<const D: usize, V: Clone + PartialEq> Sorted<D, V> {
    pub(crate) fn new(only: Option<Entry<D, V>>) -> Self {
        let list = only.into_iter().collect();
        Self { list, axis: 0, are_intervals: true, wasted: 0, hint: 0 }
    }

    pub(crate) fn as_slice(&self) -> &[Entry<D, V>] {
        &self.list
    }

    pub(crate) fn get(&self, at: usize) -> &Entry<D, V> {
        &self.list[at]
    }

    /// The axis that entries are sorted along.
    pub(crate) fn axis(&self) -> usize {
        self.axis
    }

    /// Chooses the axis while there is only one entry.
    pub(crate) fn set_axis(&mut self, axis: usize) {
        debug_assert_eq!(self.list.len(), 1);
        (self.axis, self.wasted, self.are_intervals) = (axis, 0, true);
        self.restore_reach(0..1);
    }

    /// Leaves one entry only.
    pub(crate) fn reset(&mut self, only: Entry<D, V>) {
        self.list.truncate(1);
        self.list[0] = only;
        self.are_intervals = true;
        self.restore_reach(0..1);
    }

    pub(crate) fn set_value(&mut self, at: usize, value: V) {
        self.list[at].value = value;
    }

    pub(crate) fn value_mut(&mut self, at: usize) -> &mut V {
        &mut self.list[at].value
    }

    /// Whether among these are two entries next to each other in the list that are equal and form a box.
    pub(crate) fn has_equal_neighbours(&self, among: Range<usize>) -> bool {
        let equal = |pair: &[Entry<D, V>]| {
            pair[0].range.joined(&pair[1].range).is_some() && pair[0].value == pair[1].value
        };
        self.list[among].windows(2).any(equal)
    }

    /// Consecutive entries outside which none overlaps `target`.
    pub(crate) fn near(&self, target: &GridBox<D>) -> &[Entry<D, V>] {
        let all_hit = self.are_intervals && self.list.len() > 1;
        &self.list[if all_hit { self.overlapping_intervals(target) } else { self.near_positions(target) }]
    }

    /// The consecutive entries outside which none overlaps or touches `target` on the sorted axis.
    fn near_positions(&self, target: &GridBox<D>) -> Range<usize> {
        if self.list.len() <= 1 {
            return 0..self.list.len();
        }
        let (low, high) = (target.min()[self.axis], target.max()[self.axis]);
        let start = self.first_reaching(low);
        start..self.first_beginning(start, high.saturating_add(1))
    }

    /// The first entry from `start` on that begins at `high` or later, or the end.
    #[inline]
    pub(crate) fn first_beginning(&self, start: usize, high: usize) -> usize {
        let rest = &self.list[start..];
        let before = |entry: &Entry<D, V>| entry.range.min()[self.axis] < high;
        let few = rest.iter().take(STEPS).take_while(|entry| before(entry)).count();
        start + if few < STEPS { few } else { few + rest[few..].partition_point(before) }
    }

    /// The first entry whose `reach` is at least `low`, or the end: a few steps from the hint, or by binary search.
    #[inline]
    pub(crate) fn first_reaching(&self, low: usize) -> usize {
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

    /// What is [`near`](Self::near) `target`, and the entries among it that share points with `target`. May sort the
    /// entries along a better axis before.
    pub(crate) fn overlapping(&mut self, target: &GridBox<D>) -> (Range<usize>, Positions) {
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

    /// Whether the entry `at`, were it to have `value`, would form a box with an equal neighbour among `near`.
    pub(crate) fn can_join(&self, near: Range<usize>, at: usize, value: &V) -> bool {
        let range = self.list[at].range;
        self.list[near].iter().any(|other| range.joined(&other.range).is_some() && other.value == *value)
    }

    /// Whether `target`, were it to have `value`, would form a box with an equal neighbour among `near`.
    pub(crate) fn joins(&self, near: Range<usize>, target: &GridBox<D>, value: &V) -> bool {
        self.list[near].iter().any(|other| other.value == *value && target.joined(&other.range).is_some())
    }

    /// Whether the entry `at` has its interval on the sorted axis to itself, and `target` is a band of it: a part that
    /// differs on that axis only.
    pub(crate) fn is_band(&self, at: usize, target: &GridBox<D>) -> bool {
        let (axis, range) = (self.axis, self.list[at].range);
        let is_band = range.contains(target)
            && range.with_axis(axis, target.min()[axis]..target.max()[axis]) == *target;
        let starts_alone = at == 0 || self.list[at - 1].reach <= range.min()[axis];
        let ends_alone = self.list.get(at + 1).is_none_or(|next| range.max()[axis] <= next.range.min()[axis]);
        is_band && starts_alone && ends_alone
    }

    /// Gives a [band](Self::is_band) of the entry `at` a value that no neighbour of the band has. What remains of the entry
    /// before and after it borders on what it did, so that nothing is to be merged or sorted.
    pub(crate) fn split_band(&mut self, at: usize, target: &GridBox<D>, value: V) {
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

    /// Puts `run` in the place of the entries `old`, which cover the same points, and merges equal neighbours among
    /// them and those `near` that touch `target`, where values are new.
    pub(crate) fn replace(
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

    /// Cuts the entries `near` the box that stick out of it along its border.
    pub(crate) fn split(&mut self, target: &GridBox<D>, near: Range<usize>) {
        self.are_intervals = false;
        let len = self.list.len();
        let mut pieces = Run::new();
        for entry in &mut self.list[near.clone()] {
            if entry.range.intersects(target) && !target.contains(&entry.range) {
                entry.without(target, self.axis, &mut pieces);
                entry.range = entry.range.intersection(target);
            }
        }
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

    /// Recomputes `reach` for these entries. Those behind keep theirs: changed entries cover the same points as
    /// before, so that they reach as far.
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

    /// Sorts the entries along the axis with the most distinct cuts, once scanning in vain has cost more than that.
    fn reconsider_axis(&mut self) {
        if self.wasted <= 64 * self.list.len() {
            return;
        }
        self.wasted = 0;
        let cuts = |axis: usize| {
            let mut cuts: Vec<_> = self.list.iter().map(|entry| entry.range.min()[axis]).collect();
            cuts.sort_unstable();
            cuts.dedup();
            cuts.len()
        };
        let Some(best) = (0..D).max_by_key(|&axis| (cuts(axis), axis == self.axis)) else { return };
        if best != self.axis {
            self.axis = best;
            self.list.sort_unstable_by_key(|entry| entry.range.min()[best]);
            self.restore_reach(0..self.list.len());
        }
        let Some(bounds) = self.list.first().map(|first| first.range) else { return };
        self.are_intervals = self.list.iter().all(|entry| is_interval(&entry.range, &bounds, best));
    }
}

impl<const D: usize, V: Clone> Entry<D, V> {
    pub(crate) fn new(range: GridBox<D>, value: V) -> Self {
        Self { range, reach: 0, value }
    }

    /// Appends the entry's points outside `hole` to `run`, cutting along `axis` first so that a layout split along
    /// that axis stays one.
    pub(crate) fn without(&self, hole: &GridBox<D>, axis: usize, run: &mut Run<D, V>) {
        let mut rest = self.range;
        let first = axis;
        for i in 0..D {
            // The given axis comes first, the others in their order.
            let axis = if i == 0 { first } else { i - usize::from(i <= first) };
            let (low, high) = (rest.min()[axis], rest.max()[axis]);
            let inside = low.max(hole.min()[axis])..high.min(hole.max()[axis]);
            if low < inside.start {
                run.push(Self::new(rest.with_axis(axis, low..inside.start), self.value.clone()));
            }
            if inside.end < high {
                run.push(Self::new(rest.with_axis(axis, inside.end..high), self.value.clone()));
            }
            rest = rest.with_axis(axis, inside);
        }
    }
}

/// Replaces the entries at `old` by `new`. Those behind move only where the number changes.
fn exchange<const D: usize, V>(list: &mut SmallVec<[Entry<D, V>; 1]>, old: &[usize], new: Run<D, V>) {
    let reused = old.len().min(new.len());
    let mut new = new.into_iter();
    for (&at, entry) in old.iter().zip(new.by_ref().take(reused)) {
        list[at] = entry;
    }
    match old[reused..] {
        [] => list.insert_many(old[reused - 1] + 1, new),
        [first, .., last] if last - first >= old.len() - reused => {
            let (mut at, mut gone) = (0, old[reused..].iter().peekable());
            list.retain(|_| {
                at += 1;
                gone.next_if_eq(&&(at - 1)).is_none()
            });
        }
        [first, ..] => drop(list.drain(first..first + old.len() - reused)),
    }
}

/// Merges entries of equal value that form boxes, until none is left.
fn merge<const D: usize, V: PartialEq>(run: &mut Run<D, V>) {
    loop {
        let before = run.len();
        (0..D).for_each(|axis| merge_along(run, axis));
        if run.len() == before {
            return;
        }
    }
}

/// Merges neighbours along `axis`, in one pass over the entries sorted so that neighbours are consecutive.
fn merge_along<const D: usize, V: PartialEq>(run: &mut Run<D, V>, axis: usize) {
    let same = |first: usize, entry: &Entry<D, V>| entry.range.min()[axis] == first;
    let Some(first) = run.first().map(|entry| entry.range.min()[axis]) else { return };
    if run.iter().all(|entry| same(first, entry)) {
        return;
    }
    // By the corner on all other axes, then along `axis`. Between two neighbours of the same cross-section no other
    // entry can come, as it would overlap one of them.
    run.sort_unstable_by(|p, q| {
        let corner = |entry: &Entry<D, V>| entry.range.min();
        let mut others =
            (0..D).filter(|&other| other != axis).map(|other| (corner(p)[other], corner(q)[other]));
        let (p_axis, q_axis) = (corner(p)[axis], corner(q)[axis]);
        match others.find(|(p, q)| p != q) {
            Some((p, q)) => p.cmp(&q),
            None => p_axis.cmp(&q_axis),
        }
    });
    run.dedup_by(|next, kept| {
        let joined = kept.range.joined(&next.range).filter(|_| kept.value == next.value);
        joined.inspect(|&joined| kept.range = joined).is_some()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RegionMap;

    const SIZE: usize = 300;

    fn line(axis: usize, at: usize) -> GridBox<3> {
        GridBox::full([SIZE; 3]).with_axis(axis, at..at + 1)
    }

    /// The most entries that an operation on one slice along `axis` looks at.
    fn most_scanned(map: &RegionMap<3, usize>, axis: usize) -> usize {
        (0..SIZE).map(|at| map.entries.near(&line(axis, at)).len()).max().unwrap()
    }

    #[test]
    fn slices_along_any_axis_are_found_by_binary_search() {
        for axis in 0..3 {
            let mut map = RegionMap::new([SIZE; 3], 0);
            (0..SIZE).for_each(|step| map.update(&line(axis, step * 7 % SIZE), step + 1));
            assert_eq!(map.len(), SIZE);
            assert!(most_scanned(&map, axis) <= 3);
        }
    }

    #[test]
    fn an_axis_that_separates_badly_is_exchanged() {
        let mut map = RegionMap::new([SIZE; 3], 0);
        map.update(&GridBox::full([1, SIZE, SIZE]), 1);
        assert_eq!(map.entries.axis(), 0);
        for step in 0..3 * SIZE {
            map.update(&line(2, step * 7 % SIZE), step + 2);
        }
        assert_eq!((map.entries.axis(), map.len()), (2, SIZE));
        assert!(most_scanned(&map, 2) <= 3);
    }

    #[test]
    fn one_entry_needs_no_heap() {
        let mut map = RegionMap::new([SIZE; 3], 0);
        for step in 1..10 {
            map.update(&GridBox::full([SIZE; 3]), step);
            map.apply(&GridBox::full([SIZE; 3]), |value| value + 1);
        }
        assert!(!map.entries.list.spilled());
    }
}
