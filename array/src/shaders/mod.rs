//! The algorithms on devices that take shaders. Where an operation does not run as a recorded kernel, a
//! device without shaders, such as a simulated one, leaves it to the host.
//!
//! All of them see an array as its elements one after the other. Numbers that differ between calls are
//! parameters, so that a device compiles a shader once for each type of numbers.

pub(crate) mod compact;
pub(crate) mod fold;
pub(crate) mod gather;
pub(crate) mod least;
pub(crate) mod operator;
pub(crate) mod product;
pub(crate) mod rank;
pub(crate) mod scan;
pub(crate) mod sort;

use crate::{numeric::Numeric, place::Place};
use anabranch::device::DeviceKind;
use std::fmt::Display;

/// The number of invocations that keep a large GPU busy.
const INVOCATIONS: usize = 1 << 16;

/// The invocations of a group.
const GROUP: usize = 256;

/// Whether the shaders for numbers of type `T` run in a place.
pub(crate) fn run_in<T: Numeric>(place: &Place) -> bool {
    place.device().is_some_and(|device| {
        let info = device.info();
        let has_type = match size_of::<T>() {
            4 => true,
            _ if T::IS_FLOAT => info.has_f64,
            _ => info.has_i64,
        };
        info.kind != DeviceKind::Simulated && has_type
    })
}

/// The type of numbers in WGSL.
fn wgsl<T: Numeric>() -> impl Display {
    T::KIND
}

/// A length or distance as a parameter. No array has more elements than a `u32` counts.
fn parameter(number: usize) -> u32 {
    number as u32
}
