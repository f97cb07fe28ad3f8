//! Devices: what a program pays for them on the threads that submit and wait. The device is simulated: it computes on a thread of its own.

use std::{hint::black_box, sync::Arc, time::Instant};

use anabranch::{
    Runtime,
    device::{Device, Simulated},
    grid::one_to_one,
};

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    row::Row,
};

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower("devices/idle", "ns", "asking a device whether it is idle", idle).bar(20.0).better(2.0),
        Row::lower(
            "devices/submit",
            "us",
            "submitting a recorded kernel to a device, recording included, while the device works",
            submit,
        )
        .bar(2.0)
        .better(0.6),
    ]
}

fn idle(context: &Context) -> Result<Outcome, Failure> {
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    let load = Load::back_to_back(context.pick(100, 3), context.pick(10_000, 1));
    Contest::ours(|| {
        Ok(load.time(|| {
            black_box(black_box(&device).is_idle());
        }))
    })
    .run(context, context.pick(10, 1))
}

fn submit(context: &Context) -> Result<Outcome, Failure> {
    let (samples, tasks) = (context.pick(100, 2), context.pick(500, 2));
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    let runtime = Runtime::builder().threads(1).build()?;
    let [u, v] = [(); 2].map(|()| runtime.buffer::<f32, 1>([64]));
    runtime.task("start").over([64]).on(&device).write(&u, one_to_one()).each(|(u,)| u.set(1.0))?;
    Contest::ours(|| {
        let sample = |_| {
            let begin = Instant::now();
            for _ in 0..tasks {
                let task = runtime.task("step").over([64]).on(&device).read(&u, one_to_one());
                task.write(&v, one_to_one()).each(|(u, v)| v.set(u.here() * 2.0))?;
            }
            let micros = begin.elapsed().as_secs_f64() * 1e6 / tasks as f64;
            runtime.wait()?;
            Ok(micros)
        };
        (0..samples).map(sample).collect()
    })
    .run(context, context.pick(10, 1))
}
