//! The elements that a mask selects, one after the other: the running sum of the mask says where each one
//! goes.

use super::{operator::Known, scan};
use crate::{
    array::Array,
    error::{ArrayError, Call},
    numeric::Numeric,
    shape::Lines,
};
use anabranch::{device::Wgsl, prelude::one_to_one};

/// Where each selected element goes, from 1 on, and behind the last one how many there are: the running sum
/// of a mask that has elements.
#[track_caller]
pub(crate) fn places<const D: usize>(mask: &Array<u32, D>, call: Call) -> Result<Array<u32, D>, ArrayError> {
    let ones = mask.map(|holds| holds.differs(0).select(1, 0))?;
    let places = mask.arrays().empty(mask.shape(), call)?;
    scan::lines(Known::Sum, &ones, &places, Lines::whole(mask.len()), call)?;
    Ok(places)
}

/// Puts the selected elements at the beginning of `to`. The elements behind them stay unspecified.
#[track_caller]
pub(crate) fn scatter<T: Numeric, const D: usize>(
    from: &Array<T, D>,
    mask: &Array<u32, D>,
    places: &Array<u32, D>,
    to: &Array<T, 1>,
) -> Result<(), ArrayError> {
    let text = "fn each(x: u32) { if (mask_get(x) != 0u) { to_set(places_get(x) - 1u, from_get(x)); } }";
    let task = to.group().task("select").over([from.len()]).read(from.buffer(), one_to_one());
    let task = task.read(mask.buffer(), one_to_one()).read(places.buffer(), one_to_one());
    let shader = Wgsl::new(text).names(["from", "mask", "places", "to"]);
    to.place().of(task.write(to.buffer(), to.whole())).shader(shader).submit()?;
    Ok(())
}

/// Puts the numbers of the selected elements at the beginning of `to`.
#[track_caller]
pub(crate) fn scatter_numbers<const D: usize>(
    mask: &Array<u32, D>,
    places: &Array<u32, D>,
    to: &Array<u32, 1>,
) -> Result<(), ArrayError> {
    let text = "fn each(x: u32) { if (mask_get(x) != 0u) { to_set(places_get(x) - 1u, x); } }";
    let task = to.group().task("find_all").over([mask.len()]).read(mask.buffer(), one_to_one());
    let task = task.read(places.buffer(), one_to_one()).write(to.buffer(), to.whole());
    to.place().of(task).shader(Wgsl::new(text).names(["mask", "places", "to"])).submit()?;
    Ok(())
}
