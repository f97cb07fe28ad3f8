//! Folds of lines. Each pass folds parts of the lines; the results are folded in the same way, until there is
//! one for each line.
//!
//! A group folds a part of a long line whose elements lie side by side, and an invocation a part of any
//! other. Neighbours read neighbouring elements.

use super::{GROUP, INVOCATIONS, operator::Known, parameter, wgsl};
use crate::{array::Array, arrays::Arrays, error::ArrayError, numeric::Numeric, shape::Lines};
use anabranch::{
    Buffer,
    device::Wgsl,
    grid::Fixed,
    prelude::{GridBox, fixed, one_to_one},
};

/// The least number of elements that one invocation folds, if there are as many.
const LEAST: usize = 16;
/// One invocation folds a line that is not longer.
const SHORT: usize = 256;
/// The number of groups that keep a large GPU busy.
const GROUPS: usize = 1 << 11;
/// The elements that an invocation of a group asks for before it combines the first of them.
const AT_ONCE: usize = 8;

const OF_INVOCATION: &str = "
    fn each(x: u32) {
        let column = x % inner();
        let row = x / inner();
        let part = row % count();
        let first = row / count() * positions() * inner() + column;
        var result = from_get(first + part * inner());
        for (var at = part + count(); at < positions(); at = at + count()) {
            result = combine(result, from_get(first + at * inner()));
        }
        to_set(x, result);
    }
";

/// Folds each line of an array that has elements. `to` gets a result for each of them.
#[track_caller]
pub(crate) fn lines<T: Numeric, const D: usize, const E: usize>(
    operator: Known,
    from: &Array<T, D>,
    to: &Array<T, E>,
    lines: Lines,
) -> Result<(), ArrayError> {
    let (mut from, mut whole, mut lines) = (from.buffer().clone(), from.whole(), lines);
    loop {
        let in_groups = lines.inner == 1 && lines.len > SHORT;
        let count = if in_groups { parts_of_groups(lines) } else { parts_of_invocations(lines) };
        let folded = Lines { len: count, ..lines };
        let results = folded.elements();
        let target = if count == 1 { to.buffer().clone() } else { to.group().buffer([results]) };
        if in_groups {
            by_groups(to.arrays(), operator, &from, whole, &target, lines, lines.len.div_ceil(count))?;
        } else {
            by_invocations(to.arrays(), operator, &from, whole, &target, lines, count)?;
        }
        if count == 1 {
            return Ok(());
        }
        (from, whole, lines) = (target, fixed(GridBox::new([0], [results])), folded);
    }
}

/// The number of parts of a line for invocations.
pub(super) fn parts_of_invocations(lines: Lines) -> usize {
    if lines.len <= SHORT {
        return 1;
    }
    (INVOCATIONS / (lines.outer * lines.inner)).clamp(1, lines.len.div_ceil(LEAST))
}

/// The number of parts of a line for groups. None is empty.
fn parts_of_groups(lines: Lines) -> usize {
    let most = (GROUPS / lines.outer).clamp(1, lines.len.div_ceil(GROUP * LEAST));
    lines.len.div_ceil(lines.len.div_ceil(most))
}

#[track_caller]
fn by_invocations<T: Numeric>(
    arrays: &Arrays,
    operator: Known,
    from: &Buffer<T, 1>,
    whole: Fixed<GridBox<1>>,
    to: &Buffer<T, 1>,
    lines: Lines,
    count: usize,
) -> Result<(), ArrayError> {
    let shader = Wgsl::new(operator.text::<T>() + OF_INVOCATION).names(["from", "to"]);
    let shader = shader.parameter("positions", parameter(lines.len));
    let shader = shader.parameter("inner", parameter(lines.inner)).parameter("count", parameter(count));
    let task = arrays.group().task("reduce").over([lines.outer * count * lines.inner]);
    let task = task.read(from, whole).write(to, one_to_one());
    arrays.place().of(task).shader(shader).submit()?;
    Ok(())
}

/// Folds each part of `depth` elements of each line of neighbouring elements.
#[track_caller]
pub(super) fn by_groups<T: Numeric>(
    arrays: &Arrays,
    operator: Known,
    from: &Buffer<T, 1>,
    whole: Fixed<GridBox<1>>,
    to: &Buffer<T, 1>,
    lines: Lines,
    depth: usize,
) -> Result<(), ArrayError> {
    let count = lines.len.div_ceil(depth);
    let shader = Wgsl::new(of_group::<T>(operator)).names(["from", "to"]);
    let shader = shader.groups([GROUP as u32], [lines.outer * count]).uninitialized_workgroup();
    let shader = shader.parameter("positions", parameter(lines.len));
    let shader = shader.parameter("depth", parameter(depth)).parameter("count", parameter(count));
    let results = lines.outer * count;
    let task = arrays.group().task("reduce").over([results]);
    let task = task.read(from, whole).write(to, fixed(GridBox::new([0], [results])));
    arrays.place().of(task).shader(shader).submit()?;
    Ok(())
}

/// The text for groups. Each lane folds every `GROUP`-th element of the part, and then the lanes are folded.
/// A short part has fewer lanes.
fn of_group<T: Numeric>(operator: Known) -> String {
    let each = |text: fn(usize) -> String| (0..AT_ONCE).map(text).collect::<String>();
    let asked = each(|at| format!("let next{at} = from_get(first + at + {}u);\n", at * GROUP));
    let combined = each(|at| format!("result = combine(result, next{at});\n"));
    format!(
        "{combine}
        var<workgroup> lanes: array<{number}, {GROUP}>;

        fn group(id: vec3u, local: vec3u, index: u32) {{
            let first = id.x / count() * positions();
            let begin = id.x % count() * depth();
            let end = min(begin + depth(), positions());
            var at = begin + index;
            if (at < end) {{
                var result = from_get(first + at);
                at = at + {GROUP}u;
                for (; at + {last}u < end; at = at + {step}u) {{
                    {asked}{combined}
                }}
                for (; at < end; at = at + {GROUP}u) {{
                    result = combine(result, from_get(first + at));
                }}
                lanes[index] = result;
            }}
            workgroupBarrier();
            for (var half = {half}u; half > 0u; half = half / 2u) {{
                if (index < half && begin + index + half < end) {{
                    lanes[index] = combine(lanes[index], lanes[index + half]);
                }}
                workgroupBarrier();
            }}
            if (index == 0u) {{
                to_set(id.x, lanes[0]);
            }}
        }}",
        combine = operator.text::<T>(),
        number = wgsl::<T>(),
        last = (AT_ONCE - 1) * GROUP,
        step = AT_ONCE * GROUP,
        half = GROUP / 2,
    )
}
