//! Kernels on devices: the same values as on the host, by recorded kernels.

use super::{
    scope::Scope,
    tasks::{Tiled, kernel},
};
use crate::program::{Compute, ReadPattern, Setup, WritePattern, mix};
use anabranch::{
    Error,
    device::{Device, Simulated},
    interface::{Over, TaskBuilder},
    prelude::*,
    recorded::{Input, Value},
};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

/// A device, with and without its type.
type Both = (Arc<Simulated>, Arc<dyn Device>);

/// The devices of all programs, on one node or on several.
fn devices(on_nodes: bool) -> &'static [Both; 3] {
    static DEVICES: [OnceLock<[Both; 3]>; 2] = [const { OnceLock::new() }; 2];
    DEVICES[usize::from(on_nodes)].get_or_init(|| {
        [0, 1, 2].map(|number| {
            let delay = Duration::from_micros(30 * number);
            let device = Arc::new(Simulated::builder().delays(number, delay).build());
            (Arc::clone(&device), device as Arc<dyn Device>)
        })
    })
}

/// How many kernels have run on devices, and how many copies there were.
#[allow(dead_code, reason = "the fuzz targets share this module and print no counts")]
pub fn work(on_nodes: bool) -> (u64, u64) {
    let counts = devices(on_nodes).iter().map(|(device, _)| device.counts());
    counts.fold((0, 0), |(launches, copies), counts| {
        (launches + counts.launches, copies + counts.uploads + counts.downloads)
    })
}

/// Where a recorded kernel runs.
#[derive(Clone, Copy)]
pub enum Place {
    Host,
    Device(&'static Arc<dyn Device>),
}

/// Where a kernel runs on this node, if it is recorded. `None` if no recorded kernel computes its values, and on one node for the host.
pub fn place_of(step: &Compute, setup: Setup, node: u16) -> Option<Place> {
    let same = (ReadPattern::Same, WritePattern::Same, None);
    let is_recorded = (step.read_pattern, step.write_pattern, step.fail) == same;
    if setup.devices == 0 || !is_recorded || step.place.is_multiple_of(4) {
        return None;
    }
    // One place more than devices: the host.
    let place = (step.place / 4 + usize::from(node)) % (setup.devices + 1);
    let on_nodes = setup.nodes.is_some();
    match devices(on_nodes)[..setup.devices].get(place) {
        Some((_, device)) => Some(Place::Device(device)),
        None => on_nodes.then_some(Place::Host),
    }
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

/// Submits a recorded kernel. Its values are those of [`computed`](crate::program::computed) for one element.
pub fn compute<const D: usize>(
    scope: Scope<'_>,
    i: usize,
    from: &Buffer<u64, D>,
    to: &Buffer<u64, D>,
    step: &Compute,
    place: Place,
) -> Result<TaskHandle, Error>
where
    for<'a> TaskBuilder<'a, D, Over, ()>: Tiled,
{
    let task = kernel::<D>(scope, i, step.target, step.split, step.node)?;
    let task = match place {
        Place::Host => task.on_host(),
        Place::Device(device) => task.on(device),
    };
    let task = task.read(from, one_to_one());
    if step.update {
        task.update(to, one_to_one()).each(|(from, to)| to.set(value(mixed(to.here() ^ i as u64), from)))
    } else {
        let nothing = mix(i as u64, 0);
        task.write(to, one_to_one())
            .each(|(from, to)| to.set(value((from.here() ^ from.here()) ^ nothing, from)))
    }
}
