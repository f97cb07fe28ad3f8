//! Folds of lines of elements, in one fixed tree.

use crate::shape::Lines;
use anabranch::{
    Element, Operator,
    interface::{And, Max, Min, Or, Product, Sum},
    par::prelude::*,
};
use std::{any::TypeId, ops::Range};

/// A thread folds about this many elements at a time. Longer lines are cut into parts.
pub(crate) const PART: usize = 1 << 15;
/// The number of running results of one line. They are combined at the end, so that the compiler makes vector
/// instructions.
const LANES: usize = 16;

/// Whether the order of the values does not matter, except for rounding.
fn commutes<O: 'static>() -> bool {
    let known = [
        TypeId::of::<Sum>(),
        TypeId::of::<Product>(),
        TypeId::of::<Min>(),
        TypeId::of::<Max>(),
        TypeId::of::<And>(),
        TypeId::of::<Or>(),
    ];
    known.contains(&TypeId::of::<O>())
}

/// Folds a slice; `None` if it is empty.
#[inline]
pub(crate) fn slice<T: Element, O: Operator<T>>(operator: &O, elements: &[T]) -> Option<T> {
    let combine = |a, b| operator.combine(a, b);
    if commutes::<O>() { in_lanes(elements, combine) } else { elements.iter().copied().reduce(combine) }
}

/// Folds a slice by an operation whose order does not matter, except for rounding.
#[inline]
pub(crate) fn in_lanes<T: Copy>(elements: &[T], combine: impl Fn(T, T) -> T) -> Option<T> {
    let Some((first, rest)) = elements.split_first_chunk::<LANES>() else {
        return elements.iter().copied().reduce(combine);
    };
    let mut lanes = *first;
    let (chunks, rest) = rest.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = combine(lanes[lane], chunk[lane]);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    Some(rest.iter().fold(lanes[0], |sum, &value| combine(sum, value)))
}

/// The number of positions of the parts that lines are cut into.
pub(crate) fn positions(lines: Lines) -> usize {
    (PART / lines.inner.max(1)).clamp(1, lines.len.max(1))
}

/// The number of elements that a chunk of partial results has, each of which is the fold of `depth` elements:
/// whole rows of `inner` results if they are short.
fn chunk_of_results(depth: usize, inner: usize) -> usize {
    let results = (PART / depth.max(1)).max(1);
    if inner < results { results / inner.max(1) * inner.max(1) } else { results }
}

/// Folds each line. `results` has a result for each of them. The fold of nothing is the identity.
pub(crate) fn lines<T: Element, O: Operator<T>>(operator: &O, from: &[T], results: &mut [T], lines: Lines) {
    if lines.len == 0 {
        return results.fill(operator.identity());
    }
    let depth = positions(lines);
    let count = lines.len.div_ceil(depth);
    if count == 1 {
        return parts(operator, from, results, lines, depth);
    }
    let mut partial = vec![operator.identity(); lines.outer * count * lines.inner];
    parts(operator, from, &mut partial, lines, depth);
    let partials = Lines { len: count, ..lines };
    parts(operator, &partial, results, partials, count);
}

/// Folds each part of each line: `depth` positions. Results lie as the elements do.
pub(crate) fn parts<T: Element, O: Operator<T>>(
    operator: &O,
    from: &[T],
    results: &mut [T],
    lines: Lines,
    depth: usize,
) {
    of_parts(results, lines, depth, |range, x, here| {
        if lines.inner == 1 {
            here[0] = slice(operator, &from[range]).expect("no part is empty");
        } else {
            columns(
                operator,
                &from[range.start * lines.inner..range.end * lines.inner],
                here,
                lines.inner,
                x,
            );
        }
    });
}

/// Calls `f` for each part of each line, on all threads, with the rows of the part, and the results of the
/// columns from some column on.
pub(crate) fn of_parts<R: Send>(
    results: &mut [R],
    lines: Lines,
    depth: usize,
    f: impl Fn(Range<usize>, usize, &mut [R]) + Sync,
) {
    let Lines { len, inner, .. } = lines;
    let count = len.div_ceil(depth);
    let size = chunk_of_results(depth.min(len), inner);
    results.par_chunks_mut(size).enumerate().chunking(false).for_each(|(chunk, results)| {
        let (mut at, mut rest) = (chunk * size, results);
        while !rest.is_empty() {
            let (row, x) = (at / inner, at % inner);
            let taken = (inner - x).min(rest.len());
            let (here, behind) = std::mem::take(&mut rest).split_at_mut(taken);
            let (outer, part) = (row / count, row % count);
            f(outer * len + part * depth..outer * len + len.min((part + 1) * depth), x, here);
            at += taken;
            rest = behind;
        }
    });
}

/// Folds some columns of rows that are `inner` elements long, from column `x` on.
fn columns<T: Element, O: Operator<T>>(operator: &O, from: &[T], results: &mut [T], inner: usize, x: usize) {
    let columns = x..x + results.len();
    let mut rows = from.chunks_exact(inner);
    if let Some(row) = rows.next() {
        results.copy_from_slice(&row[columns.clone()]);
    }
    for row in rows {
        for (result, &value) in results.iter_mut().zip(&row[columns.clone()]) {
            *result = operator.combine(*result, value);
        }
    }
}
