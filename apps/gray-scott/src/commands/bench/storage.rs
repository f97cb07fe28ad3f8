//! `bench storage`: one simulation, stored in different ways, side by side.
//!
//! It runs without output, to a file in memory, and to a file in a folder on a disk: with and without
//! synchronisation and compression. Every line shows where the time of that run went, and which side was the
//! limit.

use crate::{
    commands::{
        arguments::{MAX_COUNT, MAX_SIDE, MAX_THREADS, threads, whole},
        bench::files::{MEMORY_FOLDER, create, memory_folder, path_in},
        room,
    },
    error::Error,
    files::whole::WholeFile,
    kernel::Simd,
    parameters::Parameters,
    report::{
        console::print,
        progress::{Mode, Progress},
        statistics::{Limit, RunStats},
        units,
    },
    run::{self, Accounts, FrameOutput, Interrupt, Run, Times},
    start::Start,
};
use anabranch_store::{FileOptions, Stats, SyncLevel, available_bytes};
use clap::Args;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Options of `bench storage`.
#[derive(Args, Clone, Debug)]
pub struct StorageArgs {
    /// The folder on the disk to measure
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,

    /// Rows of the grid
    #[arg(short, long, value_name = "N", default_value_t = 1080, value_parser = whole(1, MAX_SIDE), allow_negative_numbers = true)]
    pub rows: usize,

    /// Columns of the grid
    #[arg(short, long, value_name = "N", default_value_t = 1920, value_parser = whole(1, MAX_SIDE), allow_negative_numbers = true)]
    pub cols: usize,

    /// Frames of each run
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = whole(1, MAX_COUNT), allow_negative_numbers = true)]
    pub frames: u64,

    /// Time steps from one frame to the next
    #[arg(short = 'e', long, value_name = "N", default_value_t = 32, value_parser = whole(1, MAX_COUNT), allow_negative_numbers = true)]
    pub steps_per_frame: u64,

    /// Frames that may wait for storage
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = whole(0usize, 1024), allow_negative_numbers = true)]
    pub io_buffer: usize,

    /// Runs of each kind; the one with the median total is shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole(1usize, 1000), allow_negative_numbers = true)]
    pub runs: usize,

    /// Compute threads [default: ANABRANCH_NUM_THREADS, or all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = whole(1, MAX_THREADS), allow_negative_numbers = true)]
    pub threads: Option<usize>,
}

/// A way to store frames.
struct Way {
    name: &'static str,
    /// The folder; `None` to store nothing.
    folder: Option<PathBuf>,
    sync: SyncLevel,
    compress: Option<u8>,
}

/// The ways that are compared. The first stores nothing.
fn ways(args: &StorageArgs) -> Vec<Way> {
    let way = |name, folder: Option<PathBuf>, sync, compress| Way { name, folder, sync, compress };
    let (memory, disk) = (Some(memory_folder()), Some(args.folder.clone()));
    vec![
        way("no output", None, SyncLevel::None, None),
        way("memory", memory.clone(), SyncLevel::None, None),
        way("memory, deflate 1", memory, SyncLevel::None, Some(1)),
        way("disk, no sync", disk.clone(), SyncLevel::None, None),
        way("disk, sync at the end", disk.clone(), SyncLevel::End, None),
        way("disk, sync each frame", disk.clone(), SyncLevel::Frame, None),
        way("disk, deflate 1", disk, SyncLevel::End, Some(1)),
    ]
}

/// Prints a line for each way, and the conclusion.
///
/// # Errors
/// When there is too little memory or room, a file cannot be written, or the lines cannot be printed.
pub fn run(args: &StorageArgs) -> Result<(), Error> {
    let parameters = Parameters {
        rows: args.rows,
        cols: args.cols,
        frames: args.frames,
        steps_per_frame: args.steps_per_frame,
        ..Parameters::default()
    };
    if !parameters.is_representable() {
        return Err(Error::Usage("--rows, --cols, --frames, --steps-per-frame: choose smaller ones".into()));
    }
    refuse(args, &parameters)?;
    let (threads, simd) = (threads(args.threads)?, Simd::detect());
    print(&format!(
        "{} frames of {}×{}, {} steps each, {threads} threads ({simd}); median of {} runs, in seconds\n\
         memory: {}; disk: {}\n",
        args.frames,
        args.rows,
        args.cols,
        args.steps_per_frame,
        args.runs,
        memory_folder().display(),
        args.folder.display(),
    ))?;
    print(&format!(
        "{:<22} {:>8} {:>8} {:>8} {:>8} {:>8} {:>11}  limit\n",
        "stored in", "total", "compute", "storing", "waiting", "other", "frames at"
    ))?;
    let mut measured = Vec::new();
    for way in ways(args) {
        let stats = median(args, &parameters, &way, threads, simd)?;
        print(&line(way.name, &stats))?;
        measured.push((way.name, stats));
    }
    print(&conclusion(&measured))
}

