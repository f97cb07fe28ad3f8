//! Where the least or greatest element is: the element by a fold, and then its first place by another one.

use super::{fold, operator::Known};
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
