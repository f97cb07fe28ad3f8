//! Records sequences and replays them.

use super::{
    buffers::{AnyBuffer, with_rank},
    on_device::{Computed, Devices},
    scope::Scope,
    state::{ObjectRef, State},
    tasks::{self, Tiled},
};
use crate::{
    model::name,
    program::{Compute, Reduction, Replays, Setup, Split, computed, padded},
};
use anabranch::{
    Error, SequenceBody,
    device::Device,
    grid::{Chunk, RangeMapper},
    interface::{Over, SequenceTask},
    prelude::*,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

impl Tiled for SequenceTask<'_, 1, Over, ()> {
    fn tiled(self, _: usize, _: usize) -> Self {
        self
    }
}

impl Tiled for SequenceTask<'_, 2, Over, ()> {
    fn tiled(self, rows: usize, cols: usize) -> Self {
        self.tiles(rows, cols)
    }
}

pub fn submit(
    scope: Scope<'_>,
    i: usize,
    buffers: &[AnyBuffer],
    objects: &[HostObject<State>],
    step: &Replays,
    setup: &Setup,
    devices: &Devices,
) -> Result<TaskHandle, Error> {
    let sequence = scope.record(name(i), |body| {
        step.body.iter().enumerate().try_for_each(|(place, compute)| {
            let kernel = Kernel { step: i, place, fails: step.fails, compute: *compute };
            let buffers = (&buffers[compute.from], &buffers[compute.to]);
            let whole = with_rank!(buffers.0, b => GridBox::full(b.extent()).cast::<3>());
            if let Some(place) = compute.place_in_sequence(setup, scope.rt.node(), &whole) {
                let device = place.device().map(|device| devices.get(device));
                let on_device = &ON_DEVICES[usize::from(setup.nodes.is_some())];
                on_device.fetch_add(device.is_some().into(), Relaxed);
                return match buffers {
                    (AnyBuffer::R1(from), AnyBuffer::R1(to)) => record_on(body, from, to, kernel, device),
                    (AnyBuffer::R2(from), AnyBuffer::R2(to)) => record_on(body, from, to, kernel, device),
                    _ => unreachable!("{compute:?} is no kernel for a device"),
                };
            }
            match buffers {
                (AnyBuffer::R1(from), AnyBuffer::R1(to)) => record(body, from, to, kernel),
                (AnyBuffer::R1(from), AnyBuffer::R2(to)) => record(body, from, to, kernel),
                (AnyBuffer::R2(from), AnyBuffer::R1(to)) => record(body, from, to, kernel),
                (AnyBuffer::R2(from), AnyBuffer::R2(to)) => record(body, from, to, kernel),
                _ => unreachable!("{step:?} has one and two dimensions"),
            }
        })?;
        let place = step.body.len();
        step.sum.iter().try_for_each(|sum| match (&buffers[sum.from], &buffers[sum.to]) {
            (AnyBuffer::R1(from), AnyBuffer::R0(to)) => record_sum(body, from, to, i, place, *sum),
            (AnyBuffer::R2(from), AnyBuffer::R0(to)) => record_sum(body, from, to, i, place, *sum),
            _ => unreachable!("{sum:?} goes from one or two dimensions to one element"),
        })?;
        let place = place + 1;
        step.effects.iter().try_for_each(|(object, _)| {
            let task = body.task(Replays::name(place)).once().effect(&objects[*object], sequential());
            task.host(move |replay, (object,)| {
                let mut hash = Replays::seed(i, place, replay) as u64;
                ObjectRef::Sequential(object).touch(&mut hash, replay % 16 == 3);
            })
        })
    })?;
    sequence.replay(step.replays)
}

/// A kernel of a sequence.
#[derive(Clone, Copy)]
struct Kernel {
    step: usize,
    place: usize,
    fails: Option<(usize, u64)>,
    compute: Compute,
}

/// How many kernels of sequences were recorded for devices, on one node and on several.
static ON_DEVICES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// How many kernels of sequences were recorded for devices so far, on one node or on several.
#[allow(dead_code, reason = "the fuzz targets share this module and print no counts")]
pub fn on_devices(on_nodes: bool) -> u64 {
    ON_DEVICES[usize::from(on_nodes)].load(Relaxed)
}

