//! Permutations of axes. Rows that are neighbours in the original are written together, so that each line of
//! the cache that is read is used as a whole.

use crate::shape::{coordinates, strides};
use anabranch::par::prelude::*;

/// The number of rows of the result that are written together, and of their elements that are written at a
/// time.
const BLOCK: usize = 32;
/// A thread copies about this many elements at a time.
const PART: usize = 1 << 15;

/// Sets each element of `to`, whose shape is `shape`, to the element of `from` at these distances along the
/// axes of `to`.
pub(crate) fn permute<T: Copy + Send + Sync, const D: usize>(
    from: &[T],
    to: &mut [T],
    shape: [usize; D],
    distances: [usize; D],
) {
    let Some(last) = D.checked_sub(1) else { return to.copy_from_slice(from) };
    if to.is_empty() {
        return;
    }
    let (row, along) = (shape[last], distances[last]);
    // Where a row of the result begins in the original.
    let start = |number: usize| -> usize {
        let index = coordinates(shape, number * row);
        index.iter().zip(distances).map(|(at, distance)| at * distance).sum()
    };
    // The axis of the result along which elements lie one after the other in the original.
    let near = (0..D).find(|&axis| distances[axis] == 1 && shape[axis] > 1);
    match near {
        Some(near) if near != last && row >= 4 => {
            let mut groups = groups(to, shape, near);
            groups.par_mut().chunking(false).for_each(|(first, rows)| {
                let base = start(*first);
                for x in (0..row).step_by(BLOCK) {
                    let width = BLOCK.min(row - x);
                    for (neighbour, to) in rows.iter_mut().enumerate() {
                        let from = &from[base + neighbour + x * along..];
                        let to = &mut to[x..x + width];
                        to.iter_mut().zip(from.iter().step_by(along)).for_each(|(to, &from)| *to = from);
                    }
                }
            });
        }
        _ => {
            let size = (PART / row).max(1) * row;
            to.par_chunks_mut(size).enumerate().chunking(false).for_each(|(part, rows)| {
                for (number, to) in rows.chunks_mut(row).enumerate() {
                    let from = &from[start(part * (size / row) + number)..];
                    match along {
                        1 => to.copy_from_slice(&from[..row]),
                        _ => to.iter_mut().zip(from.iter().step_by(along)).for_each(|(to, &from)| *to = from),
                    }
                }
            });
        }
    }
}

/// The rows of the result in groups of neighbours along the axis `near`, each with the number of its first
/// row.
fn groups<T, const D: usize>(to: &mut [T], shape: [usize; D], near: usize) -> Vec<(usize, Vec<&mut [T]>)> {
    let row = shape[D - 1];
    let distance = strides(shape)[near] / row;
    let blocks = shape[near].div_ceil(BLOCK);
    let count = to.len() / row;
    let mut groups: Vec<_> =
        (0..count / shape[near] * blocks).map(|_| (0, Vec::with_capacity(BLOCK.min(shape[near])))).collect();
    for (number, row) in to.chunks_mut(row).enumerate() {
        let (before, behind) = (number / (distance * shape[near]), number % distance);
        let along = number / distance % shape[near];
        let group = &mut groups[(before * blocks + along / BLOCK) * distance + behind];
        if group.1.is_empty() {
            group.0 = number;
        }
        group.1.push(row);
    }
    groups
}
