//! Kernels on devices: the same values as on the host, by recorded kernels.

use super::scope::Scope;
use crate::{
    model::name,
    program::{Compute, ReadPattern, Setup, WritePattern, mix},
};
use anabranch::{
    Error,
    device::{Device, Simulated},
    prelude::*,
    recorded::{Input, Value},
};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

/// A device, with and without its type.
type Both = (Arc<Simulated>, Arc<dyn Device>);

/// The devices of all programs.
fn devices() -> &'static [Both; 3] {
    static DEVICES: OnceLock<[Both; 3]> = OnceLock::new();
    DEVICES.get_or_init(|| {
        [0, 1, 2].map(|number| {
            let delay = Duration::from_micros(30 * number);
            let device = Arc::new(Simulated::builder().delays(number, delay).build());
            (Arc::clone(&device), device as Arc<dyn Device>)
        })
    })
}

/// How many kernels have run on devices, and how many copies there were.
#[allow(dead_code, reason = "the fuzz targets share this module and print no counts")]
pub fn work() -> (u64, u64) {
    let counts = devices().iter().map(|(device, _)| device.counts());
    counts.fold((0, 0), |(launches, copies), counts| {
        (launches + counts.launches, copies + counts.uploads + counts.downloads)
    })
}

/// The device that a kernel runs on; `None` for the host, or if no recorded kernel computes its values.
pub fn device_of(step: &Compute, setup: Setup) -> Option<&'static Arc<dyn Device>> {
    let same = (ReadPattern::Same, WritePattern::Same, None);
    let is_recorded = (step.read_pattern, step.write_pattern, step.fail) == same;
    // One place more than devices: the host.
    let place = (step.place / 4) % (setup.devices + 1);
    let device = devices().get(place).map(|(_, device)| device);
    device.filter(|_| is_recorded && !step.place.is_multiple_of(4) && place < setup.devices)
}

/// Whether the buffer has an element for each point.
pub fn is_inside<const D: usize>(from: &Buffer<u64, D>, step: &Compute) -> bool {
    GridBox::full(from.extent()).cast::<3>().contains(&step.target)
}

/// What [`mix`] does with the bits in which its arguments differ.
fn mixed(bits: Value<'_, u64>) -> Value<'_, u64> {
    let product = bits * 0x9e37_79b9_7f4a_7c15;
    (product << 23) | (product >> 41)
}

/// The value at a point, from what depends on the seed and on the element before.
fn value<'t, const D: usize>(begin: Value<'t, u64>, from: Input<'t, u64, D>) -> Value<'t, u64> {
    let zero = from.here() ^ from.here();
    let indices = (0..3).map(|d| if d < D { from.index(d).convert() } else { zero });
    mixed(indices.fold(begin, |hash, index| mixed(hash ^ index)) ^ from.here())
}

/// Submits a kernel to a device. Its values are those of [`computed`](crate::program::computed) for one element.
pub fn compute<const D: usize>(
    scope: Scope<'_>,
    i: usize,
    from: &Buffer<u64, D>,
    to: &Buffer<u64, D>,
    step: &Compute,
    device: &Arc<dyn Device>,
) -> Result<TaskHandle, Error> {
    let task = scope.task(name(i)).over(step.target.cast::<D>()).on(device).read(from, one_to_one());
    if step.update {
        task.update(to, one_to_one()).each(|(from, to)| to.set(value(mixed(to.here() ^ i as u64), from)))
    } else {
        let nothing = mix(i as u64, 0);
        task.write(to, one_to_one())
            .each(|(from, to)| to.set(value((from.here() ^ from.here()) ^ nothing, from)))
    }
}
