//! The application: its speed, its memory, and how much of its output it hides behind the computation.

use std::{ffi::OsString, time::Instant};

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome, Quantities},
    peers::{
        kernel_gray_scott::{self, STEPS_PER_FRAME},
        ndarray_gray_scott::{self, Vectors},
        pools::{flushing_rayon_pool, rayon_pool},
        program::{OPENMP_GRAY_SCOTT, Program},
    },
    row::{Row, times},
    workloads::{
        application::{simulate, simulate_on},
        frames::{Frames, Place, Way},
    },
};

const NDARRAY: &str = "rayon + ndarray";
const FLUSHING: &str = "the same, flushing denormals";
const NDARRAY_AVX512: &str = "the same with AVX-512";
const OPENMP_AVX512: &str = "OpenMP static, AVX-512, flushing";
const OUR_KERNEL: &str = "rayon with our kernel";

pub fn rows() -> Vec<Row> {
    let speeds = [
        speed("1080x1920", [1080, 1920], 1).bar(0.45).better(0.29),
        speed("1080x1920", [1080, 1920], 2).bar(0.17).better(0.13),
        speed("512x512", [512, 512], 1),
        speed("512x512", [512, 512], 2).bar(0.16).better(0.12),
        speed("4096x4096", [4096, 4096], 1),
        speed("4096x4096", [4096, 4096], 2).bar(0.22).better(0.17),
    ];
    let speeds = speeds.into_iter().map(|row| {
        row.bar(times(1.0 / 3.0, NDARRAY)).bar(times(1.0, OPENMP_AVX512)).bar(times(1.1, OUR_KERNEL))
    });
    let whole = [
        Row::lower(
            "gray-scott/overlap",
            "x",
            "200 frames to `/dev/shm`: time with storing / the longer of computing alone and writing alone",
            |context| overlap(context, Place::Memory, Output::New, 200, 4),
        )
        .bar(1.15)
        .better(1.05),
        Row::lower(
            "gray-scott/overlap-disk",
            "x",
            "the same with 100 frames to a disk, until all are safe on the device",
            |context| overlap(context, Place::Disk, Output::New, 100, 3),
        )
        .bar(1.15)
        .better(1.05),
        Row::lower(
            "gray-scott/overlap-disk-replaced",
            "x",
            "the same, where the file takes the place of that of another run",
            |context| overlap(context, Place::Disk, Output::Replaces, 100, 3),
        )
        .bar(1.15)
        .better(1.05),
        Row::lower("gray-scott/peak-memory", "MB", "largest resident set of the default run", peak_memory)
            .bar(150.0)
            .better(100.0),
        Row::lower(
            "gray-scott/copied-bytes-per-frame",
            "bytes",
            "bytes copied in memory between a frame's buffer and the file",
            copied_bytes,
        )
        .bar(0.0),
    ];
    speeds.chain(whole).collect()
}

fn speed(size: &str, shape: [usize; 2], threads: usize) -> Row {
    let about = "wall time per cell and step, from the first step to the last, from the same new state";
    let run = move |context: &Context| measure_speed(context, shape, threads);
    Row::lower(format!("gray-scott/{size}/{threads}t"), "ns", about, run)
}

pub(super) fn options(pairs: &[(&str, u64)]) -> Vec<OsString> {
    pairs.iter().flat_map(|(name, value)| [OsString::from(name), value.to_string().into()]).collect()
}

/// The work of a contender: the same for all.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) shape: [usize; 2],
    pub(super) frames: usize,
    pub(super) threads: usize,
}

impl Run {
    fn steps(&self) -> usize {
        self.frames * STEPS_PER_FRAME
    }

    /// Nanoseconds per cell and step.
    pub(super) fn figure(&self, seconds: f64) -> Vec<f64> {
        vec![seconds * 1e9 / (self.shape[0] * self.shape[1] * self.steps()) as f64]
    }

    /// Runs the whole program. It ends as soon as the last step is done.
    fn ours(&self) -> Result<Vec<f64>, Failure> {
        let stats = simulate(self.options())?;
        Ok(self.figure(stats.seconds_total - stats.seconds_start_up))
    }

    /// The same on this number of processes, each with the threads of the run.
    fn on_processes(&self, processes: u16) -> Result<Vec<f64>, Failure> {
        let stats = simulate_on(processes, self.options())?;
        Ok(self.figure(stats.seconds_total - stats.seconds_start_up))
    }

    /// The options of the program, which stores nothing.
    pub(super) fn options(&self) -> Vec<OsString> {
        let [rows, cols] = self.shape.map(|side| side as u64);
        let (frames, threads) = (self.frames as u64, self.threads as u64);
        let steps = STEPS_PER_FRAME as u64;
        let mut options =
            options(&[("-r", rows), ("-c", cols), ("-n", frames), ("-e", steps), ("-j", threads)]);
        options.push("--no-output".into());
        options
    }

    /// Runs a simulation of a peer on its pool. As on our side, it starts anew, and only the steps are timed.
    fn on_pool<S: Send>(
        self,
        pool: rayon::ThreadPool,
        new: impl Fn() -> S + Sync,
        run: impl Fn(&mut S, &Self) + Sync,
    ) -> impl FnMut() -> Result<Vec<f64>, Failure> {
        move || {
            let mut simulation = pool.install(&new);
            let begin = Instant::now();
            pool.install(|| run(&mut simulation, &self));
            Ok(self.figure(begin.elapsed().as_secs_f64()))
        }
    }

