//! Devices: what a program pays for them on the threads that submit and wait. The device is simulated: it
//! computes on a thread of its own.

use std::{
    hint::black_box,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anabranch::{
    Runtime,
    device::{Batch, Device, DeviceStep, Run, Simulated, Upload},
    grid::one_to_one,
};

use rustix::time::ClockId;

use crate::{
    clock,
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
        Row::lower(
            "devices/waiting-cpu",
            "s",
            "processor time of a program that waits a second for a task on a device",
            waiting_cpu,
        )
        .bar(0.02)
        .better(0.005),
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

/// The device sleeps before it gets to the task.
fn waiting_cpu(context: &Context) -> Result<Outcome, Failure> {
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    let runtime = Runtime::builder().threads(context.threads).build()?;
    let u = runtime.buffer::<f32, 1>([64]);
    let wait = context.pick(Duration::from_secs(1), Duration::from_millis(10));
    let memory = device.allocate(4)?;
    Contest::ours(|| {
        let begin = clock::seconds(ClockId::ProcessCPUTime);
        let fill = Box::new(move |put: &mut dyn FnMut(&[u8])| {
            thread::sleep(wait);
            put(&[0; 4]);
        });
        let upload = Upload { to: memory.clone(), runs: vec![Run { offset: 0, bytes: 4 }], fill };
        device.submit(Batch::from([DeviceStep::Upload(upload)]));
        let task = runtime.task("last").over([64]).on(&device).write(&u, one_to_one());
        task.each(|(u,)| u.set(1.0))?;
        runtime.wait()?;
        Ok(vec![clock::seconds(ClockId::ProcessCPUTime) - begin])
    })
    .run(context, context.pick(5, 1))
}
