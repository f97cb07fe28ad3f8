//! `bench`: the speed of the simulation on this machine, without storage and with it. [`storage`] compares
//! the ways to store it.

mod files;
pub mod storage;

use crate::{
    commands::arguments::{MAX_THREADS, threads, whole},
    error::Error,
    kernel::Simd,
    parameters::Parameters,
    report::{
        console::print,
        progress::{Mode, Progress},
    },
    run::{Accounts, FrameOutput, Interrupt, Run},
    start::Start,
};
use anabranch_store::{FileOptions, Stamp, SyncLevel};
use clap::{Args, Subcommand};
use files::{create, memory_folder, path_in};
use std::{fs::File, io::Write, path::Path, time::Instant};

/// Options of `bench`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    /// Measure with this many threads only [default: 1, 2, 4 … ANABRANCH_NUM_THREADS, or all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = whole(1, MAX_THREADS), allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// Another measurement.
    #[command(subcommand)]
    pub other: Option<OtherBench>,
}

/// Measurements other than the speed.
#[derive(Clone, Debug, Subcommand)]
pub enum OtherBench {
    /// Run one simulation without output, to memory, and to a disk with and without sync and compression
    Storage(storage::StorageArgs),
}

/// Rows and columns of the measured grids.
const SIZES: [[usize; 2]; 3] = [[1080, 1920], [512, 512], [4096, 4096]];
/// Cell updates in one run, which takes a fraction of a second.
const UPDATES: u64 = 1_000_000_000;
/// Measured runs, after one to warm up.
const RUNS: usize = 5;

/// Rows and columns of the run that is stored.
const STORED: [usize; 2] = [1080, 1920];
const STORED_FRAMES: u64 = 100;
/// Steps from one frame to the next, as by default.
const STORED_STEPS: u64 = 32;

/// Prints two tables: nanoseconds per cell and step, by size of the grid and number of threads; and the cost
/// of storing frames in a file in memory.
///
/// # Errors
/// When the tables cannot be printed, or the file cannot be written.
pub fn run(args: &BenchArgs) -> Result<(), Error> {
    if let Some(OtherBench::Storage(args)) = &args.other {
        return storage::run(args);
    }
    let simd = Simd::detect();
    print(&format!("ns per cell and step ({simd}, {RUNS} runs)\n{:>13} {:>8}", "grid", "threads"))?;
    print(&format!(" {:>9} {:>9}\n", "least", "median"))?;
    for [rows, cols] in SIZES {
        for threads in thread_counts(args.threads)? {
            let times = measure([rows, cols], threads, simd)?;
            let size = format!("{rows}×{cols}");
            print(&format!("{size:>13} {threads:>8} {:>9.3} {:>9.3}\n", times[0], times[RUNS / 2]))?;
        }
    }
    let threads = threads(args.threads)?;
    stored(threads, simd)
}

/// Prints the time of a run that stores its frames, beside the times of computing alone and of writing alone.
fn stored(threads: usize, simd: Simd) -> Result<(), Error> {
    let path = path_in(&memory_folder());
    let [rows, cols] = STORED;
    let heading = format!(
        "\n{STORED_FRAMES} frames of {rows}×{cols}, {STORED_STEPS} steps each, in {}",
        path.display()
    );
    print(&format!("{heading} ({RUNS} runs)\n{:>24} {:>9} {:>9}\n", "seconds", "least", "median"))?;
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..=RUNS {
        let each = [
            seconds(&path, || run_stored(threads, simd, None)),
            seconds(&path, || write_alone(&path)),
            seconds(&path, || write_plainly(&path)),
            seconds(&path, || run_stored(threads, simd, Some(&path))),
        ];
        for (times, time) in times.iter_mut().zip(each) {
            times.push(time?);
        }
        std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    }
    let names = ["compute alone", "writing alone", "plain write", "both together"];
    let mut medians = [0.0; 4];
    for ((name, times), median) in names.into_iter().zip(&mut times).zip(&mut medians) {
        times.remove(0);
        times.sort_by(f64::total_cmp);
        *median = times[RUNS / 2];
        print(&format!("{name:>24} {:>9.3} {median:>9.3}\n", times[0]))?;
    }
    let [compute, writing, plain, both] = medians;
    print(&format!(
        "together ÷ the longer half: {:.2}; writing speed ÷ plain write: {:.2} (medians)\n",
        both / compute.max(writing),
        plain / writing
    ))
}

