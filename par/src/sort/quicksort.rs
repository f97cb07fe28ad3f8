//! Quicksort in rounds.
//!
//! Each round splits all long parts of the slice by a pivot, in parallel: smaller elements come before the
//! pivot, and the rest after it. When all parts are short, the standard library sorts them. One thread splits
//! one part, because pivots need not be `Sync`. So the first rounds keep few threads busy, but they do the
//! work of the first levels of any quicksort, and they need no buffer.
//!
//! Elements only ever change places, so the slice keeps them all whatever the comparison does.

use super::{MIN_PARALLEL, for_each_owned, presorted};
use parking_lot::Mutex;
use std::cmp::{
    Ordering::{self, Greater, Less},
    Reverse,
};

/// About how many parts there are in the end.
const PARTS: usize = 64;
/// The shortest length of a part that is split.
const MIN_SPLIT: usize = 4 * 1024;
/// Twice the number of rounds that good pivots need. After bad pivots the standard library sorts the parts
/// that are still long.
const ROUNDS: u32 = 2 * PARTS.ilog2();
/// The number of elements whose median is the pivot.
const SAMPLE: usize = 127;

/// Sorts by `cmp`; equal elements may change places.
pub(super) fn sort<T: Send>(slice: &mut [T], cmp: &(impl Fn(&T, &T) -> Ordering + Sync)) {
    // The standard library decides how to sort elements of size 0.
    if slice.len() < MIN_PARALLEL || size_of::<T>() == 0 {
        return slice.sort_unstable_by(cmp);
    }
    if presorted::is_sorted_now(slice, cmp) {
        return;
    }
    let least = (slice.len() / PARTS).max(MIN_SPLIT);
    let mut parts = vec![slice];
    let mut short = Vec::new();
    for _ in 0..ROUNDS {
        let mut long;
        (long, parts) = parts.into_iter().partition(|part| part.len() > least);
        short.append(&mut parts);
        if long.is_empty() {
            break;
        }
        put_in_order(&mut long);
        let split_parts = Mutex::new(Vec::with_capacity(2 * long.len()));
        for_each_owned(long.into_iter(), |part| {
            let halves = split(part, cmp);
            split_parts.lock().extend(halves);
        });
        parts = split_parts.into_inner();
    }
    short.append(&mut parts);
    put_in_order(&mut short);
    for_each_owned(short.into_iter(), |part| part.sort_unstable_by(cmp));
}

/// Puts long parts first, so that no thread begins one when the other threads end. The order in which threads
/// have made the parts must not remain, because it would decide which panic is reported.
fn put_in_order<T>(parts: &mut [&mut [T]]) {
    parts.sort_unstable_by_key(|part| (Reverse(part.len()), part.as_ptr()));
}

/// Splits by a pivot, into the elements before it and the elements after it. If many elements equal the
/// pivot, they are in their final place, too.
fn split<'s, T>(part: &'s mut [T], cmp: &impl Fn(&T, &T) -> Ordering) -> [&'s mut [T]; 2] {
    let many_equal = choose_pivot(part, cmp);
    let (pivot, rest) = part.split_first_mut().expect("the part is long");
    let before = partition(rest, |x| cmp(x, pivot) == Less);
    part.swap(0, before);
    let (before, rest) = part.split_at_mut(before);
    let (pivot, mut after) = rest.split_first_mut().expect("the pivot is there");
    if many_equal {
        let equal = partition(after, |x| cmp(x, pivot) != Greater);
        after = &mut after[equal..];
    }
    [before, after]
}

/// Moves the median of a sample to the front. Returns whether many elements of the sample equal it: at least
/// an eighth; always if a quarter do.
fn choose_pivot<T>(part: &mut [T], cmp: &impl Fn(&T, &T) -> Ordering) -> bool {
    let step = part.len() / SAMPLE;
    for i in 0..SAMPLE {
        part.swap(i, i * step + step / 2);
    }
    let sample = &mut part[..SAMPLE];
    sample.sort_unstable_by(cmp);
    let middle = SAMPLE / 2;
    let equals = |i: usize| cmp(&sample[i], &sample[middle]) == Ordering::Equal;
    let many = equals(middle - SAMPLE / 8) || equals(middle + SAMPLE / 8);
    part.swap(0, middle);
    many
}

/// Moves the elements for which `left` is true in front of the rest, and returns their number. No branch
/// depends on `left`, because it would be mispredicted half of the time.
fn partition<T>(part: &mut [T], left: impl Fn(&T) -> bool) -> usize {
    let mut count = 0;
    for i in 0..part.len() {
        let is_left = left(&part[i]);
        part.swap(count, i);
        count += usize::from(is_left);
    }
    count
}
