//! What a small launch costs.

use std::{
    slice,
    sync::Arc,
    time::{Duration, Instant},
};

use anabranch::{Buffer, Runtime, device::Device, grid::one_to_one};

use super::{BARE, bare, open};
use crate::{
    harness::{Contest, Context, Failure, LeftOut, Load, Outcome},
    peers::bare_wgpu::{BareWgpu, DOUBLE, Kernel},
    row::{Row, times},
};

/// The elements of the small kernel.
const SMALL: usize = 64;

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower(
            "gpu/launch-and-wait",
            "us",
            "a kernel on 64 elements: recording, submission, launch, and waiting for its end",
            launch_and_wait,
        )
        .bar(times(1.2, BARE))
        .better(times(1.05, BARE)),
        Row::lower(
            "gpu/chain",
            "ns",
            "a launch of a chain of 1,000 on 64 elements, each of which comes after the one before: recording, submission, and waiting for the last",
            chain,
        ),
        Row::lower(
            "gpu/longest-submission",
            "us",
            "the longest of 50 calls that submit a kernel while the device works on a long one",
            longest_submission,
        )
        .bar(50.0)
        .better(10.0),
    ]
}

/// A runtime, and the buffers of the small kernel.
fn small(device: &Arc<dyn Device>) -> Result<(Runtime, Buffer<f32, 1>, Buffer<f32, 1>), Failure> {
    let runtime = Runtime::builder().threads(1).build()?;
    let [u, v] = [(); 2].map(|()| runtime.buffer::<f32, 1>([SMALL]));
    runtime.task("start").over([SMALL]).on(device).write(&u, one_to_one()).each(|(u,)| u.set(1.0))?;
    Ok((runtime, u, v))
}

/// The peer with the small kernel.
fn bare_kernel(name: &str) -> Result<(BareWgpu, Kernel), LeftOut> {
    let bare = bare(name)?;
    let kernel = bare.kernel(DOUBLE, &[&bare.buffer(SMALL), &bare.buffer(SMALL)], [1, 1]);
    Ok((bare, kernel))
}

fn launch_and_wait(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let load = Load::back_to_back(context.pick(200, 2), context.pick(10, 1));
    let micros = |nanos: Vec<f64>| nanos.into_iter().map(|nanos| nanos / 1e3).collect();
    let (runtime, u, v) = small(&device)?;
    let bare = bare_kernel(&device.info().name);
    Contest::ours(|| {
        let times = load.try_time(|| {
            let task = runtime.task("double").over([SMALL]).on(&device).read(&u, one_to_one());
            task.write(&v, one_to_one()).each(|(u, v)| v.set(u.here() * 2.0))?.wait()
        });
        Ok(micros(times?))
    })
    .peer_if(bare, BARE, |(bare, kernel)| {
        Ok(micros(load.try_time(|| bare.launch_and_wait(slice::from_ref(kernel), 1))?))
    })
    .run(context, context.pick(10, 1))
}

/// The peer launches all of the chain in one command buffer.
fn chain(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let (launches, load) =
        (context.pick(1000, 2), Load::back_to_back(context.pick(20, 2), context.pick(1, 1)));
    let each = |nanos: Vec<f64>| nanos.into_iter().map(|nanos| nanos / launches as f64).collect();
    let (runtime, u, v) = small(&device)?;
    let bare = bare_kernel(&device.info().name);
    Contest::ours(|| {
        let times = load.try_time(|| {
            for _ in 0..launches {
                let task = runtime.task("double").over([SMALL]).on(&device).read(&u, one_to_one());
                task.write(&v, one_to_one()).each(|(u, v)| v.set(u.here() * 2.0))?;
            }
            runtime.wait()
        });
        Ok(each(times?))
    })
    .peer_if(bare, BARE, |(bare, kernel)| {
        Ok(each(load.try_time(|| bare.launch_and_wait(slice::from_ref(kernel), launches))?))
    })
    .run(context, context.pick(10, 1))
}

fn longest_submission(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let (samples, calls, size) = (context.pick(10, 1), context.pick(50, 2), context.pick(1 << 20, 64));
    let (runtime, u, v) = small(&device)?;
    let long = runtime.buffer::<f32, 1>([size]);
    runtime.task("start").over([size]).on(&device).write(&long, one_to_one()).each(|(u,)| u.set(1.0))?;
    Contest::ours(|| {
        let sample = |_| {
            runtime.task("long").over([size]).on(&device).update(&long, one_to_one()).each(|(u,)| {
                u.set((0..40).fold(u.here(), |value, _| (value.sin() + 1.5).sqrt()));
            })?;
            let mut longest = Duration::ZERO;
            for _ in 0..calls {
                let begin = Instant::now();
                let task = runtime.task("double").over([SMALL]).on(&device).read(&u, one_to_one());
                task.write(&v, one_to_one()).each(|(u, v)| v.set(u.here() * 2.0))?;
                longest = longest.max(begin.elapsed());
            }
            if !context.smoke && device.is_idle() {
                return Err("the device was idle before the last call".into());
            }
            runtime.wait()?;
            Ok(longest.as_secs_f64() * 1e6)
        };
        (0..samples).map(sample).collect()
    })
    .run(context, context.pick(5, 1))
}
