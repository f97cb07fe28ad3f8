//! Gathering: each element of the result is one of the array, at given distances along the axes. Broadcasting
//! and permuting the axes are this.

use super::parameter;
use crate::{array::Array, error::ArrayError, numeric::Numeric};
use anabranch::{device::Wgsl, prelude::one_to_one};

const TEXT: &str = "
    fn each(x: u32) {
        var rest = x;
        var at = rest % length_3() * distance_3();
        rest = rest / length_3();
        at = at + rest % length_2() * distance_2();
        rest = rest / length_2();
        at = at + rest % length_1() * distance_1();
        at = at + rest / length_1() * distance_0();
        to_set(x, from_get(at));
    }
";

/// Sets each element of `to` to the element of `from` at these distances along the axes of `to`.
#[track_caller]
pub(crate) fn gather<T: Numeric, const D: usize>(
    name: &'static str,
    from: &Array<T, D>,
    to: &Array<T, D>,
    distances: [usize; D],
) -> Result<(), ArrayError> {
    let padded = |values: [usize; D], with: usize| {
        std::array::from_fn(|axis| if axis + D < 4 { with } else { values[axis + D - 4] })
    };
    let (lengths, distances): ([usize; 4], [usize; 4]) = (padded(to.shape(), 1), padded(distances, 0));
    let mut shader = Wgsl::new(TEXT).names(["from", "to"]);
    for axis in 0..4 {
        shader = shader.parameter(format!("length_{axis}"), parameter(lengths[axis]));
        shader = shader.parameter(format!("distance_{axis}"), parameter(distances[axis]));
    }
    let task = to.group().task(name).over([to.len()]);
    let task = task.read(from.buffer(), from.whole()).write(to.buffer(), one_to_one());
    to.place().of(task).shader(shader).submit()?;
    Ok(())
}
