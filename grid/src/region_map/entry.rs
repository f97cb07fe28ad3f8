//! One entry of a region map, and runs of entries.

use crate::grid_box::GridBox;
use smallvec::SmallVec;

/// A box of points with the same value.
#[derive(Clone)]
pub(super) struct Entry<const D: usize, V> {
    pub(super) range: GridBox<D>,
    pub(super) value: V,
    /// The largest maximum on the sorted axis of this entry and all entries before it. It grows along the
    /// list, so that binary search can skip the entries that end before a box.
    pub(super) reach: usize,
}

/// Entries that replace other entries.
pub(super) type Run<const D: usize, V> = SmallVec<[Entry<D, V>; 8]>;

impl<const D: usize, V: Clone> Entry<D, V> {
    pub(super) fn new(range: GridBox<D>, value: V) -> Self {
        Self { range, reach: 0, value }
    }

    /// Appends the entry's points outside `hole` to `run`. Cuts along `axis` first, so that a map that is
    /// split along that axis only stays so.
    pub(super) fn without(&self, hole: &GridBox<D>, axis: usize, run: &mut Run<D, V>) {
        let mut rest = self.range;
        let first = axis;
        for i in 0..D {
            // The given axis comes first, then the other axes in their order.
            let axis = if i == 0 { first } else { i - usize::from(i <= first) };
            let (low, high) = (rest.low(axis), rest.high(axis));
            let inside = low.max(hole.low(axis))..high.min(hole.high(axis));
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

/// Replaces the entries at `old` by `new`. Later entries move only if the number of entries changes.
pub(super) fn exchange<const D: usize, V>(
    list: &mut SmallVec<[Entry<D, V>; 1]>,
    old: &[usize],
    new: Run<D, V>,
) {
    let reused = old.len().min(new.len());
    let mut new = new.into_iter();
    for (&at, entry) in old.iter().zip(new.by_ref().take(reused)) {
        list[at] = entry;
    }
    match old[reused..] {
        [] => list.insert_many(old[reused - 1] + 1, new),
        [first, .., last] if last - first >= old.len() - reused => {
            let (mut kept, mut gone) = (first, old[reused..].iter().peekable());
            for at in first..=last {
                if gone.next_if_eq(&&at).is_none() {
                    list.swap(kept, at);
                    kept += 1;
                }
            }
            list.drain(kept..=last);
        }
        [first, ..] => drop(list.drain(first..first + old.len() - reused)),
    }
}

/// Merges entries of equal value that form boxes, until no such pair is left.
pub(super) fn merge<const D: usize, V: PartialEq>(run: &mut Run<D, V>) {
    loop {
        let before = run.len();
        (0..D).for_each(|axis| merge_along(run, axis));
        if run.len() == before {
            return;
        }
    }
}

/// Merges neighbours along `axis`, in one pass over the entries, sorted so that neighbours are consecutive.
fn merge_along<const D: usize, V: PartialEq>(run: &mut Run<D, V>, axis: usize) {
    let same = |first: usize, entry: &Entry<D, V>| entry.range.low(axis) == first;
    let Some(first) = run.first().map(|entry| entry.range.low(axis)) else { return };
    if run.iter().all(|entry| same(first, entry)) {
        return;
    }
    // Sort by the corner on all other axes, then along `axis`. Between two neighbours with the same
    // cross-section no other entry can lie, because it would overlap one of them.
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