/// Begins a task of a sequence, with these chunks.
fn begin<'b, const K: usize>(
    body: &'b SequenceBody<'b>,
    place: usize,
    space: GridBox<3>,
    split: Split,
) -> SequenceTask<'b, K, Over, ()>
where
    for<'a> SequenceTask<'a, K, Over, ()>: Tiled,
{
    let task = body.task(Replays::name(place)).over(space.cast::<K>()).granularity(split.granularity);
    let task = split.chunks.into_iter().fold(task, SequenceTask::chunks);
    split.tiles.into_iter().fold(task, |task, [rows, cols]| task.tiled(rows, cols))
}

/// Records a recorded kernel, for a device or, if there is none, for the host.
fn record_on<const D: usize>(
    body: &SequenceBody<'_>,
    from: &Buffer<u64, D>,
    to: &Buffer<u64, D>,
    kernel: Kernel,
    device: Option<&Arc<dyn Device>>,
) -> Result<(), Error>
where
    for<'a> SequenceTask<'a, D, Over, ()>: Tiled,
{
    let Kernel { step, place, compute, .. } = kernel;
    let task = begin::<D>(body, place, compute.target, compute.split);
    let task = match device {
        None => task.on_host(),
        Some(device) => task.on(device),
    };
    let computed = Computed::new(&compute, Replays::seed(step, place, 0), true, from);
    let task = task.read(from, computed.reads());
    match compute.update {
        true => task.update(to, one_to_one()).each(computed.update()),
        false => task.write(to, one_to_one()).each(computed.write()),
    }
}

fn record<const A: usize, const B: usize>(
    body: &SequenceBody<'_>,
    from: &Buffer<u64, A>,
    to: &Buffer<u64, B>,
    kernel: Kernel,
) -> Result<(), Error>
where
    for<'a> SequenceTask<'a, B, Over, ()>: Tiled,
{
    let Kernel { step, place, fails, compute } = kernel;
    let Compute { read_pattern, target, write_pattern, update, split, .. } = compute;
    let space = write_pattern.index_space(B, &target);
    let task = begin::<B>(body, place, space, split).read(from, read_pattern);
    // The new value at a point of the index space, whose element is `before`.
    let value = move |tile: &Tile<B>, from: &ReadView<u64, A, AnyBoxes<A>>, p: [usize; B], before: u64| {
        let chunk = Chunk { range: GridBox::new(p, p.map(|i| i + 1)), global: tile.global() };
        let region = RangeMapper::<B, A>::map(&read_pattern, &chunk, from.extent());
        let seed = Replays::seed(step, place, tile.replay());
        computed(seed, padded(write_pattern.point(p)), before, &region, |q| from[q])
    };
    let end = move |tile: &Tile<B>| {
        if fails == Some((place, tile.replay())) && tile.range().contains_point(tile.global().min()) {
            tasks::panic();
        }
    };
    if update {
        task.update(to, write_pattern).kernel(move |tile, (from, to)| {
            for p in tile.points() {
                let target = write_pattern.point(p);
                to[target] = value(tile, from, p, to[target]);
            }
            end(tile);
        })
    } else {
        task.write(to, write_pattern).kernel(move |tile, (from, to)| {
            for p in tile.points() {
                let value = value(tile, from, p, 0);
                to.set(write_pattern.point(p), value);
            }
            end(tile);
        })
    }
}

fn record_sum<const A: usize>(
    body: &SequenceBody<'_>,
    from: &Buffer<u64, A>,
    to: &Buffer<u64, 0>,
    step: usize,
    place: usize,
    sum: Reduction,
) -> Result<(), Error>
where
    for<'a> SequenceTask<'a, A, Over, ()>: Tiled,
{
    let Reduction { space, op, include, split, .. } = sum;
    let task = begin::<A>(body, place, space, split).read(from, one_to_one());
    let task = if include { task.reduce_into(to, op) } else { task.reduce(to, op) };
    task.kernel(move |tile, (from, to)| {
        let seed = Replays::seed(step, place, tile.replay());
        tile.points().for_each(|p| to.combine([], op.value(seed, from[p])));
    })
}