    fn ndarray(self, pool: rayon::ThreadPool, vectors: Vectors) -> impl FnMut() -> Result<Vec<f64>, Failure> {
        let new = move || ndarray_gray_scott::Simulation::new(self.shape);
        self.on_pool(pool, new, move |simulation, run| {
            (0..run.steps()).for_each(|_| simulation.step(vectors));
        })
    }
}

/// Two processes with a thread each, beside one process with two. Two processes do not begin at the same
/// moment. The first one waits for the other, and that wait is not part of a step. In runs that are longer
/// than those of other rows it matters less.
pub(super) fn on_two_processes(context: &Context, one: &str) -> Result<Outcome, Failure> {
    let shape = [1080, 1920].map(|side| side / context.pick(1, 8));
    let frames = context.pick(16, 1) * frames(context, shape);
    let [two, one_process] = [1, 2].map(|threads| Run { shape, frames, threads });
    Contest::ours(|| two.on_processes(2)).peer(one, || one_process.ours()).run(context, context.pick(6, 1))
}

/// The number of frames of a run that takes about as long for all shapes. A run has several: the memory of the
/// next states is touched for the first time in the first steps, on our side and in peers.
fn frames(context: &Context, shape: [usize; 2]) -> usize {
    let frames = context.pick(1_000_000_000_usize, 1).div_ceil(STEPS_PER_FRAME * shape[0] * shape[1]);
    frames.max(context.pick(4, 1))
}

fn measure_speed(context: &Context, shape: [usize; 2], threads: usize) -> Result<Outcome, Failure> {
    let shape = shape.map(|side| side / context.pick(1, 16));
    let frames = frames(context, shape);
    let run = Run { shape, frames, threads };
    let [kernel_pool, avx512_pool, flushing_pool] = {
        let pool = || flushing_rayon_pool(threads);
        [pool()?, pool()?, pool()?]
    };
    let avx512 = Vectors::avx512().map(|vectors| run.ndarray(avx512_pool, vectors));
    let new = move || kernel_gray_scott::Simulation::new(shape, threads);
    let frames = |simulation: &mut kernel_gray_scott::Simulation, run: &Run| {
        (0..run.frames).for_each(|_| simulation.frame());
    };
    Contest::ours(move || run.ours())
        .peer(NDARRAY, run.ndarray(rayon_pool(threads)?, Vectors::Baseline))
        .peer(FLUSHING, run.ndarray(flushing_pool, Vectors::Baseline))
        .peer_if(avx512, NDARRAY_AVX512, |visit| visit())
        .peer_if(OPENMP_GRAY_SCOTT.start(), OPENMP_AVX512, move |program: &mut Program| {
            let load = Load::back_to_back(1, run.steps());
            let ns = program.time_grid("step", shape, threads, load)?;
            Ok(run.figure(ns[0] * run.steps() as f64 / 1e9))
        })
        .peer(OUR_KERNEL, run.on_pool(kernel_pool, new, frames))
        .run(context, context.pick(5, 1))
}

/// Whether there is a file already where a run stores its frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    New,
    Replaces,
}

/// The time of a run that stores frames divided by the time of the longer of its two halves, computing and
/// writing, each by its median. It is 1 if the shorter half is hidden completely.
fn overlap(
    context: &Context,
    place: Place,
    output: Output,
    count: u64,
    rounds: usize,
) -> Result<Outcome, Failure> {
    let frames = Frames { count: context.pick(count, 2), shape: [1080, 1920] };
    let [rows, cols] = frames.shape.map(|side| side as u64);
    let threads = context.threads as u64;
    let run = options(&[("-r", rows), ("-c", cols), ("-n", frames.count), ("-e", 32), ("-j", threads)]);
    let seconds = |more: Vec<OsString>| -> Result<Vec<f64>, Failure> {
        Ok(vec![simulate(run.iter().cloned().chain(more))?.seconds_total])
    };
    Quantities::new()
        .quantity("both (s)", || {
            let folder = place.folder()?;
            let path: OsString = folder.path().join("output.h5").into();
            if output == Output::Replaces {
                seconds(vec!["--output".into(), path.clone()])?;
            }
            seconds(vec!["--force".into(), "--output".into(), path])
        })
        .quantity("computing alone (s)", || seconds(vec!["--no-output".into()]))
        .quantity("writing alone (s)", || Ok(vec![frames.seconds(Way::Direct, place)?]))
        .run(context.pick(rounds, 1), |medians| medians[0] / medians[1].max(medians[2]))
}

/// Bytes that the writer counts as copied.
fn copied_bytes(context: &Context) -> Result<Outcome, Failure> {
    let frames = context.pick(50, 2);
    Contest::ours(|| {
        let folder = Place::Memory.folder()?;
        let mut arguments = options(&[("-n", frames), ("-j", context.threads as u64)]);
        arguments.extend(["--output".into(), folder.path().join("output.h5").into_os_string()]);
        let stats = simulate(arguments)?;
        let storage = stats.storage.ok_or("nothing was stored")?;
        if stats.stored_frames != frames {
            return Err(format!("{} frames of {frames} were stored", stats.stored_frames).into());
        }
        Ok(vec![storage.bytes_copied as f64 / frames as f64])
    })
    .run(context, 1)
}

fn peak_memory(context: &Context) -> Result<Outcome, Failure> {
    Contest::ours(|| {
        let folder = Place::Memory.folder()?;
        let mut arguments = vec!["--output".into(), folder.path().join("output.h5").into_os_string()];
        if context.smoke {
            arguments.extend(options(&[("-n", 2)]));
        }
        let peak = simulate(arguments)?.peak_rss_bytes;
        Ok(vec![peak.ok_or("this system does not report the peak memory of a process")? as f64 / 1e6])
    })
    .run(context, context.pick(2, 1))
}
