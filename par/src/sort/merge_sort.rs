//! Merge sort in rounds.
//!
//! The slice is cut into runs, which the standard library sorts, all of them in parallel. Then each round
//! merges neighbouring runs pairwise, from the slice into a buffer or back, until one is left. Neighbours
//! that are in order already become one run at no cost. Each merge is cut into pieces of equal size, so that
//! all threads have work in the last round, too. The cuts depend on the slice alone.
//!
//! Elements need not be `Sync`: two threads never look at the same element at the same time. Therefore the
//! calling thread alone finds the cuts, before each round. A cut takes no more comparisons than the length of
//! a run has bits.

use super::{MIN_PARALLEL, elements::Elements, for_each_owned, presorted};
use std::cmp::Ordering::{self, Less};

/// The shortest length of a run.
const MIN_RUN: usize = 2 * 1024;
/// The largest number of runs: a power of 4, see [`run_length`].
const MAX_RUNS: usize = 64;
/// About how many pieces a round has, if they are not shorter than [`MIN_RUN`].
const PIECES: usize = 64;

/// Sorts by `cmp`; equal elements keep their order.
pub(super) fn sort<T: Send>(slice: &mut [T], cmp: &(impl Fn(&T, &T) -> Ordering + Sync)) {
    // The standard library decides how to sort elements of size 0.
    if slice.len() < MIN_PARALLEL || size_of::<T>() == 0 {
        return slice.sort_by(cmp);
    }
    if presorted::is_sorted_now(slice, cmp) {
        return;
    }
    let run = run_length(slice.len());
    for_each_owned(slice.chunks_mut(run), |run| run.sort_by(cmp));
    let less = |a: &T, b: &T| cmp(a, b) == Less;
    let len = slice.len();
    let piece = len.div_ceil(PIECES).max(MIN_RUN);
    let mut ends: Vec<usize> = (run..len).step_by(run).chain([len]).collect();
    let mut elements = Elements::new(slice);
    loop {
        let now = elements.as_slice();
        ends.retain(|&end| end == len || less(&now[end], &now[end - 1]));
        if ends.len() == 1 {
            break;
        }
        let pairs = pairs(&ends);
        let cuts = cuts(now, &pairs, piece, &less);
        for_each_owned(elements.merges(&pairs, piece, &cuts), |merge| merge.run(&less));
        ends = ends.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
    }
    if elements.are_in_buffer() {
        for_each_owned(elements.merges(&[], piece, &[]), drop);
    }
}

/// The lengths of the two runs of each pair. The last run may have no partner.
fn pairs(ends: &[usize]) -> Vec<(usize, usize)> {
    let mut start = 0;
    let lengths = |pair: &[usize]| {
        let (left, right) = (pair[0] - start, pair[pair.len() - 1] - pair[0]);
        start += left + right;
        (left, right)
    };
    ends.chunks(2).map(lengths).collect()
}

/// The length of the runs of a slice. There are 4, 16 or 64 runs, so after an even number of rounds the
/// elements are back in the slice, unless some runs were in order already.
fn run_length(len: usize) -> usize {
    let mut runs = 4;
    while runs < MAX_RUNS && len / (4 * runs) >= MIN_RUN {
        runs *= 4;
    }
    len.div_ceil(runs)
}

/// The number of elements of each piece that come from the left run of its pair, for all pieces of all pairs.
/// If `less` is not an order, these numbers have no meaning, but the pieces still have the right lengths.
fn cuts<T>(
    mut elements: &[T],
    pairs: &[(usize, usize)],
    piece: usize,
    less: &impl Fn(&T, &T) -> bool,
) -> Vec<usize> {
    let mut cuts = Vec::with_capacity(elements.len() / piece + pairs.len());
    for &pair in pairs {
        let (left, right);
        (left, elements) = elements.split_at(pair.0);
        (right, elements) = elements.split_at(pair.1);
        let (mut start, mut before) = (0, 0);
        while start < left.len() + right.len() {
            let end = (start + piece).min(left.len() + right.len());
            let least = before.max(end.saturating_sub(right.len()));
            let most = left.len().min(end - (start - before));
            let cut = cut(left, right, end, least, most, less);
            cuts.push(cut - before);
            (start, before) = (end, cut);
        }
    }
    cuts
}

/// The number of elements that come from the left run, among the first `count` elements of the merged runs:
/// between `least` and `most`.
fn cut<T>(
    left: &[T],
    right: &[T],
    count: usize,
    mut least: usize,
    mut most: usize,
    less: &impl Fn(&T, &T) -> bool,
) -> usize {
    while least < most {
        let middle = least + (most - least) / 2;
        if less(&right[count - middle - 1], &left[middle]) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    least
}
