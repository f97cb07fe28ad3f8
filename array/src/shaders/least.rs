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

/// The best of some positions in a line: of equal elements the first. The parts take turns here, too.
const OF_POSITIONS: &str = "
    fn each(x: u32) {
        let column = x % inner();
        let row = x / inner();
        let line = row / next();
        let first = line * positions() * inner() + column;
        let own = line * count() * inner() + column;
        var best = parts_get(own + row % next() * inner());
        var of_best = rank(from_get(first + best * inner()));
        for (var part = row % next() + next(); part < count(); part = part + next()) {
            let at = parts_get(own + part * inner());
            let other = rank(from_get(first + at * inner()));
            if (other IS_BETTER of_best || (other == of_best && at < best)) { best = at; of_best = other; }
        }
        to_set(x, best);
    }
";

/// The positions in the lines of an array that has elements. The operator is `Min` or `Max`. Each pass leaves
/// fewer positions for each line, until there is one.
#[track_caller]
pub(crate) fn of_lines<T: Numeric, const D: usize>(
    array: &Array<T, D>,
    to: &Array<u32, D>,
    operator: Known,
    lines: Lines,
    call: Call,
) -> Result<(), ArrayError> {
    let shader = |text: &str, count: usize| {
        let is_better = if operator == Known::Min { "<" } else { ">" };
        let shader = Wgsl::new(operator.text::<T>() + &text.replace("IS_BETTER", is_better));
        let shader = shader.parameter("positions", parameter(lines.len)).parameter("count", parameter(count));
        shader.parameter("inner", parameter(lines.inner))
    };
    let mut count = fold::parts_of_invocations(lines);
    let mut parts = positions(array, to, Lines { len: count, ..lines }, call)?;
    let task = array.group().task("find").over([parts.len()]).read(array.buffer(), array.whole());
    let task = array.place().of(task.write(parts.buffer(), one_to_one()));
    task.shader(shader(OF_PART, count).names(["from", "to"])).submit()?;
    while count > 1 {
        let next = fold::parts_of_invocations(Lines { len: count, ..lines });
        let best = positions(array, to, Lines { len: next, ..lines }, call)?;
        let task = array.group().task("find").over([best.len()]).read(array.buffer(), array.whole());
        let task = task.read(parts.buffer(), parts.whole()).write(best.buffer(), one_to_one());
        let shader = shader(OF_POSITIONS, count).parameter("next", parameter(next));
        array.place().of(task).shader(shader.names(["from", "parts", "to"])).submit()?;
        (count, parts) = (next, best);
    }
    Ok(())
}

/// An array for some positions of each line: the result if there is one position.
fn positions<T: Numeric, const D: usize>(
    array: &Array<T, D>,
    to: &Array<u32, D>,
    lines: Lines,
    call: Call,
) -> Result<Array<u32, 1>, ArrayError> {
    match lines.len {
        1 => Ok(to.first([to.len()])),
        _ => array.arrays().empty([lines.elements()], call),
    }
}
