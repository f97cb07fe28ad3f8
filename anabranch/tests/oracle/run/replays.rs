//! Records sequences and replays them.

use super::{
    buffers::AnyBuffer,
    scope::Scope,
    state::{ObjectRef, State},
    tasks::{self, Tiled},
};
use crate::{
    model::name,
    program::{Compute, Reduction, Replays, computed, padded},
};
use anabranch::{
    Error, SequenceBody,
    grid::{Chunk, RangeMapper},
    interface::{Over, SequenceTask},
    prelude::*,
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
) -> Result<TaskHandle, Error> {
    let sequence = scope.record(name(i), |body| {
        step.body.iter().enumerate().try_for_each(|(place, kernel)| {
            let kernel = Kernel { step: i, place, fails: step.fails, compute: *kernel };
            match (&buffers[kernel.compute.from], &buffers[kernel.compute.to]) {
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
    let space = write_pattern.index_space(B, &target).cast::<B>();
    let task = body.task(Replays::name(place)).over(space).granularity(split.granularity);
    let task = split.chunks.into_iter().fold(task, SequenceTask::chunks);
    let task = split.tiles.into_iter().fold(task, |task, [rows, cols]| task.tiled(rows, cols));
    let task = task.read(from, read_pattern);
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
    let task = body.task(Replays::name(place)).over(space.cast::<A>()).granularity(split.granularity);
    let task = split.chunks.into_iter().fold(task, SequenceTask::chunks);
    let task = split.tiles.into_iter().fold(task, |task, [rows, cols]| task.tiled(rows, cols));
    let task = task.read(from, one_to_one());
    let task = if include { task.reduce_into(to, op) } else { task.reduce(to, op) };
    task.kernel(move |tile, (from, to)| {
        let seed = Replays::seed(step, place, tile.replay());
        tile.points().for_each(|p| to.combine([], op.value(seed, from[p])));
    })
}
