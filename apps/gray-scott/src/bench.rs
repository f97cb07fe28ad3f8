//! `bench`: the speed of the simulation on this machine, without storage and with it.

use std::fs::File;
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Instant;

use anabranch_store::{FileOptions, Stamp, SyncLevel};

use crate::drive::Drive;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::kernel::Simd;
use crate::options::BenchArgs;
use crate::parameters::Parameters;
use crate::print;
use crate::progress::{Mode, Progress};
use crate::start::Start;

/// Rows and columns of the grids that are measured.
const SIZES: [[usize; 2]; 3] = [[1080, 1920], [512, 512], [4096, 4096]];
/// Cell updates in one run: a fraction of a second.
const UPDATES: u64 = 1_000_000_000;
/// Runs that are measured, after one that is not.
const RUNS: usize = 5;

/// The run that is stored: a frame every 32 steps, as by default.
const STORED: [usize; 2] = [1080, 1920];
const STORED_FRAMES: u64 = 100;
const STORED_STEPS: u64 = 32;

/// Prints two tables: nanoseconds per cell and step, by size of the grid and number of threads; and what storing frames
/// in memory costs.
///
/// # Errors
/// When the tables cannot be printed, or the file cannot be written.
pub fn run(args: &BenchArgs) -> Result<(), Error> {
    let simd = Simd::detect();
    print(&format!("ns per cell and step ({simd}, {RUNS} runs)\n{:>13} {:>8}", "grid", "threads"))?;
    print(&format!(" {:>9} {:>9}\n", "least", "median"))?;
    for [rows, cols] in SIZES {
        for threads in thread_counts(args.threads) {
            let times = measure([rows, cols], threads, simd)?;
            let size = format!("{rows}×{cols}");
            print(&format!("{size:>13} {threads:>8} {:>9.3} {:>9.3}\n", times[0], times[RUNS / 2]))?;
        }
    }
    let threads = thread_counts(args.threads).pop().expect("at least one");
    stored(threads, simd)
}

/// Where files are kept in memory, as far as the system has such a place.
fn memory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    folder.join(format!("gray-scott-bench-{}.h5", std::process::id()))
}

/// A run with its frames stored, beside its two halves alone.
fn stored(threads: usize, simd: Simd) -> Result<(), Error> {
    let path = memory();
    let [rows, cols] = STORED;
    let heading = format!(
        "\n{STORED_FRAMES} frames of {rows}×{cols}, {STORED_STEPS} steps each, in {}",
        path.display()
    );
    print(&format!("{heading} ({RUNS} runs)\n{:>24} {:>9} {:>9}\n", "seconds", "least", "median"))?;
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..=RUNS {
        let each = [
            seconds(|| run_stored(threads, simd, None)),
            seconds(|| write_alone(&path)),
            seconds(|| write_plainly(&path)),
            seconds(|| run_stored(threads, simd, Some(&path))),
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

/// How long `work` takes.
fn seconds(work: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
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
    if let Some(path) = path {
        // Giving back the old file's memory is not what is measured.
        std::fs::remove_file(path).map_err(Error::io("remove", path))?;
    }
    let [rows, cols] = STORED;
    let parameters = Parameters {
        rows,
        cols,
        frames: STORED_FRAMES,
        steps_per_frame: STORED_STEPS,
        ..Parameters::default()
    };
    let drive = Drive {
        start: Start::initial(parameters),
        threads,
        simd,
        queue: 2,
        writer: path.map(|path| file(path).create()).transpose()?,
        checkpoints: None,
        progress: &Progress::new(STORED_FRAMES, Mode::Quiet, |_, _| String::new()),
        interrupt: &Interrupt::default(),
    };
    drive.run().map(drop)
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

/// 1, 2, 4 … and all cores, or the one that is asked for.
fn thread_counts(asked: Option<usize>) -> Vec<usize> {
    let all = asked.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get));
    if asked.is_some() {
        return vec![all];
    }
    let mut counts: Vec<usize> = (0..).map(|i| 1 << i).take_while(|&n| n < all).collect();
    counts.push(all);
    counts
}

/// The times of several runs, in ascending order, after one to warm up.
fn measure([rows, cols]: [usize; 2], threads: usize, simd: Simd) -> Result<Vec<f64>, Error> {
    let steps_per_frame = 64;
    let updates_per_frame = (rows * cols) as u64 * steps_per_frame;
    let frames = UPDATES.div_ceil(updates_per_frame);
    let parameters = Parameters { rows, cols, frames, steps_per_frame, ..Parameters::default() };
    let mut times = Vec::new();
    for _ in 0..=RUNS {
        let drive = Drive {
            start: Start::initial(parameters.clone()),
            threads,
            simd,
            queue: 0,
            writer: None,
            checkpoints: None,
            progress: &Progress::new(frames, Mode::Quiet, |_, _| String::new()),
            interrupt: &Interrupt::default(),
        };
        times.push(drive.run()?.compute.as_secs_f64() * 1e9 / (updates_per_frame * frames) as f64);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_double_up_to_all_cores() {
        assert_eq!(thread_counts(Some(3)), [3]);
        let counts = thread_counts(None);
        assert_eq!(counts[0], 1);
        assert!(counts.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
