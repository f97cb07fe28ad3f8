//! How fast kernels, sums, scans and copies move bytes.

use std::time::{Duration, Instant};

use anabranch::{
    Runtime,
    grid::{all, one_to_one},
    sum,
};
use anabranch_array::{Array, Arrays};

use super::{BARE, bare, open, sized};
use crate::{
    harness::{Contest, Context, Failure, LeftOut, Load, Outcome},
    peers::{
        bare_wgpu::{BareWgpu, DOUBLE, Kernel},
        cupy::{CUPY, Cupy},
    },
    row::{Row, times},
};

const BARE_COPY: &str = "bare wgpu, copying buffers";

/// The elements of a piece of a copy of the peer.
const PIECE: usize = 1 << 20;

pub fn rows() -> Vec<Row> {
    vec![
        Row::higher(
            "gpu/map",
            "GB/s",
            "bytes read and written by a recorded kernel that doubles 2²⁷ `f32`, 20 launches in sequence",
            map,
        )
        .bar(times(0.8, BARE))
        .better(times(0.95, BARE)),
        Row::higher(
            "gpu/copy",
            "GB/s",
            "bytes read and written by copies of an array of 2²⁷ `f32` to another, 20 in sequence",
            copy,
        )
        .bar(times(0.8, BARE))
        .better(times(0.95, BARE)),
        Row::higher("gpu/sum-1e8", "GB/s", "bytes read by the sum of an array of 10⁸ `f32`", reduce)
            .bar(times(0.7, BARE))
            .better(times(0.9, BARE)),
        Row::lower("gpu/scan-1e8", "us", "the running sums of an array of 10⁸ `f32`", scan)
            .bar(times(3.0, CUPY))
            .better(times(1.5, CUPY)),
        Row::higher("gpu/to-device", "GB/s", "2²⁶ `f32` of the host, until a kernel has read one", to_device)
            .bar(times(0.8, BARE))
            .better(times(0.95, BARE)),
        Row::higher(
            "gpu/to-host",
            "GB/s",
            "2²⁶ `f32` of the device, until a task of the host that reads one begins",
            to_host,
        )
        .bar(times(0.8, BARE))
        .better(times(0.95, BARE)),
    ]
}

/// The peer with its kernel on two large buffers.
struct Doubling {
    bare: BareWgpu,
    kernel: Kernel,
    buffers: [wgpu::Buffer; 2],
}

impl Doubling {
    fn new(name: &str, elements: usize) -> Result<Self, LeftOut> {
        let bare = bare(name)?;
        let buffers = [bare.buffer(elements), bare.buffer(elements)];
        let groups = elements.div_ceil(256).min(65_535) as u32;
        let kernel = bare.kernel(DOUBLE, &[&buffers[0], &buffers[1]], [groups, 1]);
        Ok(Self { bare, kernel, buffers })
    }

    /// Gigabytes per second that its kernel reads and writes.
    fn kernel(&self, launches: usize) -> Result<Vec<f64>, Failure> {
        let bytes = 2 * self.buffers[0].size() as usize * launches;
        let load = Load::back_to_back(3, 1);
        let time = load.try_time(|| self.bare.launch_and_wait(std::slice::from_ref(&self.kernel), launches));
        Ok(speeds(time?, bytes))
    }

    /// The same for copies of buffers.
    fn copies(&self, times: usize) -> Result<Vec<f64>, Failure> {
        let bytes = 2 * self.buffers[0].size() as usize * times;
        let [from, to] = &self.buffers;
        let time = Load::back_to_back(3, 1).try_time(|| self.bare.copy_and_wait(from, to, times));
        Ok(speeds(time?, bytes))
    }
}

/// Gigabytes per second, of these bytes in each of these times in nanoseconds.
fn speeds(nanos: Vec<f64>, bytes: usize) -> Vec<f64> {
    nanos.into_iter().map(|nanos| bytes as f64 / nanos).collect()
}

