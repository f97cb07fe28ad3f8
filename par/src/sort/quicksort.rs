//! Quicksort in rounds.
//!
//! Each round splits all parts of the slice that are long, in parallel, by a pivot: what is less comes before it, and the
//! rest after it. When all parts are short, the standard library sorts them. One thread splits one part, because pivots
//! need not be `Sync`; so the first rounds are for few threads, but they do the work of the first levels of any quicksort,
//! and there is no buffer.
//!
//! Elements only ever change places. So whatever the comparison does, the slice keeps them all.

use super::{MIN_PARALLEL, for_each_owned, presorted};
use parking_lot::Mutex;
use std::cmp::{
    Ordering::{self, Greater, Less},
    Reverse,
};

/// There are about so many parts in the end,
const PARTS: usize = 64;
/// but no shorter ones are split than this.
const MIN_SPLIT: usize = 4 * 1024;
/// Twice as many as good pivots need. The standard library copes with what bad ones leave.
const ROUNDS: u32 = 2 * PARTS.ilog2();
/// The pivot is the median of so many elements.
const SAMPLE: usize = 127;

/// Sorts by `cmp`; equal elements may change places.
pub(super) fn sort<T: Send>(slice: &mut [T], cmp: &(impl Fn(&T, &T) -> Ordering + Sync)) {
    // Elements without size have no order; the standard library says what becomes of them.
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

/// Long parts first, so that no thread begins one when the others end. Parts must not stay in the order that they were
/// found in, on which it would depend whose panic comes out.
fn put_in_order<T>(parts: &mut [&mut [T]]) {
    parts.sort_unstable_by_key(|part| (Reverse(part.len()), part.as_ptr()));
}

/// Splits by a pivot, into what comes before it and what comes after it. Elements that equal the pivot are in place, if
/// there are many.
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

/// Moves the median of a sample to the front; says whether many elements of the sample equal it: at least an eighth, and
/// surely if a quarter do.
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

/// Moves the elements that belong `left` in front of the others; returns how many there are. No branch depends on `left`:
/// it would be mispredicted half of the time.
fn partition<T>(part: &mut [T], left: impl Fn(&T) -> bool) -> usize {
    let mut count = 0;
    for i in 0..part.len() {
        let is_left = left(&part[i]);
        part.swap(count, i);
        count += usize::from(is_left);
    }
    count
}
