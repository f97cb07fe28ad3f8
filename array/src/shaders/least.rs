//! Where the least or greatest element is. Of all elements: the element by a fold, and then its first place by
//! another one. Along an axis: its position in each part of a line, and then the best of these positions.

use super::{fold, operator::Known, parameter};
use crate::{
    array::Array,
    error::{ArrayError, Call},
    numeric::Numeric,
    shape::Lines,
};
use anabranch::{
    device::Wgsl,
    prelude::{all, one_to_one},
};

/// The number of the element, and the element, of an array that has elements. Where nothing is a number, it
/// is the first element. The operator is `Min` or `Max`.
#[track_caller]
pub(crate) fn of_all<T: Numeric, const D: usize>(
    array: &Array<T, D>,
    operator: Known,
    call: Call,
) -> Result<(Array<u32, 0>, Array<T, 0>), ArrayError> {
    let best = array.arrays().empty::<T, 0>([], call)?;
    fold::lines(operator, array, &best, Lines::whole(array.len()))?;
    let text = operator.text::<T>()
        + "
        fn each(x: u32) {
            to_set(x, select(4294967295u, x, rank(from_get(x)) == rank(best_get(0u))));
        }
    ";
    let numbers = array.arrays().empty::<u32, D>(array.shape(), call)?;
    let task = array.group().task("find").over([array.len()]).read(array.buffer(), one_to_one());
    let task = task.read(best.buffer(), all()).write(numbers.buffer(), one_to_one());
    array.place().of(task).shader(Wgsl::new(text).names(["from", "best", "to"])).submit()?;
    let number = array.arrays().empty::<u32, 0>([], call)?;
    fold::lines(Known::Min, &numbers, &number, Lines::whole(array.len()))?;
    // Not the result of the fold: an equal element may be a zero of the other sign.
    let value = array.arrays().empty::<T, 0>([], call)?;
    let task = array.group().task("find").over([1]).read(array.buffer(), array.whole());
    let task = task.read(number.buffer(), all()).write(value.buffer(), one_to_one());
    let shader = Wgsl::new("fn each(x: u32) { value_set(x, from_get(number_get(0u))); }");
    array.place().of(task).shader(shader.names(["from", "number", "value"])).submit()?;
    Ok((number, value))
}

/// The position in one part of a line. The parts take turns along the line, so neighbouring invocations read
/// neighbouring elements.
const OF_PART: &str = "
    fn each(x: u32) {
        let column = x % inner();
        let row = x / inner();
        let part = row % count();
        let first = row / count() * positions() * inner() + column;
        var best = part;
        var of_best = rank(from_get(first + part * inner()));
        for (var at = part + count(); at < positions(); at = at + count()) {
            let next = rank(from_get(first + at * inner()));
            if (next IS_BETTER of_best) { best = at; of_best = next; }
        }
        to_set(x, best);
    }
";

/// The best position of those of the parts: of equal elements the first.
const OF_LINE: &str = "
    fn each(x: u32) {
        let column = x % inner();
        let line = x / inner();
        let first = line * positions() * inner() + column;
        var best = parts_get(line * count() * inner() + column);
        var of_best = rank(from_get(first + best * inner()));
        for (var part = 1u; part < count(); part = part + 1u) {
            let at = parts_get((line * count() + part) * inner() + column);
            let next = rank(from_get(first + at * inner()));
            if (next IS_BETTER of_best || (next == of_best && at < best)) { best = at; of_best = next; }
        }
        to_set(x, best);
    }
";

/// The positions in the lines of an array that has elements. The operator is `Min` or `Max`.
#[track_caller]
pub(crate) fn of_lines<T: Numeric, const D: usize>(
    array: &Array<T, D>,
    to: &Array<u32, D>,
    operator: Known,
    lines: Lines,
    call: Call,
) -> Result<(), ArrayError> {
    let count = fold::parts_of_invocations(lines);
    let shader = |text: &str| {
        let is_better = if operator == Known::Min { "<" } else { ">" };
        let shader = Wgsl::new(operator.text::<T>() + &text.replace("IS_BETTER", is_better));
        let shader = shader.parameter("positions", parameter(lines.len)).parameter("count", parameter(count));
        shader.parameter("inner", parameter(lines.inner))
    };
    let of_parts = |to: &Array<u32, 1>| {
        let task = array.group().task("find").over([to.len()]).read(array.buffer(), array.whole());
        let task = array.place().of(task.write(to.buffer(), one_to_one()));
        task.shader(shader(OF_PART).names(["from", "to"])).submit()
    };
    if count == 1 {
        of_parts(&to.first([to.len()]))?;
        return Ok(());
    }
    let parts = array.arrays().empty::<u32, 1>([lines.outer * count * lines.inner], call)?;
    of_parts(&parts)?;
    let task = array.group().task("find").over([to.len()]).read(array.buffer(), array.whole());
    let task = task.read(parts.buffer(), parts.whole()).write(to.buffer(), one_to_one());
    array.place().of(task).shader(shader(OF_LINE).names(["from", "parts", "to"])).submit()?;
    Ok(())
}