fn map(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let elements = sized(context, &*device, 1 << 27, 1 << 22, 1 << 10);
    let launches = context.pick(20, 2);
    let runtime = Runtime::builder().threads(1).build()?;
    let [u, v] = [(); 2].map(|()| runtime.buffer::<f32, 1>([elements]));
    let start = runtime.task("start").over([elements]).on(&device).write(&u, one_to_one());
    start.each(|(u,)| u.set(u.index(0).convert::<f32>()))?;
    let peer = Doubling::new(&device.info().name, elements);
    let copying = Doubling::new(&device.info().name, elements);
    Contest::ours(|| {
        let times = Load::back_to_back(3, 1).try_time(|| {
            for _ in 0..launches {
                let task = runtime.task("double").over([elements]).on(&device).read(&u, one_to_one());
                task.write(&v, one_to_one()).each(|(u, v)| v.set(u.here() * 2.0))?;
            }
            runtime.wait()
        });
        Ok(speeds(times?, 8 * elements * launches))
    })
    .peer_if(peer, BARE, |peer| peer.kernel(launches))
    .peer_if(copying, BARE_COPY, |peer| peer.copies(launches))
    .run(context, context.pick(5, 1))
}

/// An array of numbers on the device.
fn array(context: &Context, elements: usize) -> Result<Array<f32, 1>, Failure> {
    let runtime = Runtime::builder().threads(context.threads).device(&open()?).build()?;
    let array = Arrays::new(&runtime).random(1).uniform([elements])?;
    array.arrays().wait()?;
    Ok(array)
}

fn copy(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let (elements, times) = (sized(context, &*device, 1 << 27, 1 << 22, 1 << 10), context.pick(20, 2));
    let (from, peer) = (array(context, elements)?, Doubling::new(&device.info().name, elements));
    let to = from.copy()?;
    Contest::ours(|| {
        let nanos = Load::back_to_back(3, 1).try_time(|| {
            (0..times).try_for_each(|_| to.copy_from(&from))?;
            to.arrays().wait()
        })?;
        Ok(speeds(nanos, 8 * elements * times))
    })
    .peer_if(peer, BARE, |peer| peer.copies(times))
    .run(context, context.pick(5, 1))
}

/// The peer's kernel reads and writes: its speed is the bandwidth that a sum could use for reading alone.
fn reduce(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let elements = sized(context, &*device, 100_000_000, 10_000_000, 1000);
    let (array, peer) = (array(context, elements)?, Doubling::new(&device.info().name, elements));
    let batch = context.pick(20, 1);
    Contest::ours(|| {
        let nanos = Load::back_to_back(3, 1).try_time(|| {
            (0..batch).try_for_each(|_| array.reduce(sum()).map(drop))?;
            array.arrays().wait()
        })?;
        Ok(speeds(nanos, 4 * elements * batch))
    })
    .peer_if(peer, BARE, |peer| peer.kernel(batch))
    .peer_if(Cupy::start(), CUPY, |cupy| {
        Ok(speeds(cupy.time("sum", elements, Load::back_to_back(3, batch))?, 4 * elements))
    })
    .run(context, context.pick(5, 1))
}

fn scan(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let elements = sized(context, &*device, 100_000_000, 10_000_000, 1000);
    let array = array(context, elements)?;
    let batch = context.pick(5, 1);
    let micros = |nanos: Vec<f64>, batch: usize| -> Vec<f64> {
        nanos.into_iter().map(|nanos| nanos / 1e3 / batch as f64).collect()
    };
    Contest::ours(|| {
        let nanos = Load::back_to_back(3, 1).try_time(|| {
            (0..batch).try_for_each(|_| array.scan(sum()).map(drop))?;
            array.arrays().wait()
        })?;
        Ok(micros(nanos, batch))
    })
    .peer_if(Cupy::start(), CUPY, |cupy| {
        Ok(micros(cupy.time("scan", elements, Load::back_to_back(3, batch))?, 1))
    })
    .run(context, context.pick(5, 1))
}

