//! `simulate`: from the command line to a stored run, and the verdict about it.
//!
//! This module prepares the run; a [`Run`] advances it; `end` reports on it.

mod announcement;
mod arguments;
mod end;
mod nodes;
mod output;
mod plan;
mod room;
mod show;
mod start;

pub use arguments::{OutputArgs, ParameterArgs, SimulateArgs, SyncArg};

use crate::{
    Outcome,
    commands::{
        arguments::threads,
        room::{Sharing, check_device},
    },
    device,
    error::Error,
    files::{checkpoint, whole::WholeFile},
    kernel::Simd,
    model::presets,
    report::{console, progress::Progress},
    run::{Accounts, Checkpoints, FrameOutput, FrameSink, Interrupt, Run},
    start::Start,
};
use anabranch::Runtime;
use anabranch_store::Writer;
use end::End;
use show::{Processor, say, show_progress};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

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
    if Runtime::launched()?.is_some() {
        return nodes::run(args);
    }
    if let Some(path) = &args.stats_json {
        // A run should not end with the discovery that its statistics cannot be written.
        drop(WholeFile::create(path).map_err(Error::io("write", path))?);
    }
    let Some(mut choice) = start::choose(args, checkpoint::load, Sharing::ALONE)? else {
        say(args, &start::is_complete(args));
        return Ok(Outcome::Done);
    };
    if let Some(note) = choice.note.take() {
        say(args, &note);
    }
    let device::Chosen { device, note } = device::choose(args.device.as_deref())?;
    if let Some(note) = note {
        say(args, &note);
    }
    let parameters = &choice.start.parameters;
    device.iter().try_for_each(|device| check_device(parameters, args.queue(true), device.info()))?;
    let processor = Processor { nodes: 1, threads: threads(args.threads)?, simd: Simd::detect(), device };
    say(args, &plan::describe(&choice, &args.output, &processor.to_string())?);

    // The progress is shown from the start of the run on.
    let shown = Arc::new(OnceLock::<Progress>::new());
    let interrupt = install_interrupt(&shown)?;
    if !output::extend_for(&args.output, &choice, || interrupt.requested())? {
        say(args, &output::not_extended(&args.output));
        return Ok(Outcome::Interrupted);
    }
    let writer = args.output.path().map(|_| output::open(&args.output, &choice)).transpose()?;
    let checkpoints = args.output.checkpoints();
    let frames = if writer.is_some() { FrameOutput::Whole } else { FrameOutput::Nowhere };
    compute(args, choice.start, processor, writer, frames, checkpoints, &interrupt, &accounts, &shown)
}

/// Computes the run, and reports on it.
#[expect(clippy::too_many_arguments, reason = "all that a run consists of")]
fn compute(
    args: &SimulateArgs,
    start: Start,
    processor: Processor,
    writer: Option<Writer<f32>>,
    frames: FrameOutput,
    checkpoints: Option<Checkpoints>,
    interrupt: &Interrupt,
    accounts: &Accounts,
    shown: &OnceLock<Progress>,
) -> Result<Outcome, Error> {
    let parameters = start.parameters.clone();
    let progress = shown.get_or_init(|| show_progress(args, &start, parameters.frames));
    let end = End {
        args,
        parameters: &parameters,
        processor: processor.clone(),
        interrupt,
        accounts,
        first: start.step,
        monitor: writer.as_ref().map(Writer::monitor),
    };
    let outcome = Run {
        start,
        until: parameters.frames,
        threads: processor.threads,
        simd: processor.simd,
        queue: args.queue(processor.device.is_some()),
        device: processor.device,
        check_finite: args.check_finite,
        writer: writer.map(|writer| Box::new(writer) as Box<dyn FrameSink>),
        frames,
        checkpoints,
        progress,
        interrupt,
        accounts,
    }
    .run();
    progress.finish();
    end.report(outcome)
}

/// Lets Ctrl-C stop the run. The first one is answered at once, although the steps in flight still take their
/// time: by a line above the progress, if it is `shown` already.
fn install_interrupt(shown: &Arc<OnceLock<Progress>>) -> Result<Interrupt, Error> {
    let shown = Arc::clone(shown);
    let installed = Interrupt::install(Duration::ZERO, move || {
        let text = "Stopping; Ctrl-C again stops at once";
        match shown.get() {
            Some(progress) => progress.println(text),
            None => eprintln!("{text}"),
        }
    });
    installed.map_err(Error::Signals)
}
