//! `bench`: the speed of the simulation on this machine, without storage.

use std::num::NonZero;
use std::thread::available_parallelism;

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

/// Prints a table: nanoseconds per cell and step, by size of the grid and number of threads.
///
/// # Errors
/// When the table cannot be printed.
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
    Ok(())
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
