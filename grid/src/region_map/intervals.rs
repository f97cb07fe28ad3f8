//! Region maps that are split along one axis only: their entries are a sorted vector of intervals, and equal
//! neighbours are consecutive.

use super::{entry::Entry, sorted::Sorted};
use crate::grid_box::GridBox;
use std::ops::Range;

impl<const D: usize, V: Clone + PartialEq> Sorted<D, V> {
    /// The positions of the entries that share points with `target`, if all entries and `target` are
    /// intervals along the sorted axis.
    #[inline]
    pub(super) fn intervals(&mut self, target: &GridBox<D>, bounds: &GridBox<D>) -> Option<Range<usize>> {
        if !self.are_intervals || !target.is_interval_of(bounds, self.axis()) {
            return None;
        }
        let found = self.overlapping_intervals(target);
        self.hint = found.start;
        Some(found)
    }

    /// The positions of the entries that share points with `target`, if all entries are intervals.
    #[inline]
    pub(super) fn overlapping_intervals(&self, target: &GridBox<D>) -> Range<usize> {
        let axis = self.axis();
        let (low, high) = (target.low(axis), target.high(axis));
        let start = self.first_reaching(low + 1);
        match self.list.get(start) {
            Some(entry) if entry.reach >= high => start..start + 1,
            _ => start..self.first_beginning(start, high),
        }
    }

    /// Gives the points of `target` one value. `hits` are the entries that overlap it.
    pub(super) fn replace_intervals(&mut self, target: &GridBox<D>, hits: Range<usize>, value: V) {
        let axis = self.axis();
        let (mut low, mut high) = (target.low(axis), target.high(axis));
        let Range { mut start, mut end } = hits;
        let list = &mut self.list;
        let is_equal = |at: usize| list.get(at).is_some_and(|entry| entry.value == value);
        if start + 1 == end
            && list[start].range == *target
            && !(is_equal(start.wrapping_sub(1)) || is_equal(end))
        {
            list[start].value = value;
            return;
        }
        // Equal neighbours become part of the new entry. If an entry sticks out, its rest is the neighbour.
        let (first, last) = (list[start].range.low(axis), list[end - 1].range.high(axis));
        let before = if first < low { Some(start) } else { start.checked_sub(1) };
        if let Some(before) = before.filter(|&at| list[at].value == value) {
            (start, low) = (before, list[before].range.low(axis));
        }
        let after = if last > high { end - 1 } else { end };
        if list.get(after).is_some_and(|entry| entry.value == value) {
            (end, high) = (after + 1, list[after].range.high(axis));
        }
        let new = Entry::interval(target.with_axis(axis, low..high), axis, value);
        let (left, right) = (list[start].range.low(axis) < low, list[end - 1].range.high(axis) > high);
        if left && right && start + 1 == end {
            let rest = list[start].range.with_axis(axis, high..last);
            let rest = Entry::interval(rest, axis, list[start].value.clone());
            list[start].cut(axis, first..low);
            list.insert_many(end, [new, rest]);
            return;
        }
        if left {
            list[start].cut(axis, first..low);
            start += 1;
        }
        if right {
            list[end - 1].cut(axis, high..last);
            end -= 1;
        }
        if start == end {
            list.insert(start, new);
            return;
        }
        list[start] = new;
        if start + 1 < end {
            list.drain(start + 1..end);
        }
    }

    /// Cuts the entries `hits` at the border of `target`. Returns the positions of the entries inside.
    pub(super) fn split_intervals(&mut self, target: &GridBox<D>, mut hits: Range<usize>) -> Range<usize> {
        if hits.len() == 1 && self.list[hits.start].range == *target {
            return hits;
        }
        let axis = self.axis();
        if self.split_interval(hits.start, target.low(axis)) {
            hits = hits.start + 1..hits.end + 1;
        }
        self.split_interval(hits.end - 1, target.high(axis));
        hits
    }

    /// Cuts an entry in two if `cut` is inside it. Returns whether it did.
    fn split_interval(&mut self, at: usize, cut: usize) -> bool {
        let axis = self.axis();
        let whole = self.list[at].range;
        let (low, high) = (whole.low(axis), whole.high(axis));
        let inside = low < cut && cut < high;
        if inside {
            let rest = Entry::interval(whole.with_axis(axis, cut..high), axis, self.list[at].value.clone());
            self.list[at].cut(axis, low..cut);
            self.list.insert(at + 1, rest);
        }
        inside
    }

    /// Merges the entries `changed` with each other and their neighbours if they are equal.
    pub(super) fn merge_intervals(&mut self, changed: Range<usize>) {
        let axis = self.axis();
        let near = changed.start.saturating_sub(1)..(changed.end + 1).min(self.list.len());
        let equal = |pair: &[Entry<D, V>]| pair[0].value == pair[1].value;
        if !self.list[near.clone()].windows(2).any(equal) {
            return;
        }
        let mut kept = near.start;
        for at in near.start + 1..near.end {
            if self.list[at].value == self.list[kept].value {
                let low = self.list[kept].range.low(axis);
                let high = self.list[at].range.high(axis);
                self.list[kept].cut(axis, low..high);
            } else {
                kept += 1;
                self.list.swap(kept, at);
            }
        }
        self.list.drain(kept + 1..near.end);
    }
}

impl<const D: usize, V> Entry<D, V> {
    fn interval(range: GridBox<D>, axis: usize, value: V) -> Self {
        Self { range, value, reach: range.high(axis) }
    }

    /// Changes the interval along `axis`.
    fn cut(&mut self, axis: usize, interval: Range<usize>) {
        self.range = self.range.with_axis(axis, interval);
        self.reach = self.range.high(axis);
    }
}
