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
    commands::{self, arguments::threads, room::Sharing},
    device,
    error::Error,
    files::{checkpoint, whole::WholeFile},
    kernel::Simd,
    model::presets,
    report::{console, progress::Progress},
    run::{Accounts, Checkpoints, FrameOutput, FrameSink, Interrupt, Run},
    start::Start,
};
use anabranch::{Runtime, device::Device};
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
    let wanted = device::wanted(args.device.as_deref());
    if Runtime::launched()?.is_some() {
        if let Some(name) = wanted {
            return one_node_only(&name);
        }
        return nodes::run(args);
    }
    let device = wanted.as_deref().map(device::open).transpose()?.flatten();
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
    let processor = Processor { nodes: 1, threads: threads(args.threads)?, simd: Simd::detect() };
    let place = device.as_ref().map_or_else(|| processor.to_string(), |device| device.info().name.clone());
    say(args, &plan::describe(&choice, &args.output, &place)?);
    if wanted.is_some() && device.is_none() {
        say(args, "There is no GPU that can be used, so the processor computes: gray-scott devices says why");
    }

    // The progress is shown from the start of the run on.
    let shown = Arc::new(OnceLock::<Progress>::new());
    let interrupt = install_interrupt(&shown)?;
    if !output::extend_for(&args.output, &choice, || interrupt.requested())? {
        say(args, &output::not_extended(&args.output));
        return Ok(Outcome::Interrupted);
    }
    let writer = args.output.path().map(|_| output::open(&args.output, &choice)).transpose()?;
    let checkpoints = args.output.checkpoints();
    let frames = FrameOutput::Whole;
    compute(
        args,
        choice.start,
        (processor, device),
        writer,
        frames,
        checkpoints,
        &interrupt,
        &accounts,
        &shown,
    )
}

/// Refuses a device on several nodes: the first process says so, and the others end quietly.
fn one_node_only(device: &str) -> Result<Outcome, Error> {
    if commands::is_silent() {
        return Ok(Outcome::Reported);
    }
    Err(Error::Usage(format!(
        "--device {device}: a device computes in one process: start it without mpirun, or with --device host"
    )))
}

/// Computes the run, and reports on it.
#[expect(clippy::too_many_arguments, reason = "all that a run consists of")]
fn compute(
    args: &SimulateArgs,
    start: Start,
    (processor, device): (Processor, Option<Arc<dyn Device>>),
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
        processor,
        device: device.clone(),
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
        device,
        queue: args.output.queue(),
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
