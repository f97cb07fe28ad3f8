//! Gray-Scott on a GPU: the whole program, and one recorded step beside a shader by hand.

use std::{ffi::OsString, mem::swap, sync::Arc};

use anabranch::{
    Runtime,
    device::{Device, DeviceKind},
    grid::{neighborhood, one_to_one},
};
use gray_scott::{
    kernel::RecordedStep,
    model::{Edges, Params},
};

use super::{BARE, bare, open, sized};
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome, Quantities},
    peers::kernel_gray_scott::STEPS_PER_FRAME,
    row::{Row, times},
    rows::gray_scott::{Run, options},
    workloads::{
        application::simulate,
        frames::{Frames, Place, Way},
    },
};

pub fn rows() -> Vec<Row> {
    vec![
        speed("gpu/gray-scott/4096x4096", [4096, 4096]).bar(10.0).better(2.5),
        speed("gpu/gray-scott/1080x1920", [1080, 1920]).bar(15.0).better(4.0),
        Row::lower(
            "gpu/gray-scott/storing",
            "x",
            "400 frames of 1080 × 1920 after 32 steps each to `/dev/shm`: time of the run / time of writing alone",
            storing,
        )
        .bar(1.2)
        .better(1.05),
        Row::lower(
            "gpu/gray-scott/recorded-step",
            "ps",
            "per cell of 4096 × 4096: a step of the model as a recorded kernel, 100 in sequence",
            recorded_step,
        )
        .bar(times(1.2, BARE))
        .better(times(1.0, BARE)),
    ]
}

fn speed(name: &'static str, shape: [usize; 2]) -> Row {
    let about = "wall time of the program per cell and step, from the first step to the last, nothing stored";
    Row::lower(name, "ps", about, move |context| {
        let device = open()?;
        let shape = shape.map(|side| side / context.pick(1, 16));
        let updates = sized(context, &*device, 400_000_000_000, 300_000_000, 1);
        let frames = updates.div_ceil(STEPS_PER_FRAME * shape[0] * shape[1]);
        let run = Run { shape, frames, threads: context.threads };
        let options = [run.options(), on(&device)].concat();
        Contest::ours(|| {
            let stats = simulate(options.iter())?;
            let nanos = run.figure(stats.seconds_total - stats.seconds_start_up);
            Ok(nanos.into_iter().map(|nanos| nanos * 1e3).collect())
        })
        .run(context, context.pick(3, 1))
    })
}

/// The options for a run on this device.
fn on(device: &Arc<dyn Device>) -> Vec<OsString> {
    vec!["--device".into(), device.info().name.clone().into()]
}

fn storing(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let count = if device.info().kind == DeviceKind::Software { 20 } else { 400 };
    let shape = [1080, 1920].map(|side| side / context.pick(1, 16));
    let frames = Frames { count: context.pick(count, 2), shape };
    let [rows, cols] = frames.shape.map(|side| side as u64);
    let threads = context.threads as u64;
    let run = options(&[("-r", rows), ("-c", cols), ("-n", frames.count), ("-e", 32), ("-j", threads)]);
    let run = [run, on(&device)].concat();
    let seconds = |more: Vec<OsString>| -> Result<Vec<f64>, Failure> {
        let stats = simulate(run.iter().cloned().chain(more))?;
        Ok(vec![stats.seconds_total - stats.seconds_start_up])
    };
    Quantities::new()
        .quantity("storing (s)", || {
            let folder = Place::Memory.folder()?;
            seconds(vec!["--output".into(), folder.path().join("output.h5").into()])
        })
        .quantity("computing alone (s)", || seconds(vec!["--no-output".into()]))
        .quantity("writing alone (s)", || Ok(vec![frames.seconds(Way::Direct, Place::Memory)?]))
        .run(context.pick(3, 1), |medians| medians[0] / medians[2])
}

