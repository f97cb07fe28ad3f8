//! Set operations on regions in normal form, by one sweep per axis.
//!
//! A region in normal form is a list of boxes in *bands*: along axis 0 it is cut exactly where its
//! cross-section changes, and each cross-section is in normal form along the remaining axes. The boxes of one
//! band are consecutive and share their interval on that axis, so a list of boxes and an axis describe the
//! bands completely, and every set of points has exactly one such list. In one dimension this is the sorted
//! vector of maximal intervals.

use crate::grid_box::GridBox;
use smallvec::SmallVec;
use std::ops::Range;

/// The boxes of a region. The common single box is stored inline.
pub(crate) type Boxes<const D: usize> = SmallVec<[GridBox<D>; 1]>;

/// A set operation, defined by the points that it keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Union,
    Intersection,
    Difference,
}

impl Op {
    fn keeps(self, in_a: bool, in_b: bool) -> bool {
        match self {
            Op::Union => in_a || in_b,
            Op::Intersection => in_a && in_b,
            Op::Difference => in_a && !in_b,
        }
    }
}

/// The normal form of `a op b`, where both are in normal form.
pub(crate) fn combine<const D: usize>(op: Op, a: &[GridBox<D>], b: &[GridBox<D>]) -> Boxes<D> {
    let mut out = Boxes::new();
    sweep(op, a, b, 0, GridBox::EMPTY, &mut out);
    if out.len() <= 1 {
        out.shrink_to_fit();
    }
    out
}

/// The normal form of `whole` without `hole`; they must overlap.
pub(crate) fn subtract<const D: usize>(whole: &GridBox<D>, hole: &GridBox<D>) -> Boxes<D> {
    // Each axis leaves a slab before and a slab after the hole. The slabs of later axes lie between those of
    // earlier axes, so the slabs before the hole are found in order and those after it in reverse order.
    let (mut before, mut after) = (Boxes::new(), Boxes::new());
    let mut rest = *whole;
    for axis in 0..D {
        let (low, high) = (rest.low(axis), rest.high(axis));
        let inside = low.max(hole.low(axis))..high.min(hole.high(axis));
        if low < inside.start {
            before.push(rest.with_axis(axis, low..inside.start));
        }
        if inside.end < high {
            after.push(rest.with_axis(axis, inside.end..high));
        }
        rest = rest.with_axis(axis, inside);
    }
    while let Some(slab) = after.pop() {
        before.push(slab);
    }
    before
}

/// Appends `a op b` to `out`. All boxes agree on the axes before `axis`; `done` holds the result's intervals
/// there.
fn sweep<const D: usize>(
    op: Op,
    mut a: &[GridBox<D>],
    mut b: &[GridBox<D>],
    axis: usize,
    done: GridBox<D>,
    out: &mut Boxes<D>,
) {
    if axis == D {
        if op.keeps(!a.is_empty(), !b.is_empty()) {
            out.push(done);
        }
        return;
    }
    if b.is_empty() && op.keeps(true, false) || a.is_empty() && op.keeps(false, true) {
        let clipped = |b: &GridBox<D>| (0..axis).fold(*b, |b, axis| b.with_axis(axis, span(&[done], axis)));
        out.extend(a.iter().chain(b).map(clipped));
        return;
    }
    // Skip bands that cannot change the result, by binary search.
    if !op.keeps(true, false) {
        a = overlapping(a, axis, span(b, axis));
    }
    if !op.keeps(false, true) {
        b = overlapping(b, axis, span(a, axis));
    }
    let (mut at, mut last) = (0, None);
    while !(a.is_empty() && b.is_empty()) {
        let (band_a, band_b) = (first_band(a, axis), first_band(b, axis));
        let (range_a, range_b) = (span(band_a, axis), span(band_b, axis));
        let low = at.max(range_a.start.min(range_b.start));
        let (in_a, in_b) = (range_a.start <= low, range_b.start <= low);
        let end = |range: &Range<usize>, inside| if inside { range.end } else { range.start };
        let high = end(&range_a, in_a).min(end(&range_b, in_b));

        let start = out.len();
        let (part_a, part_b) = (if in_a { band_a } else { &[] }, if in_b { band_b } else { &[] });
        sweep(op, part_a, part_b, axis + 1, done.with_axis(axis, low..high), out);
        if out.len() > start {
            last = Some(join_bands(out, last, start, axis));
        }
        at = high;
        if range_a.end == high {
            a = &a[band_a.len()..];
        }
        if range_b.end == high {
            b = &b[band_b.len()..];
        }
    }
}

