//! Scans of lines of elements. Each part of a line is folded, then the parts before each one, and then each
//! part is scanned from there (G. E. Blelloch, *Prefix sums and their applications*, CMU-CS-90-190, 1990).

use super::fold;
use crate::shape::Lines;
use anabranch::{Element, Operator, par::prelude::*};

/// Sets each element of `to` to the fold of those of its line up to the same position.
pub(crate) fn lines<T: Element, O: Operator<T>>(operator: &O, from: &[T], to: &mut [T], lines: Lines) {
    if to.is_empty() {
        return;
    }
    let Lines { len, inner, .. } = lines;
    let depth = fold::positions(lines);
    let count = len.div_ceil(depth);
    if count == 1 {
        // Several short lines at a time.
        let line = len * inner;
        let size = (fold::PART / line).max(1) * line;
        to.par_chunks_mut(size).enumerate().chunking(false).for_each(|(chunk, to)| {
            let from = &from[chunk * size..chunk * size + to.len()];
            for (from, to) in from.chunks(line).zip(to.chunks_mut(line)) {
                part(operator, from, to, inner, None);
            }
        });
        return;
    }
    let before = before(operator, from, lines, depth, count);
    let mut parts: Vec<&mut [T]> =
        to.chunks_mut(len * inner).flat_map(|line| line.chunks_mut(depth * inner)).collect();
    parts.par_mut().enumerate().chunking(false).for_each(|(number, to)| {
        let (outer, number_in_line) = (number / count, number % count);
        let start = (outer * len + number_in_line * depth) * inner;
        let from = &from[start..start + to.len()];
        let row = (outer * count + number_in_line) * inner;
        let before = (number_in_line > 0).then(|| &before[row - inner..row]);
        part(operator, from, to, inner, before);
    });
}

/// The fold of all positions up to the end of each part.
fn before<T: Element, O: Operator<T>>(
    operator: &O,
    from: &[T],
    lines: Lines,
    depth: usize,
    count: usize,
) -> Vec<T> {
    let Lines { outer, inner, .. } = lines;
    let mut sums = vec![operator.identity(); outer * count * inner];
    fold::parts(operator, from, &mut sums, lines, depth);
    for line in sums.chunks_mut(count * inner) {
        for at in inner..line.len() {
            line[at] = operator.combine(line[at - inner], line[at]);
        }
    }
    sums
}

/// Scans rows of `inner` elements, from the row `before` on.
fn part<T: Element, O: Operator<T>>(
    operator: &O,
    from: &[T],
    to: &mut [T],
    inner: usize,
    before: Option<&[T]>,
) {
    if inner == 1 {
        let mut sum = None;
        for (to, &value) in to.iter_mut().zip(from) {
            *to = match sum.or(before.map(|before| before[0])) {
                Some(sum) => operator.combine(sum, value),
                None => value,
            };
            sum = Some(*to);
        }
        return;
    }
    let (first, mut rest) = to.split_at_mut(inner);
    match before {
        Some(before) => combined(operator, before, &from[..inner], first),
        None => first.copy_from_slice(&from[..inner]),
    }
    let mut last = first;
    for from in from[inner..].chunks_exact(inner) {
        let (row, behind) = rest.split_at_mut(inner);
        combined(operator, last, from, row);
        (last, rest) = (row, behind);
    }
}

fn combined<T: Element, O: Operator<T>>(operator: &O, before: &[T], values: &[T], to: &mut [T]) {
    for ((to, &before), &value) in to.iter_mut().zip(before).zip(values) {
        *to = operator.combine(before, value);
    }
}
