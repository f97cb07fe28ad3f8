//! Folds of lines. Each invocation folds every `count`-th element of a line, so that neighbours read neighbouring elements; the results are folded in
//! the same way, until there is one for each line.

use super::{INVOCATIONS, operator::Known, parameter};
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

const TEXT: &str = "
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
    let shader = Wgsl::new(operator.text::<T>() + TEXT).names(["from", "to"]);
    let (mut from, mut whole, mut lines) = (from.buffer().clone(), from.whole(), lines);
    loop {
        let count = parts(lines);
        let folded = Lines { len: count, ..lines };
        let results = lines.outer * count * lines.inner;
        let target = if count == 1 { to.buffer().clone() } else { to.group().buffer([results]) };
        pass(to.arrays(), &shader, &from, whole, &target, lines, count)?;
        if count == 1 {
            return Ok(());
        }
        (from, whole, lines) = (target, fixed(GridBox::new([0], [results])), folded);
    }
}

/// The number of results of a line.
fn parts(lines: Lines) -> usize {
    if lines.len <= SHORT {
        return 1;
    }
    (INVOCATIONS / (lines.outer * lines.inner)).clamp(1, lines.len.div_ceil(LEAST))
}

#[track_caller]
fn pass<T: Numeric>(
    arrays: &Arrays,
    shader: &Wgsl,
    from: &Buffer<T, 1>,
    whole: Fixed<1>,
    to: &Buffer<T, 1>,
    lines: Lines,
    count: usize,
) -> Result<(), ArrayError> {
    let shader = shader.clone().parameter("positions", parameter(lines.len));
    let shader = shader.parameter("inner", parameter(lines.inner)).parameter("count", parameter(count));
    let task = arrays.group().task("reduce").over([lines.outer * count * lines.inner]);
    let task = task.read(from, whole).write(to, one_to_one());
    arrays.place().of(task).shader(shader).submit()?;
    Ok(())
}
