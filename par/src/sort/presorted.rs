//! Slices that are sorted already, or in descending order.

use super::for_each_owned;
use std::{
    cmp::Ordering::{self, Greater},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// The number of blocks in which a slice is tested.
const BLOCKS: usize = 64;

/// Whether the slice is sorted now: it was sorted before, or it was strictly descending and is reversed. Any
/// other slice stays as it is, and nearly always a few comparisons show that.
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

/// Whether `holds` is true of all neighbours. The calling thread alone compares the elements on both sides of
/// each block boundary, because no two threads may look at the same element at the same time.
fn holds_throughout<T: Send>(slice: &mut [T], holds: impl Fn(&T, &T) -> bool + Sync) -> bool {
    let block = slice.len().div_ceil(BLOCKS);
    if !(block..slice.len()).step_by(block).all(|first| holds(&slice[first - 1], &slice[first])) {
        return false;
    }
    let all = AtomicBool::new(true);
    for_each_owned(slice.chunks_mut(block), |block| {
        // Every block is tested even if another one has failed, so that the comparisons do not depend on
        // threads. Relaxed: the end of the loop makes the stores visible.
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
        // If the length is odd, `back` has one element more: the middle, which stays.
        front.iter_mut().zip(back.iter_mut().rev()).for_each(|(a, b)| std::mem::swap(a, b));
    });
}
