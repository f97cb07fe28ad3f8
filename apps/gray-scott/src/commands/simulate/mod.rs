//! `simulate`: from the command line to a stored run, and the verdict about it.
//!
//! This module prepares the run and reports on it; a [`Run`] advances it.

mod arguments;
mod output;
mod plan;
mod room;
mod start;

pub use arguments::{OutputArgs, ParameterArgs, SimulateArgs, SyncArg};

use crate::{
    Outcome,
    commands::arguments::threads,
    error::Error,
    files::{checkpoint, whole::WholeFile},
    kernel::Simd,
    memory,
    model::presets,
    not_finite::NotFinite,
    parameters::Parameters,
    report::{
        console,
        progress::{Mode, Progress, Work},
        shell,
        statistics::RunStats,
    },
    run::{Accounts, Checkpoints, Interrupt, Run, RunOutcome},
    start::Start,
};
use std::fmt;

/// Runs a simulation, new or resumed.
///
/// # Errors
/// When the options contradict the file that is resumed, the run needs more than the machine has, the output
/// cannot be written, or a frame is not finite.
pub fn run(args: &SimulateArgs) -> Result<Outcome, Error> {
    let accounts = Accounts::default();
    if args.list_presets {
        return console::print(&presets::table()).map(|()| Outcome::Done);
    }
    if let Some(path) = &args.stats_json {
        // A run should not end with the discovery that its statistics cannot be written.
        drop(WholeFile::create(path).map_err(Error::io("write", path))?);
    }
    let Some(mut choice) = start::choose(args)? else {
        say(args, &format!("{} is complete: nothing is left to do", args.output.output.display()));
        return Ok(Outcome::Done);
    };
    if let Some(note) = choice.note.take() {
        say(args, &note);
    }
    let processor = Processor { threads: threads(args.threads)?, simd: Simd::detect() };
    say(args, &plan::describe(&choice, &args.output, &processor.to_string())?);

    let parameters = choice.start.parameters.clone();
    let writer = args.output.path().map(|_| output::open(&args.output, &choice)).transpose()?;
    let progress = show_progress(args, &choice.start, parameters.frames);
    let interrupt = install_interrupt(&progress)?;
    let outcome = Run {
        start: choice.start,
        until: parameters.frames,
        threads: processor.threads,
        simd: processor.simd,
        queue: args.output.queue(),
        check_finite: args.check_finite,
        writer,
        checkpoints: args.output.checkpoints(),
        progress: &progress,
        interrupt: &interrupt,
        accounts: &accounts,
    }
    .run();
    progress.finish();
    let outcome = outcome?;

    let stats = statistics(&parameters, processor, &outcome, &accounts);
    if let Some(path) = &args.stats_json {
        stats.write_json(WholeFile::create(path).map_err(Error::io("write", path))?)?;
    }
    report(args, &parameters, &stats);
    match outcome.not_finite {
        Some(place) => {
            let saved = save_last_good(args, &parameters, processor, place, &interrupt)?;
            Err(Error::NotFinite { place, saved })
        }
        None if outcome.interrupted => Ok(Outcome::Interrupted),
        None => Ok(Outcome::Done),
    }
}

/// What computes.
#[derive(Clone, Copy)]
struct Processor {
    threads: usize,
    simd: Simd,
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.threads == 1 { "" } else { "s" };
        write!(f, "{} thread{s} with {}", self.threads, self.simd)
    }
}

fn show_progress(args: &SimulateArgs, start: &Start, until: u64) -> Progress {
    let p = &start.parameters;
    let bytes_per_frame = if args.output.no_output { 0 } else { p.frame_bytes() };
    let work = Work { steps_per_frame: p.steps_per_frame, cells: p.cells(), bytes_per_frame };
    let rates = move |frames, elapsed| work.rates(frames, elapsed);
    Progress::in_steps(start.step, until, p.steps_per_frame, Mode::detect(args.quiet), rates)
}

/// Lets Ctrl-C stop the run. The first one is answered at once, although the steps in flight still take their
/// time.
fn install_interrupt(progress: &Progress) -> Result<Interrupt, Error> {
    let progress = progress.clone();
    let installed = Interrupt::install(move || progress.println("Stopping; Ctrl-C again stops at once"));
    installed.map_err(Error::Signals)
}

/// Saves the state before the frame that is not finite, and says what is left of the run. That state was
/// overwritten since, so it is computed again, from the last checkpoint or from the beginning.
fn save_last_good(
    args: &SimulateArgs,
    parameters: &Parameters,
    processor: Processor,
    place: NotFinite,
    interrupt: &Interrupt,
) -> Result<Option<String>, Error> {
    let Some(output) = args.output.path() else { return Ok(None) };
    let path = checkpoint::path_of(output);
    if place.frame == 0 {
        return Ok(None);
    }
    let good = place.frame * parameters.steps_per_frame;
    let saved = checkpoint::load(&path)?.filter(|saved| saved.step <= good);
    let start = saved.unwrap_or_else(|| Start::initial(parameters.clone()));
    if start.step < good {
        say(
            args,
            &format!("Computing steps {} to {good} again, to save the last state that is finite", start.step),
        );
        let progress = show_progress(args, &start, place.frame);
        let again = Run {
            start: Start { parameters: parameters.clone(), ..start },
            until: place.frame,
            threads: processor.threads,
            simd: processor.simd,
            queue: 0,
            check_finite: false,
            writer: None,
            checkpoints: Some(Checkpoints::on_interruption(path.clone())),
            progress: &progress,
            interrupt,
            accounts: &Accounts::default(),
        }
        .run();
        progress.finish();
        again?;
    }
    let saved = checkpoint::load(&path)?.map_or(0, |saved| saved.step);
    Ok(Some(format!(
        ", with {} frames stored, and {} holds the state after {saved} steps",
        place.frame,
        path.display()
    )))
}

fn statistics(p: &Parameters, processor: Processor, run: &RunOutcome, accounts: &Accounts) -> RunStats {
    let summary = run.summary.as_ref();
    RunStats {
        version: env!("CARGO_PKG_VERSION"),
        rows: p.rows,
        cols: p.cols,
        steps: run.steps,
        frames: run.frames,
        threads: processor.threads,
        simd: processor.simd.to_string(),
        interrupted: run.interrupted,
        stored_frames: summary.map_or(0, |summary| summary.stored_frames),
        peak_rss_bytes: memory::peak_rss_bytes(),
        ..RunStats::default()
    }
    .with_times(&accounts.times(), summary.map(|summary| &summary.stats))
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
