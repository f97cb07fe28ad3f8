//! The application: its speed, its memory, and how much of its output it hides behind the computation.

use std::{ffi::OsString, time::Instant};

use anabranch_par::flush_denormals;

use crate::{
    harness::{Contest, Context, Failure, Outcome},
    peers::{ndarray_gray_scott::Simulation, pools::rayon_pool},
    row::{Row, times},
    workloads::{
        application::simulate,
        frames::{Frames, Way, memory_folder},
    },
};

const NDARRAY: &str = "rayon + ndarray";

pub fn rows() -> Vec<Row> {
    let speeds = [
        speed("1080x1920", [1080, 1920], 1).bar(0.45).better(0.29),
        speed("1080x1920", [1080, 1920], 2).bar(0.28).better(0.17),
        speed("512x512", [512, 512], 1),
        speed("512x512", [512, 512], 2).bar(0.25).better(0.15),
        speed("4096x4096", [4096, 4096], 1),
        speed("4096x4096", [4096, 4096], 2).bar(0.35).better(0.20),
    ];
    let whole = [
        Row::lower(
            "gray-scott/overlap",
            "x",
            "200 frames: total / max(compute alone, writing alone)",
            overlap,
        )
        .median()
        .bar(1.15)
        .better(1.05),
        Row::lower("gray-scott/peak-memory", "MB", "largest resident set of the default run", peak_memory)
            .median()
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
    speeds.into_iter().map(|row| row.bar(times(1.0 / 3.0, NDARRAY))).chain(whole).collect()
}

fn speed(size: &str, shape: [usize; 2], threads: usize) -> Row {
    let about = "compute time per cell and step of `gray-scott simulate`";
    let run = move |context: &Context| measure_speed(context, shape, threads);
    Row::lower(format!("gray-scott/{size}/{threads}t"), "ns", about, run)
}

fn options(pairs: &[(&str, u64)]) -> Vec<OsString> {
    pairs.iter().flat_map(|(name, value)| [OsString::from(name), value.to_string().into()]).collect()
}

/// Runs the whole program, against the peer in this process. Each run of our side starts anew; the peer continues from
/// its last state.
fn measure_speed(context: &Context, shape: [usize; 2], threads: usize) -> Result<Outcome, Failure> {
    let shape = shape.map(|side| side / context.pick(1, 8));
    let cells = (shape[0] * shape[1]) as u64;
    let frames = context.pick(1_000_000_000u64, 1).div_ceil(64 * cells);
    let [rows, cols] = shape.map(|side| side as u64);
    let mut ours = options(&[("-r", rows), ("-c", cols), ("-n", frames), ("-e", 64), ("-j", threads as u64)]);
    ours.push("--no-output".into());

    let steps = context.pick(100_000_000u64, 1).div_ceil(cells);
    let plain = Peer::new(threads, shape, steps)?;
    let flushing = Peer::new(threads, shape, steps)?;

    Contest::ours(|| Ok(vec![simulate(ours.clone())?.ns_per_cell_step]))
        .peer(NDARRAY, plain.visit(|update| update()))
        .peer("the same, flushing denormals", flushing.visit(|update| flush_denormals(update)))
        .run(context, context.pick(6, 1))
}

struct Peer {
    pool: rayon::ThreadPool,
    simulation: Simulation,
    updates: f64,
    steps: u64,
}

impl Peer {
    fn new(threads: usize, shape: [usize; 2], steps: u64) -> Result<Self, Failure> {
        let pool = rayon_pool(threads)?;
        let updates = (shape[0] * shape[1]) as f64 * steps as f64;
        Ok(Self { pool, simulation: Simulation::new(shape), updates, steps })
    }

    /// Computes some more steps; returns the nanoseconds per cell and step.
    fn visit(mut self, around: fn(&mut dyn FnMut())) -> impl FnMut() -> Result<Vec<f64>, Failure> {
        move || {
            let begin = Instant::now();
            self.pool.install(|| (0..self.steps).for_each(|_| self.simulation.step(around)));
            Ok(vec![begin.elapsed().as_secs_f64() * 1e9 / self.updates])
        }
    }
}

/// The time of a run divided by the time of the longer of its two halves, computing and writing. It is 1 if the shorter
/// half is hidden completely.
fn overlap(context: &Context) -> Result<Outcome, Failure> {
    let frames = Frames { count: context.pick(200, 2), shape: [1080, 1920] };
    let [rows, cols] = frames.shape.map(|side| side as u64);
    let threads = context.threads as u64;
    let run = options(&[("-r", rows), ("-c", cols), ("-n", frames.count), ("-e", 32), ("-j", threads)]);
    let total_seconds = |more: Vec<OsString>| -> Result<f64, Failure> {
        Ok(simulate(run.iter().cloned().chain(more))?.seconds_total)
    };
    Contest::ours(|| {
        let folder = memory_folder()?;
        let output = folder.path().join("output.h5");
        let total = total_seconds(vec!["--output".into(), output.into()])?;
        drop(folder);
        let compute = total_seconds(vec!["--no-output".into()])?;
        let writing = frames.seconds(Way::Direct)?;
        Ok(vec![total / compute.max(writing)])
    })
    .run(context, context.pick(4, 1))
}

/// Bytes that the writer counts as copied.
fn copied_bytes(context: &Context) -> Result<Outcome, Failure> {
    let frames = context.pick(50, 2);
    Contest::ours(|| {
        let folder = memory_folder()?;
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
        let folder = memory_folder()?;
        let mut arguments = vec!["--output".into(), folder.path().join("output.h5").into_os_string()];
        if context.smoke {
            arguments.extend(options(&[("-n", 2)]));
        }
        let peak = simulate(arguments)?.peak_rss_bytes;
        Ok(vec![peak.ok_or("this system does not report the peak memory of a process")? as f64 / 1e6])
    })
    .run(context, context.pick(2, 1))
}