/// Refuses a measurement for which there is too little memory or room, or whose files cannot be written,
/// before it begins.
fn refuse(args: &StorageArgs, parameters: &Parameters) -> Result<(), Error> {
    room::check_run(parameters, args.io_buffer, room::Sharing::ALONE)?;
    for way in ways(args) {
        let Some(folder) = &way.folder else { continue };
        let path = path_in(folder);
        drop(WholeFile::create(&path).map_err(Error::io("write", &path))?);
        let needed = parameters.total_bytes();
        if way.compress.is_none()
            && let Some(available) = available_bytes(&path)?
            && needed > available
        {
            return Err(Error::NoSpace { path, needed, available });
        }
    }
    if !Path::new(MEMORY_FOLDER).is_dir() {
        return Ok(());
    }
    // A file in memory takes the memory when it is written.
    let needed = run::memory(parameters, args.io_buffer).saturating_add(parameters.total_bytes());
    room::check(needed, "choose fewer --rows, --cols or --frames", || {
        format!("a grid of {} × {} cells with {} frames in memory", args.rows, args.cols, args.frames)
    })
}

/// The run with the median total.
fn median(
    args: &StorageArgs,
    parameters: &Parameters,
    way: &Way,
    threads: usize,
    simd: Simd,
) -> Result<RunStats, Error> {
    let mut runs = Vec::new();
    for _ in 0..args.runs {
        let file = way.folder.as_deref().map(path_in);
        let measured = measure(args, parameters, way, file.as_deref(), threads, simd);
        if let Some(file) = file.filter(|file| file.exists()) {
            fs::remove_file(&file).map_err(Error::io("remove", &file))?;
        }
        let (times, storage) = measured?;
        let stats = RunStats {
            rows: parameters.rows,
            cols: parameters.cols,
            steps: parameters.steps(),
            frames: parameters.frames,
            threads,
            ..RunStats::default()
        };
        runs.push(stats.with_times(&times, storage.as_ref()));
    }
    runs.sort_by(|a, b| a.seconds.total.total_cmp(&b.seconds.total));
    Ok(runs.swap_remove(args.runs / 2))
}

fn measure(
    args: &StorageArgs,
    parameters: &Parameters,
    way: &Way,
    file: Option<&Path>,
    threads: usize,
    simd: Simd,
) -> Result<(Times, Option<Stats>), Error> {
    let accounts = Accounts::default();
    let options = |path: &Path| {
        let options = FileOptions::new(path).frames(parameters.frames).frame_shape(&[args.rows, args.cols]);
        options.stamps(true).force(true).sync(way.sync).compress(way.compress)
    };
    let outcome = Run {
        start: Start::initial(parameters.clone()),
        until: parameters.frames,
        threads,
        simd,
        device: None,
        queue: args.io_buffer,
        check_finite: true,
        writer: file.map(|path| create(&options(path))).transpose()?,
        frames: FrameOutput::Whole,
        checkpoints: None,
        progress: &Progress::new(parameters.frames, Mode::Quiet, |_, _| String::new()),
        interrupt: &Interrupt::default(),
        accounts: &accounts,
    }
    .run()?;
    Ok((accounts.times(), outcome.summary.map(|summary| summary.stats)))
}

fn line(name: &str, stats: &RunStats) -> String {
    let seconds = &stats.seconds;
    let (storing, rate) = match stats.storage {
        Some(storage) => (storage.seconds_storing, units::rate(storage.bytes_per_second, "B")),
        None => (0.0, "-".into()),
    };
    format!(
        "{name:<22} {:>8.3} {:>8.3} {storing:>8.3} {:>8.3} {:>8.3} {rate:>11}  {}\n",
        seconds.total,
        seconds.compute,
        seconds.waiting_for_storage,
        seconds.start_up + seconds.other,
        stats.limit,
    )
}

/// Which ways hide their storing behind the computation, and what the slowest costs.
fn conclusion(measured: &[(&str, RunStats)]) -> String {
    let Some((without, stored)) = measured.split_first() else { return String::new() };
    let limited = |limit| {
        let names: Vec<&str> =
            stored.iter().filter(|(_, stats)| stats.limit == limit).map(|(name, _)| *name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join("; ") }
    };
    let mut text = format!(
        "storage is the limit for: {}\ncompute is the limit for: {}\n",
        limited(Limit::Storage),
        limited(Limit::Compute)
    );
    let total = |stats: &RunStats| stats.seconds.total;
    if let Some((name, slowest)) = stored.iter().max_by(|a, b| total(&a.1).total_cmp(&total(&b.1))) {
        text += &format!(
            "without output a run takes {}; the slowest, {name}, takes {}\n",
            units::duration(Duration::from_secs_f64(total(&without.1))),
            units::duration(Duration::from_secs_f64(total(slowest)))
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statistics of a run that computed and stored for these times, at the same time as far as possible.
    fn stats(compute: u64, storing: u64) -> RunStats {
        let both = compute.min(storing);
        let times = Times {
            only_computing: Duration::from_secs(compute - both),
            computing_and_storing: Duration::from_secs(both),
            only_storing: Duration::from_secs(storing - both),
            ..Times::default()
        };
        RunStats::default().with_times(&times, Some(&Stats::default()))
    }

    #[test]
    fn the_conclusion_names_the_limit_of_every_way() {
        let measured = [("no output", stats(2, 0)), ("memory", stats(2, 1)), ("disk", stats(2, 9))];
        let text = conclusion(&measured);
        assert!(text.contains("storage is the limit for: disk\n"), "{text}");
        assert!(text.contains("compute is the limit for: memory\n"), "{text}");
        assert!(text.contains("the slowest, disk, takes 9.00 s"), "{text}");
    }
}