/// A step of the model as the recorded one computes it, with no cells outside the grid.
const STEP: &str = "
@group(0) @binding(0) var<storage, read> u: array<f32>;
@group(0) @binding(1) var<storage, read> v: array<f32>;
@group(0) @binding(2) var<storage, read_write> next_u: array<f32>;
@group(0) @binding(3) var<storage, read_write> next_v: array<f32>;

const ROWS = $ROWSi;
const COLS = $COLSi;
const U_SPREAD = 0.025;
const V_SPREAD = 0.0125;

fn at(y: i32, x: i32) -> vec2f {
    if y < 0 || y >= ROWS || x < 0 || x >= COLS { return vec2f(0.0); }
    let i = y * COLS + x;
    return vec2f(u[i], v[i]);
}

fn column(y: i32, x: i32) -> vec2f { return 2.0 * at(y, x) + (at(y - 1, x) + at(y + 1, x)); }

@compute @workgroup_size(64, 4)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let y = i32(id.y);
    let x = i32(id.x);
    if y >= ROWS || x >= COLS { return; }
    let around = 2.0 * column(y, x) + (column(y, x - 1) + column(y, x + 1));
    let here = at(y, x);
    let uv = here.x * here.y;
    let change = U_SPREAD * around.x + (0.014 - 0.414 * here.x);
    let kept = V_SPREAD * around.y + 0.732 * here.y;
    next_u[y * COLS + x] = here.x + (change - uv * here.y);
    next_v[y * COLS + x] = uv * here.y + kept;
}
";

fn recorded_step(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let side = sized(context, &*device, 4096, 1024, 64);
    let (shape, steps) = ([side, side], sized(context, &*device, 100, 10, 2));
    let runtime = Runtime::builder().threads(1).build()?;
    let [mut u, mut v, mut next_u, mut next_v] = [(); 4].map(|()| runtime.buffer::<f32, 2>(shape));
    let start = runtime.task("start").over(shape).on(&device).write(&u, one_to_one());
    start.write(&v, one_to_one()).each(|(u, v)| {
        let is_spot = u.index(0).ge(100) & u.index(0).lt(200) & u.index(1).ge(100) & u.index(1).lt(200);
        u.set(is_spot.select(0.0, 1.0));
        v.set(is_spot.select(1.0, 0.0));
    })?;
    let step = RecordedStep::new(Params::default(), Edges::Absorbing, false);
    let picos = |nanos: Vec<f64>| -> Vec<f64> {
        nanos.into_iter().map(|nanos| nanos * 1e3 / (side * side * steps) as f64).collect()
    };
    let peer = bare(&device.info().name).map(|bare| {
        let text = STEP.replace("$ROWS", &side.to_string()).replace("$COLS", &side.to_string());
        let [u, v, next_u, next_v] = [(); 4].map(|()| bare.buffer(side * side));
        let groups = [side.div_ceil(64) as u32, side.div_ceil(4) as u32];
        let there = bare.kernel(&text, &[&u, &v, &next_u, &next_v], groups);
        let back = bare.kernel(&text, &[&next_u, &next_v, &u, &v], groups);
        (bare, [there, back])
    });
    let around = || neighborhood([1, 1]);
    let load = Load::back_to_back(3, 1);
    Contest::ours(|| {
        let nanos = load.try_time(|| {
            for _ in 0..steps {
                let task = runtime.task("step").over(shape).on(&device).read(&u, around()).read(&v, around());
                let task = task.write(&next_u, one_to_one()).write(&next_v, one_to_one());
                task.each(move |(u, v, next_u, next_v)| step.record(u, v, next_u, next_v))?;
                swap(&mut u, &mut next_u);
                swap(&mut v, &mut next_v);
            }
            runtime.wait()
        })?;
        Ok(picos(nanos))
    })
    .peer_if(peer, BARE, |(bare, kernels)| Ok(picos(load.try_time(|| bare.launch_and_wait(kernels, steps))?)))
    .run(context, context.pick(5, 1))
}
