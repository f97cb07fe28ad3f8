//! Where the least or greatest element is, of all or of each line.

use super::fold;
use crate::{numeric::Numeric, shape::Lines};
use anabranch::par::prelude::*;

/// Which element is looked for. Of equal ones it is the first. The search ignores NaN, unless all elements
/// are NaN: then it finds the first element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Least,
    Greatest,
}

impl Extreme {
    /// Whether `value` takes the place of `best`, which comes before it.
    #[inline]
    fn replaces<T: PartialOrd>(self, value: T, best: T) -> bool {
        let is_better = match self {
            Self::Least => value < best,
            Self::Greatest => value > best,
        };
        // NaN is neither less nor greater than a number, so it is compared by itself.
        is_better | (is_nan(&best) & !is_nan(&value))
    }
}

#[inline]
fn is_nan<T: PartialOrd>(value: &T) -> bool {
    value.partial_cmp(value).is_none()
}

/// The number of the element; `None` if there is none.
pub(crate) fn of_all<T: Numeric>(elements: &[T], extreme: Extreme) -> Option<usize> {
    let better = |best, value| if extreme.replaces(value, best) { value } else { best };
    let of_part = |part: &[T]| fold::in_lanes(part, better).expect("no part is empty");
    let parts = elements.par_chunks(fold::PART).chunking(false).map(of_part).collect();
    let mut parts = parts.into_iter().enumerate();
    let first = parts.next()?;
    let better =
        |best: (usize, T), next: (usize, T)| if extreme.replaces(next.1, best.1) { next } else { best };
    let (part, best) = parts.fold(first, better);
    let start = part * fold::PART;
    let part = &elements[start..elements.len().min(start + fold::PART)];
    Some(start + part.iter().position(|&value| value == best).unwrap_or(0))
}

/// The position in each line; 0 in a line without elements.
pub(crate) fn of_lines<T: Numeric>(elements: &[T], results: &mut [u32], lines: Lines, extreme: Extreme) {
    if lines.len == 0 {
        return results.fill(0);
    }
    if results.is_empty() {
        return;
    }
    let inner = lines.inner;
    let depth = fold::positions(lines);
    let count = lines.len.div_ceil(depth);
    // The best element of each part, and its position in the line.
    let mut parts = vec![(T::default(), 0); lines.outer * count * inner];
    fold::of_parts(&mut parts, lines, depth, |rows, x, best| {
        let first = rows.start % lines.len;
        for (position, row) in rows.enumerate() {
            let row = &elements[row * inner + x..][..best.len()];
            for (best, &value) in best.iter_mut().zip(row) {
                if position == 0 || extreme.replaces(value, best.0) {
                    *best = (value, (first + position) as u32);
                }
            }
        }
    });
    results.par_mut().enumerate().for_each(|(at, result)| {
        let (outer, x) = (at / inner, at % inner);
        let candidates = (0..count).map(|part| parts[(outer * count + part) * inner + x]);
        let best = candidates.reduce(|best, next| if extreme.replaces(next.0, best.0) { next } else { best });
        *result = best.expect("a line has parts").1;
    });
}
