//! The map and its operations.

use super::{
    entry::{Entry, Run},
    sorted::Sorted,
};
use crate::{grid_box::GridBox, point::Extent};
use smallvec::SmallVec;
use std::fmt;

/// A total map from every point of an extent to a value, stored as disjoint boxes with their values.
///
/// An operation merges the entries that it writes with neighbours of equal value wherever both form one box,
/// so the map stays small. In a map that is split along one axis only, this makes every entry maximal.
///
/// # Cost
/// One entry is stored inline: a map that is always updated as a whole never allocates. Entries are sorted
/// along one axis, the axis of the first split. A map that is split along a single axis (intervals of a 1-D
/// buffer, rows or columns of a matrix) is a sorted vector of intervals: updates and queries find their place
/// by binary search, and only an update that adds or removes entries moves later entries. A map that is split
/// along several axes costs a binary search plus a scan of the entries that overlap the box on the sorted
/// axis (the tiles of one row of tiles, say). If the sorted axis turns out to separate badly, the map changes
/// to the axis with the most distinct cuts.
///
/// ```
/// use anabranch_grid::{GridBox, RegionMap};
/// let mut map = RegionMap::new([8, 8], 'a');
/// map.update(&GridBox::new([2, 0], [4, 8]), 'b');
/// map.apply(&GridBox::new([0, 0], [3, 8]), |old| old.to_ascii_uppercase());
/// let column: Vec<_> = map.query(&GridBox::new([0, 0], [8, 1])).map(|(_, &value)| value).collect();
/// assert_eq!(column, ['A', 'B', 'b', 'a']);
/// map.modify(&GridBox::new([2, 0], [4, 8]), |value| *value = 'c');
/// assert_eq!(map.len(), 3);
/// map.update(&GridBox::full([8, 8]), 'a');
/// assert_eq!(map.len(), 1);
/// ```
#[derive(Clone)]
pub struct RegionMap<const D: usize, V: Clone + PartialEq> {
    bounds: GridBox<D>,
    /// Disjoint, covering `bounds`.
    entries: Sorted<D, V>,
}

impl<const D: usize, V: Clone + PartialEq> RegionMap<D, V> {
    /// A map in which every point of `extent` has the value `initial`.
    pub fn new(extent: impl Into<Extent<D>>, initial: V) -> Self {
        let bounds = GridBox::full(extent);
        let only = (!bounds.is_empty()).then(|| Entry::new(bounds, initial));
        Self { bounds, entries: Sorted::new(only) }
    }

    /// The extent that the map covers; all zero if it was created with an empty one.
    pub fn extent(&self) -> Extent<D> {
        self.bounds.extent()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.as_slice().len()
    }