/// The time that `work` takes. Removes the file first, so that the time does not include freeing its memory.
fn seconds(path: &Path, work: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    if path.exists() {
        std::fs::remove_file(path).map_err(Error::io("remove", path))?;
    }
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed().as_secs_f64())
}

fn file(path: &Path) -> FileOptions {
    FileOptions::new(path)
        .frames(STORED_FRAMES)
        .frame_shape(&STORED)
        .stamps(true)
        .force(true)
        .sync(SyncLevel::None)
}

fn run_stored(threads: usize, simd: Simd, path: Option<&Path>) -> Result<(), Error> {
    let [rows, cols] = STORED;
    let parameters = Parameters {
        rows,
        cols,
        frames: STORED_FRAMES,
        steps_per_frame: STORED_STEPS,
        ..Parameters::default()
    };
    let run = Run {
        start: Start::initial(parameters),
        until: STORED_FRAMES,
        threads,
        simd,
        device: None,
        queue: 2,
        check_finite: true,
        writer: path.map(|path| create(&file(path))).transpose()?,
        frames: FrameOutput::Whole,
        checkpoints: None,
        progress: &Progress::new(STORED_FRAMES, Mode::Quiet, |_, _| String::new()),
        interrupt: &Interrupt::default(),
        accounts: &Accounts::default(),
    };
    run.run().map(drop)
}

fn frame() -> Vec<f32> {
    (0..STORED[0] * STORED[1]).map(|i| i as f32).collect()
}

fn write_alone(path: &Path) -> Result<(), Error> {
    let frame = frame();
    let mut writer = file(path).create()?;
    for step in 0..STORED_FRAMES {
        writer.append(&frame, Stamp { step, time: step as f64 })?;
    }
    writer.finish()?;
    Ok(())
}

fn write_plainly(path: &Path) -> Result<(), Error> {
    let bytes: Vec<u8> = frame().iter().flat_map(|value| value.to_le_bytes()).collect();
    let write = || -> std::io::Result<()> {
        let mut file = File::create(path)?;
        (0..STORED_FRAMES).try_for_each(|_| file.write_all(&bytes))
    };
    write().map_err(Error::io("write", path))
}

/// 1, 2, 4 … and all threads, or the requested number alone.
fn thread_counts(requested: Option<usize>) -> Result<Vec<usize>, Error> {
    let all = threads(requested)?;
    if requested.is_some() {
        return Ok(vec![all]);
    }
    let mut counts: Vec<usize> = (0..).map(|i| 1 << i).take_while(|&n| n < all).collect();
    counts.push(all);
    Ok(counts)
}

/// The times of several runs, in ascending order, after one to warm up.
fn measure([rows, cols]: [usize; 2], threads: usize, simd: Simd) -> Result<Vec<f64>, Error> {
    let steps_per_frame = 64;
    let updates_per_frame = (rows * cols) as u64 * steps_per_frame;
    let frames = UPDATES.div_ceil(updates_per_frame);
    let parameters = Parameters { rows, cols, frames, steps_per_frame, ..Parameters::default() };
    let mut times = Vec::new();
    for _ in 0..=RUNS {
        let accounts = Accounts::default();
        let run = Run {
            start: Start::initial(parameters.clone()),
            until: frames,
            threads,
            simd,
            device: None,
            queue: 0,
            check_finite: true,
            writer: None,
            frames: FrameOutput::Nowhere,
            checkpoints: None,
            progress: &Progress::new(frames, Mode::Quiet, |_, _| String::new()),
            interrupt: &Interrupt::default(),
            accounts: &accounts,
        };
        run.run()?;
        times.push(accounts.times().computing().as_secs_f64() * 1e9 / (updates_per_frame * frames) as f64);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_double_up_to_all_cores() {
        assert_eq!(thread_counts(Some(3)).unwrap(), [3]);
        let counts = thread_counts(None).unwrap();
        assert_eq!(counts[0], 1);
        assert!(counts.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
