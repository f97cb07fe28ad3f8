//! Slices that are in order already, or in the opposite one.

use super::for_each_owned;
use std::{
    cmp::Ordering::{self, Greater},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// In so many blocks a slice is looked through.
const BLOCKS: usize = 64;

/// Finds out whether the slice is sorted, or strictly descending; then it is reversed. Else it stays as it is, and
/// nearly always a few comparisons were enough to know.
pub(super) fn is_sorted_now<T: Send>(slice: &mut [T], cmp: &(impl Fn(&T, &T) -> Ordering + Sync)) -> bool {
    if holds_throughout(slice, |a, b| cmp(a, b) != Greater) {
        return true;
    }
    let descending = holds_throughout(slice, |a, b| cmp(a, b) == Greater);
    if descending {
        reverse(slice);
    }
    descending
}

/// Whether `holds` is true of all neighbours. First the calling thread looks where blocks meet: no two threads may look at
/// the same element at once.
fn holds_throughout<T: Send>(slice: &mut [T], holds: impl Fn(&T, &T) -> bool + Sync) -> bool {
    let block = slice.len().div_ceil(BLOCKS);
    if !(block..slice.len()).step_by(block).all(|first| holds(&slice[first - 1], &slice[first])) {
        return false;
    }
    let all = AtomicBool::new(true);
    for_each_owned(slice.chunks_mut(block), |block| {
        // Every block is looked through whatever the others found: what is compared does not depend on threads. Relaxed:
        // that the loop has ended is enough to read what was stored in it.
        if !block.is_sorted_by(&holds) {
            all.store(false, Relaxed);
        }
    });
    all.into_inner()
}

fn reverse<T: Send>(slice: &mut [T]) {
    let block = slice.len().div_ceil(2 * BLOCKS);
    let (front, back) = slice.split_at_mut(slice.len() / 2);
    for_each_owned(front.chunks_mut(block).zip(back.rchunks_mut(block)), |(front, back)| {
        // Where the length is odd, `back` has one more: the middle, which stays.
        front.iter_mut().zip(back.iter_mut().rev()).for_each(|(a, b)| std::mem::swap(a, b));
    });
}