    /// Whether the map has no entry. That is so only if its extent is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All entries: disjoint boxes that cover the extent, with their values, in no particular order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (GridBox<D>, &V)> {
        self.entries.as_slice().iter().map(|entry| (entry.range, &entry.value))
    }

    /// Gives every point of `range` the value `value`. Points outside the extent are ignored.
    pub fn update(&mut self, range: &GridBox<D>, value: V) {
        self.replace(range, value, |_| {});
    }

    /// Like [`update`](RegionMap::update); calls `visit` with the old value of every entry that shares points
    /// with the box.
    pub fn replace(&mut self, range: &GridBox<D>, value: V, mut visit: impl FnMut(&V)) {
        let target = self.bounds.intersection(range);
        if target.is_empty() {
            return;
        }
        // Not `target == self.bounds`: numbers that were just computed are slow to compare all at once.
        if range.contains(&self.bounds) {
            self.entries().for_each(|(_, old)| visit(old));
            self.entries.reset(Entry::new(target, value));
            return;
        }
        self.prepare_split(&target);
        if let Some(hits) = self.entries.intervals(&target, &self.bounds) {
            hits.clone().for_each(|at| visit(&self.entries.get(at).value));
            self.entries.replace_intervals(&target, hits, value);
            return;
        }
        let (near, hits) = self.entries.overlapping(&target);
        hits.iter().for_each(|&at| visit(&self.entries.get(at).value));
        if let [only] = hits[..] {
            let entry = self.entries.get(only);
            if entry.value == value {
                return;
            }
            if entry.range == target && !self.entries.can_join(near.clone(), only, &value) {
                self.entries.set_value(only, value);
                return;
            }
            self.prepare_split(&target);
            if self.entries.is_band(only, &target) && !self.entries.joins(near.clone(), &target, &value) {
                self.entries.split_band(only, &target, value);
                return;
            }
        }
        let mut run = Run::new();
        for &at in &hits {
            self.entries.get(at).without(&target, self.entries.axis(), &mut run);
        }
        run.push(Entry::new(target, value));
        self.entries.replace(&target, near, hits, run);
    }

    /// Changes the values of the points of `range` in place: splits the entries at the border of the box,
    /// then calls `change` once per entry inside. Points outside the extent are ignored.
    ///
    /// Cheaper than [`apply`](RegionMap::apply) for values that own memory, but it may leave more entries: it
    /// merges only equal entries that are neighbours along the sorted axis. [`merge`](RegionMap::merge)
    /// merges the rest.
    pub fn modify(&mut self, range: &GridBox<D>, mut change: impl FnMut(&mut V)) {
        let target = self.bounds.intersection(range);
        if target.is_empty() {
            return;
        }
        if self.len() == 1 && range.contains(&self.bounds) {
            change(self.entries.value_mut(0));
            return;
        }
        self.prepare_split(&target);
        if let Some(hits) = self.entries.intervals(&target, &self.bounds) {
            let hits = self.entries.split_intervals(&target, hits);
            hits.clone().for_each(|at| change(self.entries.value_mut(at)));
            self.entries.merge_intervals(hits);
            return;
        }
        let (mut near, mut hits) = self.entries.overlapping(&target);
        let sticks_out = |at: &usize| !target.contains(&self.entries.get(*at).range);
        if hits.iter().any(sticks_out) {
            self.entries.split(&target, near);
            (near, hits) = self.entries.overlapping(&target);
        }
        hits.iter().for_each(|&at| change(self.entries.value_mut(at)));
        if self.entries.has_equal_neighbours(near.clone()) {
            let run = hits.iter().map(|&at| self.entries.get(at).clone()).collect();
            self.entries.replace(&target, near, hits, run);
        }
    }

    /// Gives every point of `range` the value that `change` makes of the old one. Calls `change` once per
    /// entry that shares points with the box, and splits entries at the border of the box only if their value
    /// changes. Points outside the extent are ignored.
    pub fn apply(&mut self, range: &GridBox<D>, mut change: impl FnMut(&V) -> V) {
        let target = self.bounds.intersection(range);
        if target.is_empty() {
            return;
        }
        let (near, mut hits) = self.entries.overlapping(&target);
        let mut values = SmallVec::<[V; 4]>::new();
        hits.retain(|at| {
            let old = &self.entries.get(*at).value;
            let new = change(old);
            let changed = new != *old;
            values.extend(changed.then_some(new));
            changed
        });
        match hits[..] {
            [] => return,
            [only]
                if target.contains(&self.entries.get(only).range)
                    && !self.entries.can_join(near.clone(), only, &values[0]) =>
            {
                self.entries.set_value(only, values.remove(0));
                return;
            }
            _ => {}
        }
        self.prepare_split(&target);
        let mut run = Run::new();
        for (&at, value) in hits.iter().zip(values) {
            let entry = self.entries.get(at);
            entry.without(&target, self.entries.axis(), &mut run);
            run.push(Entry::new(entry.range.intersection(&target), value));
        }
        self.entries.replace(&target, near, hits, run);
    }

    /// Merges all entries of equal value that form boxes.
    pub fn merge(&mut self) {
        let len = self.len();
        if len > 1 && self.entries.intervals(&self.bounds, &self.bounds).is_some() {
            self.entries.merge_intervals(0..len);
        } else if len > 1 {
            let run = self.entries.as_slice().iter().cloned().collect();
            self.entries.replace(&self.bounds, 0..len, (0..len).collect(), run);
        }
    }

    /// The entries that share points with `range`, clipped to it, with their values, in no particular order.
    #[inline]
    pub fn query(&self, range: &GridBox<D>) -> Query<'_, D, V> {
        let range = self.bounds.intersection(range);
        let entries = if range.is_empty() { &[] } else { self.entries.near(&range) };
        Query { range, entries: entries.iter() }
    }

    /// Calls `visit` with every item of [`query`](RegionMap::query).
    #[inline]
    pub fn for_each(&self, range: &GridBox<D>, mut visit: impl FnMut(GridBox<D>, &V)) {
        self.query(range).for_each(|(part, value)| visit(part, value));
    }

    /// Chooses the axis that entries are sorted along, if `target` is the first split of a map with one
    /// entry.
    fn prepare_split(&mut self, target: &GridBox<D>) {
        if self.len() == 1 {
            let is_cut = |&axis: &usize| target.extent()[axis] != self.bounds.extent()[axis];
            self.entries.set_axis((0..D).find(is_cut).unwrap_or(0));
        }
    }
}

/// An iterator over the entries of a region map inside a box; see [`RegionMap::query`].
#[derive(Clone)]
pub struct Query<'a, const D: usize, V> {
    range: GridBox<D>,
    entries: std::slice::Iter<'a, Entry<D, V>>,
}

impl<'a, const D: usize, V> Iterator for Query<'a, D, V> {
    type Item = (GridBox<D>, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.find(|entry| entry.range.intersects(&self.range))?;
        Some((entry.range.intersection(&self.range), &entry.value))
    }
}

impl<const D: usize, V: Clone + PartialEq + fmt::Debug> fmt::Debug for RegionMap<D, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 300;

    fn line(axis: usize, at: usize) -> GridBox<3> {
        GridBox::full([SIZE; 3]).with_axis(axis, at..at + 1)
    }

    /// The largest number of entries that an operation on one slice along `axis` looks at.
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
