//! Region maps: a value for every point of a buffer, updated and queried by box.

use crate::sorted::{Entry, Run, Sorted};
use crate::{Extent, GridBox};
use smallvec::SmallVec;
use std::fmt;

/// A total map from every point of an extent to a value, stored as disjoint boxes with their values.
///
/// What an operation writes is merged with neighbours of equal value wherever both form one box, so the map stays
/// small. In a layout that is split along one axis this makes every entry maximal.
///
/// # Cost
/// One entry is inline: a map that is always updated as a whole never allocates. Entries are sorted along one axis,
/// that of the first split. A layout that is split along a single axis, whichever it is (intervals of a 1-D buffer,
/// rows or columns of a matrix), is a sorted vector of intervals: updates and queries find their place by binary
/// search, and only an update that adds or removes entries moves those behind them. Layouts split on several axes
/// cost a binary search plus a scan of the entries that overlap the box on the sorted axis (the tiles of one row of
/// tiles, say). An axis that turns out to separate badly is exchanged for the one with the most distinct cuts.
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
    pub(crate) entries: Sorted<D, V>,
}

impl<const D: usize, V: Clone + PartialEq> RegionMap<D, V> {
    /// A map in which every point of `extent` has the value `initial`.
    pub fn new(extent: impl Into<Extent<D>>, initial: V) -> Self {
        let bounds = GridBox::full(extent);
        let only = (!bounds.is_empty()).then(|| Entry::new(bounds, initial));
        Self { bounds, entries: Sorted::new(only) }
    }

    /// The extent that the map covers; all zero where it was created with an empty one.
    pub fn extent(&self) -> Extent<D> {
        self.bounds.extent()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.as_slice().len()
    }

    /// Whether the map has no entry, because its extent is empty.
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

    /// Like [`update`](RegionMap::update); calls `visit` with the old value of every entry that shares points with the
    /// box.
    pub fn replace(&mut self, range: &GridBox<D>, value: V, mut visit: impl FnMut(&V)) {
        let target = self.bounds.intersection(range);
        if target.is_empty() {
            return;
        }
        if target == self.bounds {
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

    /// Changes the values of the points of `range` where they are: entries at the border of the box are split first,
    /// then `change` is called once per entry inside. Points outside the extent are ignored.
    ///
    /// Cheaper than [`apply`](RegionMap::apply) for values that own memory, and a little less tidy: of entries that
    /// are equal afterwards, those are merged that are neighbours along the sorted axis.
    pub fn modify(&mut self, range: &GridBox<D>, mut change: impl FnMut(&mut V)) {
        let target = self.bounds.intersection(range);
        if target.is_empty() {
            return;
        }
        if target == self.bounds && self.len() == 1 {
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

    /// Gives every point of `range` the value that `change` makes of its old one, splitting entries at the border of
    /// the box where the value does change. `change` is called once per entry that shares points with the box.
    /// Points outside the extent are ignored.
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

    /// The parts of entries inside `range` (clipped to it), with their values, in no particular order.
    pub fn query(&self, range: &GridBox<D>) -> Query<'_, D, V> {
        let range = self.bounds.intersection(range);
        let entries = if range.is_empty() { &[] } else { self.entries.near(&range) };
        Query { range, entries: entries.iter() }
    }

    /// Calls `visit` with what [`query`](RegionMap::query) gives.
    pub fn for_each(&self, range: &GridBox<D>, mut visit: impl FnMut(GridBox<D>, &V)) {
        self.query(range).for_each(|(part, value)| visit(part, value));
    }

    /// The first split of a map with one entry decides the axis that entries are sorted along.
    fn prepare_split(&mut self, target: &GridBox<D>) {
        if self.len() == 1 {
            let is_cut = |&axis: &usize| target.extent()[axis] != self.bounds.extent()[axis];
            self.entries.set_axis((0..D).find(is_cut).unwrap_or(0));
        }
    }
}

/// Iterator over the parts of a region map's entries inside a box; see [`RegionMap::query`].
#[derive(Clone)]
pub struct Query<'a, const D: usize, V> {
    range: GridBox<D>,
    entries: std::slice::Iter<'a, Entry<D, V>>,
}

impl<'a, const D: usize, V> Iterator for Query<'a, D, V> {
    type Item = (GridBox<D>, &'a V);

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