/// Joins the band `out[start..]` to the band before it, which begins at `last`, if they touch and have the
/// same cross-section. Returns the position at which the last band of `out` begins.
fn join_bands<const D: usize>(out: &mut Boxes<D>, last: Option<usize>, start: usize, axis: usize) -> usize {
    let Some(last) = last else { return start };
    let (before, after) = (&out[last..start], &out[start..]);
    let (Range { start: low, end: touch }, Range { start: begin, end: high }) =
        (span(&before[..1], axis), span(&after[..1], axis));
    let same_section = |(p, q): (&GridBox<D>, &GridBox<D>)| {
        (axis + 1..D).all(|d| p.low(d) == q.low(d) && p.high(d) == q.high(d))
    };
    if touch != begin || before.len() != after.len() || !before.iter().zip(after).all(same_section) {
        return start;
    }
    out.truncate(start);
    for joined in &mut out[last..] {
        *joined = joined.with_axis(axis, low..high);
    }
    last
}

/// Whether `a` and `b` share a point.
pub(crate) fn intersects<const D: usize>(a: &[GridBox<D>], b: &[GridBox<D>]) -> bool {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    few.iter().any(|wanted| touches(many, wanted, 0))
}

/// Whether some box of `boxes` shares a point with `wanted`; all boxes overlap it on the axes before `axis`.
fn touches<const D: usize>(boxes: &[GridBox<D>], wanted: &GridBox<D>, axis: usize) -> bool {
    if axis == D {
        return !boxes.is_empty();
    }
    let mut rest = overlapping(boxes, axis, wanted.low(axis)..wanted.high(axis));
    while !rest.is_empty() {
        let band = first_band(rest, axis);
        if touches(band, wanted, axis + 1) {
            return true;
        }
        rest = &rest[band.len()..];
    }
    false
}

/// Whether every point of the box `wanted` is in `boxes`, looking only at the axes from `axis` on.
pub(crate) fn covers<const D: usize>(boxes: &[GridBox<D>], wanted: &GridBox<D>, axis: usize) -> bool {
    if axis == D {
        return !boxes.is_empty();
    }
    let (mut at, end) = (wanted.low(axis), wanted.high(axis));
    let mut rest = overlapping(boxes, axis, at..end);
    while at < end {
        let band = first_band(rest, axis);
        let range = span(band, axis);
        if range.start > at || !covers(band, wanted, axis + 1) {
            return false;
        }
        at = range.end;
        rest = &rest[band.len()..];
    }
    true
}

/// The leading boxes that share their interval on `axis`.
fn first_band<const D: usize>(boxes: &[GridBox<D>], axis: usize) -> &[GridBox<D>] {
    let Some(first) = boxes.first() else { return boxes };
    let same = |b: &GridBox<D>| b.low(axis) == first.low(axis);
    // Most bands are one box; on the last axis all are.
    let len = if boxes.get(1).is_some_and(same) { boxes.partition_point(same) } else { 1 };
    &boxes[..len]
}

/// The boxes whose interval on `axis` overlaps `range`. They are consecutive, because both ends grow along
/// the list.
fn overlapping<const D: usize>(boxes: &[GridBox<D>], axis: usize, range: Range<usize>) -> &[GridBox<D>] {
    let start = boxes.partition_point(|b| b.high(axis) <= range.start);
    let boxes = &boxes[start..];
    &boxes[..boxes.partition_point(|b| b.low(axis) < range.end)]
}

/// The interval from the first to the last coordinate of `boxes` on `axis`. Without boxes it lies beyond all
/// others.
fn span<const D: usize>(boxes: &[GridBox<D>], axis: usize) -> Range<usize> {
    match boxes {
        [] => usize::MAX..usize::MAX,
        [first, .., last] => first.low(axis)..last.high(axis),
        [only] => only.low(axis)..only.high(axis),
    }
}
