//! `simulate`: from the command line to a stored run, and the verdict about it.
//!
//! This module prepares the run and reports on it; a [`Run`] advances it.

mod arguments;
mod output;
mod plan;
mod start;

pub use arguments::{OutputArgs, ParameterArgs, SimulateArgs, SyncArg};

use crate::{
    Outcome,
    commands::arguments::threads,
    error::Error,
    files::checkpoint,
    kernel::Simd,
    model::presets,
    parameters::Parameters,
    report::{
        console,
        progress::{Mode, Progress, Work},
        shell,
        statistics::{self, RunStats},
    },
    run::{Checkpoints, Interrupt, Run, RunOutcome, Start},
};
use anabranch_store::Writer;
use std::time::Instant;

/// Runs a simulation, new or resumed.
///
/// # Errors
/// When the options contradict the file that is resumed, or the output cannot be written.
pub fn run(args: &SimulateArgs) -> Result<Outcome, Error> {
    let began = Instant::now();
    if args.list_presets {
        return console::print(&presets::table()).map(|()| Outcome::Done);
    }
    let (start, note) = start::choose(args)?;
    let path = args.output.path();
    if start.is_complete() {
        say(args, &format!("{} is complete: nothing is left to do", args.output.output.display()));
        return Ok(Outcome::Done);
    }
    if let Some(note) = note {
        say(args, &note);
    }
    let (threads, simd) = (threads(args.threads), Simd::detect());
    let parameters = start.parameters.clone();
    let queue = if path.is_some() { args.output.io_buffer } else { 0 };
    let on = format!("{threads} threads with {simd}");
    say(args, &plan::describe(&parameters, &args.output, start.first_frame, &on)?);

    let writer = path.map(|_| open(args, &start)).transpose()?;
    let progress = show_progress(args, &start);
    let interrupt = install_interrupt(&progress)?;
    let checkpoints =
        path.map(|path| Checkpoints { path: checkpoint::path_of(path), every: args.output.checkpoint_every });
    let outcome =
        Run { start, threads, simd, queue, writer, checkpoints, progress: &progress, interrupt: &interrupt }
            .run();
    progress.finish();
    let outcome = outcome?;

    let stats = statistics(&parameters, threads, simd, &outcome, began);
    if let Some(path) = &args.stats_json {
        stats.write_json(path)?;
    }
    report(args, &parameters, &stats);
    Ok(if outcome.interrupted { Outcome::Interrupted } else { Outcome::Done })
}

/// Creates the file, or opens it to go on. Removes the checkpoint of an earlier file, which would otherwise
/// be taken for one of this run.
fn open(args: &SimulateArgs, start: &Start) -> Result<Writer<f32>, Error> {
    let options = output::file_options(&start.parameters, &args.output);
    if args.output.resume {
        return Ok(options.resume(start.first_frame)?);
    }
    output::check_room(&start.parameters, &args.output)?;
    let writer = options.create()?;
    checkpoint::remove(&checkpoint::path_of(&args.output.output))?;
    Ok(writer)
}

fn show_progress(args: &SimulateArgs, start: &Start) -> Progress {
    let p = &start.parameters;
    let bytes_per_frame = if args.output.no_output { 0 } else { p.frame_bytes() };
    let work = Work { steps_per_frame: p.steps_per_frame, cells: p.cells(), bytes_per_frame };
    let mode = Mode::detect(args.quiet);
    Progress::starting_at(start.first_frame, p.frames, mode, move |frames, elapsed| {
        work.rates(frames, elapsed)
    })
}

/// Lets Ctrl-C stop the run. The first one is answered at once, although the current frame still takes its
/// time.
fn install_interrupt(progress: &Progress) -> Result<Interrupt, Error> {
    let progress = progress.clone();
    let installed =
        Interrupt::install(move || progress.println("Stopping after this frame; Ctrl-C again stops at once"));
    installed.map_err(Error::Signals)
}

fn statistics(p: &Parameters, threads: usize, simd: Simd, run: &RunOutcome, began: Instant) -> RunStats {
    let summary = run.summary.as_ref();
    RunStats {
        version: env!("CARGO_PKG_VERSION"),
        rows: p.rows,
        cols: p.cols,
        steps: run.frames * p.steps_per_frame,
        frames: run.frames,
        threads,
        simd: simd.to_string(),
        interrupted: run.interrupted,
        seconds_total: began.elapsed().as_secs_f64(),
        seconds_compute: run.compute.as_secs_f64(),
        seconds_waiting_for_storage: run.waiting.as_secs_f64(),
        seconds_start_up: run.began.duration_since(began).as_secs_f64(),
        bytes_written: summary.map_or(0, |summary| summary.stats.bytes),
        stored_frames: summary.map_or(0, |summary| summary.stored_frames),
        peak_rss_bytes: statistics::peak_rss_bytes(),
        storage: summary.map(|summary| (&summary.stats).into()),
        ..RunStats::default()
    }
    .with_rate()
}

/// Prints the verdict and, after an interruption, the command that goes on.
fn report(args: &SimulateArgs, p: &Parameters, stats: &RunStats) {
    say(args, &stats.verdict(args.output.path()));
    if let (true, Some(path)) = (stats.interrupted, args.output.path()) {
        say(
            args,
            &format!(
                "Stopped with {} of {} frames stored. To go on: {}",
                stats.stored_frames,
                p.frames,
                shell::resume_command(path)
            ),
        );
    }
}

/// Prints to standard error, unless `--quiet` was given. Standard output is for results that another program
/// may read.
fn say(args: &SimulateArgs, text: &str) {
    if !args.quiet {
        eprintln!("{text}");
    }
}