/// The peer's buffers for a copy in pieces.
struct Pieces {
    bare: BareWgpu,
    on_device: wgpu::Buffer,
    by: Vec<wgpu::Buffer>,
}

impl Pieces {
    fn new(
        name: &str,
        elements: usize,
        piece: fn(&BareWgpu, usize) -> wgpu::Buffer,
    ) -> Result<Self, LeftOut> {
        let bare = bare(name)?;
        let on_device = bare.buffer(elements);
        let by = (0..elements.div_ceil(PIECE)).map(|_| piece(&bare, PIECE.min(elements))).collect();
        Ok(Self { bare, on_device, by })
    }
}

/// The speeds of three copies of these bytes.
fn three(mut sample: impl FnMut() -> Result<Duration, Failure>, bytes: usize) -> Result<Vec<f64>, Failure> {
    let nanos = (0..3).map(|_| Ok(sample()?.as_secs_f64() * 1e9)).collect::<Result<Vec<_>, Failure>>()?;
    Ok(speeds(nanos, bytes))
}

fn to_device(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let elements = sized(context, &*device, 1 << 26, 1 << 24, 1 << 10);
    let runtime = Runtime::builder().threads(context.threads).build()?;
    let (large, one) = (runtime.buffer::<f32, 1>([elements]), runtime.buffer::<f32, 1>([1]));
    let peer = Pieces::new(&device.info().name, elements, BareWgpu::to_upload);
    let source = vec![1.0; elements];
    Contest::ours(|| {
        let sample = || {
            let fill = runtime.task("fill").over([elements]).on_host().write(&large, one_to_one());
            fill.each(|(large,)| large.set(large.index(0).convert::<f32>()))?.wait()?;
            let begin = Instant::now();
            let task = runtime.task("take").over([1]).on(&device).read(&large, all());
            task.write(&one, one_to_one()).each(|(large, one)| one.set(large.at_or([0], 0.0)))?.wait()?;
            Ok(begin.elapsed())
        };
        three(sample, 4 * elements)
    })
    .peer_if(peer, BARE, |Pieces { bare, on_device, by }| {
        let sample = || {
            bare.map(by)?;
            let begin = Instant::now();
            bare.upload(&source, by, on_device)?;
            Ok(begin.elapsed())
        };
        three(sample, 4 * elements)
    })
    .run(context, context.pick(5, 1))
}

fn to_host(context: &Context) -> Result<Outcome, Failure> {
    let device = open()?;
    let elements = sized(context, &*device, 1 << 26, 1 << 24, 1 << 10);
    let runtime = Runtime::builder().threads(context.threads).build()?;
    let (large, one) = (runtime.buffer::<f32, 1>([elements]), runtime.buffer::<f32, 1>([1]));
    let peer = Pieces::new(&device.info().name, elements, BareWgpu::to_download);
    let mut target = vec![1.0; elements];
    Contest::ours(|| {
        let sample = || {
            let fill = runtime.task("fill").over([elements]).on(&device).write(&large, one_to_one());
            fill.each(|(large,)| large.set(large.index(0).convert::<f32>()))?.wait()?;
            let begin = Instant::now();
            let task = runtime.task("take").over([1]).on_host().read(&large, all());
            task.write(&one, one_to_one()).each(|(large, one)| one.set(large.at_or([0], 0.0)))?.wait()?;
            Ok(begin.elapsed())
        };
        three(sample, 4 * elements)
    })
    .peer_if(peer, BARE, |Pieces { bare, on_device, by }| {
        let sample = || {
            let begin = Instant::now();
            bare.download(on_device, by, &mut target)?;
            Ok(begin.elapsed())
        };
        three(sample, 4 * elements)
    })
    .run(context, context.pick(5, 1))
}
