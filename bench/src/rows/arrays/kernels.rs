//! Kernels that a program writes, and waiting when there is nothing to wait for.

use std::{hint::black_box, time::Instant};

use anabranch::grid::{all, one_to_one};
use anabranch_array::Arrays;

use super::bed::{Operation, row, runtime};
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    row::Row,
};

pub fn rows() -> Vec<Row> {
    vec![
        row("kernel/indexing", "a recorded kernel that copies 512,000 `f32`", |bed| {
            let (from, to) = (bed.drawn::<f32, 1>([bed.len()])?, bed.drawn::<f32, 1>([bed.len()])?);
            Ok(Box::new(move || {
                let task = from.arrays().group().task("indexing").over([from.len()]);
                let task = task.read(from.buffer(), one_to_one()).write(to.buffer(), one_to_one());
                task.each(|(from, to)| to.set(from.here()))?;
                from.arrays().wait()
            }) as Operation)
        }),
        row(
            "kernel/indexing_checked",
            "the same with the next element, and 0 behind the last one: each is compared with the edge of the buffer",
            |bed| {
                let (from, to) = (bed.drawn::<f32, 1>([bed.len()])?, bed.drawn::<f32, 1>([bed.len()])?);
                Ok(Box::new(move || {
                    let task = from.arrays().group().task("indexing").over([from.len()]);
                    let task = task.read(from.buffer(), all()).write(to.buffer(), one_to_one());
                    task.each(|(from, to)| to.set(from.at_or([1], 0.0)))?;
                    from.arrays().wait()
                }) as Operation)
            },
        ),
        Row::lower(
            "kernel/launch",
            "us",
            "submitting a recorded kernel on one element, without waiting",
            launch,
        ),
        row("kernel/rand", "a kernel that draws 1000 × 512 uniform `f32`", |bed| {
            let a = bed.drawn::<f32, 2>(bed.matrix)?;
            let mut random = bed.random.clone();
            Ok(Box::new(move || random.fill_uniform(&a).and_then(|()| a.arrays().wait())) as Operation)
        }),
        Row::lower(
            "metal/synchronization/context",
            "ns",
            "waiting for all tasks of the runtime and for the device, if there is one, when all are done",
            |context| idle(context, true),
        ),
        Row::lower(
            "metal/synchronization/stream",
            "ns",
            "waiting for the tasks of a group when all are done",
            |context| idle(context, false),
        ),
    ]
}

fn launch(context: &Context) -> Result<Outcome, Failure> {
    let (samples, tasks) = (context.pick(100, 2), context.pick(500, 2));
    let arrays = Arrays::new(&runtime(context)?);
    let a = arrays.filled([1], 1_u32)?;
    Contest::ours(|| {
        let sample = |_| {
            let begin = Instant::now();
            for _ in 0..tasks {
                a.update(|x| x + 1)?;
            }
            let micros = begin.elapsed().as_secs_f64() * 1e6 / tasks as f64;
            arrays.wait()?;
            Ok(micros)
        };
        (0..samples).map(sample).collect()
    })
    .run(context, context.pick(10, 1))
}

fn idle(context: &Context, is_context: bool) -> Result<Outcome, Failure> {
    let runtime = runtime(context)?;
    let arrays = Arrays::new(&runtime);
    arrays.filled([64], 1_u32)?;
    arrays.wait()?;
    let load = Load::back_to_back(context.pick(100, 3), context.pick(10_000, 1));
    Contest::ours(|| {
        load.try_time(|| -> Result<(), Failure> {
            match (is_context, runtime.device()) {
                (false, _) => black_box(&arrays).wait()?,
                (true, None) => black_box(&runtime).wait()?,
                (true, Some(device)) => {
                    black_box(&runtime).wait()?;
                    black_box(device).wait()?;
                }
            }
            Ok(())
        })
    })
    .run(context, context.pick(10, 1))
}
