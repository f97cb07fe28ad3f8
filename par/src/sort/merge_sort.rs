//! Merge sort in rounds.
//!
//! The slice is cut into runs, which the standard library sorts, all of them in parallel. Then each round merges
//! neighbouring runs pairwise, from the slice into a buffer or back, until one is left. A merge is cut into pieces of
//! equal size, so that all threads have work in the last round too. Where the cuts are depends on the slice alone.
//!
//! Elements need not be `Sync`: at no time do two threads look at the same one. Therefore the calling thread alone looks
//! for the cuts, before a round; each takes two comparisons per bit of the slice's length.

use super::{elements::Elements, for_each_owned};
use std::{
    cmp::Ordering::{self, Greater, Less},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Shorter slices are not worth waking a thread.
const MIN_PARALLEL: usize = 8 * 1024;
/// No run is shorter than this.
const MIN_RUN: usize = 2 * 1024;
/// There are at most so many runs: a power of 4, see [`run_length`].
const MAX_RUNS: usize = 64;
/// A round has about so many pieces, where they do not get shorter than [`MIN_RUN`].
const PIECES: usize = 64;

/// Sorts by `cmp`; `sort_run` sorts a slice on the calling thread. Stable if that is.
pub(super) fn sort<T: Send>(
    slice: &mut [T],
    cmp: &(impl Fn(&T, &T) -> Ordering + Sync),
    sort_run: impl Fn(&mut [T]) + Sync,
) {
    // To sort elements without size does nothing, and the standard library says how.
    if slice.len() < MIN_PARALLEL || size_of::<T>() == 0 {
        return sort_run(slice);
    }
    let mut run = run_length(slice.len());
    if is_descending(slice, run, cmp) {
        return reverse(slice, run);
    }
    for_each_owned(slice.chunks_mut(run), sort_run);
    if ends(slice, run).all(|(a, b)| cmp(a, b) != Greater) {
        return;
    }
    let less = |a: &T, b: &T| cmp(a, b) == Less;
    let piece = slice.len().div_ceil(PIECES).max(MIN_RUN);
    let mut elements = Elements::new(slice);
    while run < elements.as_slice().len() {
        let cuts = cuts(elements.as_slice(), run, piece, &less);
        for_each_owned(elements.merges(run, piece, &cuts).into_iter(), |merge| merge.run(&less));
        run *= 2;
    }
}

/// How long the runs of a slice are. There are 4, 16, 64 ... of them: after an even number of rounds the elements are
/// back in the slice.
fn run_length(len: usize) -> usize {
    let mut runs = 4;
    while runs < MAX_RUNS && len / (4 * runs) >= MIN_RUN {
        runs *= 4;
    }
    len.div_ceil(runs)
}

/// The last element of each run, with the first one of the next.
fn ends<T>(slice: &[T], run: usize) -> impl Iterator<Item = (&T, &T)> {
    (run..slice.len()).step_by(run).map(|first| (&slice[first - 1], &slice[first]))
}

/// Whether each element is greater than the next one. Nearly always two comparisons are enough to know.
fn is_descending<T: Send>(slice: &mut [T], run: usize, cmp: &(impl Fn(&T, &T) -> Ordering + Sync)) -> bool {
    let descends = |(a, b): (&T, &T)| cmp(a, b) == Greater;
    if !descends((&slice[0], &slice[1])) || !ends(slice, run).all(descends) {
        return false;
    }
    let all = AtomicBool::new(true);
    for_each_owned(slice.chunks_mut(run), |run| {
        // Relaxed: the end of the loop orders this before our reading it.
        if !run.is_sorted_by(|a, b| descends((a, b))) {
            all.store(false, Relaxed);
        }
    });
    all.into_inner()
}

/// Reverses the slice.
fn reverse<T: Send>(slice: &mut [T], piece: usize) {
    let (front, back) = slice.split_at_mut(slice.len() / 2);
    for_each_owned(front.chunks_mut(piece).zip(back.rchunks_mut(piece)), |(front, back)| {
        // Where the length is odd, the last of `back` is the middle, which nobody meets.
        front.iter_mut().zip(back.iter_mut().rev()).for_each(|(a, b)| std::mem::swap(a, b));
    });
}

/// How many elements of each piece come from the left one of the two runs that are merged there: for all pairs of runs,
/// and all pieces of each. If `less` is no order, the cuts are anywhere, but the pieces still are what they ought to be.
fn cuts<T>(elements: &[T], run: usize, piece: usize, less: &impl Fn(&T, &T) -> bool) -> Vec<usize> {
    let mut cuts = Vec::with_capacity(elements.len() / piece + elements.len() / run + 1);
    for pair in elements.chunks(2 * run) {
        let (left, right) = pair.split_at(run.min(pair.len()));
        let mut before = 0;
        for start in (0..pair.len()).step_by(piece) {
            let end = (start + piece).min(pair.len());
            let least = before.max(end.saturating_sub(right.len()));
            let most = left.len().min(end - (start - before));
            let cut = cut(left, right, end, least, most, less);
            cuts.push(cut - before);
            before = cut;
        }
    }
    cuts
}

/// How many of the first `count` elements of the merged runs come from the left one: between `least` and `most`.
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
