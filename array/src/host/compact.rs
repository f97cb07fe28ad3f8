//! The elements that a mask selects, one after the other.

use super::fold::PART;
use anabranch::par::prelude::*;

/// Puts `element(at)` for each `at` where the mask is not 0 at the beginning of `to`, in order, and zeros
/// behind. Returns how many these are.
pub(crate) fn compact<T: Copy + Default + Send + Sync>(
    mask: &[u32],
    to: &mut [T],
    element: impl Fn(usize) -> T + Sync,
) -> usize {
    let count = |part: &[u32]| part.iter().map(|&holds| u32::from(holds != 0)).sum::<u32>() as usize;
    let counts = mask.par_chunks(PART).chunking(false).map(count).collect();
    let selected: usize = counts.iter().sum();
    let (mut rest, unused) = to.split_at_mut(selected);
    // The runtime wants that all elements are written.
    unused.par_mut().for_each(|element| *element = T::default());
    let mut parts = Vec::with_capacity(counts.len());
    for count in counts {
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(count);
        parts.push(part);
        rest = behind;
    }
    parts.par_mut().enumerate().chunking(false).for_each(|(part, to)| {
        let mut to = to.iter_mut();
        for (at, _) in mask.iter().enumerate().skip(part * PART).take(PART).filter(|(_, holds)| **holds != 0)
        {
            if let Some(to) = to.next() {
                *to = element(at);
            }
        }
    });
    selected
}
