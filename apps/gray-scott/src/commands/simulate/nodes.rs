//! `simulate` on several nodes: what differs from a run in one process before it starts.
//!
//! Each node opens its device, if the run computes on devices. Node 0 reads the command line's files, lays
//! the output file out and prints. It tells the other nodes how the run begins (`announcement.rs`). Each node
//! then opens the file to store its rows.

use crate::{
    Outcome,
    commands::{
        arguments::threads,
        room::{Sharing, check_device},
        simulate::{
            announcement::{self, Beginning},
            arguments::SimulateArgs,
            compute, output, plan,
            show::{Processor, say},
            start,
        },
    },
    device,
    error::Error,
    files::{checkpoint, whole::WholeFile},
    kernel::Simd,
    report::progress::Progress,
    run::{Accounts, FrameOutput, FramePart, Interrupt},
    start::{Fields, Start},
};
use anabranch::{NodeError, Runtime, device::DeviceInfo};
use anabranch_store::{PartWriter, Writer};
use std::{
    ops::ControlFlow,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// Signals within this time are one request to stop: `mpirun` passes a Ctrl-C on as several signals.
const SAME_REQUEST: Duration = Duration::from_secs(2);

/// Runs a simulation, new or resumed, on the nodes that a launcher such as `mpirun` has started.
///
/// # Errors
/// As for one process, and when the processes cannot be connected. An error of one node is an error of all.
pub(super) fn run(args: &SimulateArgs) -> Result<Outcome, Error> {
    let accounts = Accounts::default();
    let rt = Runtime::builder().threads(1).build()?;
    let is_first = rt.node() == 0;
    let mut args = args.clone();
    if !is_first {
        (args.quiet, args.stats_json) = (true, None);
    }
    let outcome = run_quietly(rt, &args, &accounts);
    if is_first { outcome } else { reported_by_node_0(outcome) }
}

/// What a node other than 0 makes of an outcome that all nodes have: node 0 reports it.
fn reported_by_node_0(outcome: Result<Outcome, Error>) -> Result<Outcome, Error> {
    match outcome {
        Ok(_) | Err(Error::NotFinite { .. }) => Ok(Outcome::Reported),
        Err(Error::Runtime(anabranch::Error::Nodes(why))) if matches!(*why, NodeError::Other { .. }) => {
            Ok(Outcome::Reported)
        }
        Err(Error::Runtime(anabranch::Error::Agreed { .. }) | Error::Device(_)) => Ok(Outcome::Reported),
        other => other,
    }
}

fn run_quietly(rt: Runtime, args: &SimulateArgs, accounts: &Accounts) -> Result<Outcome, Error> {
    let shown = Arc::new(OnceLock::new());
    let (chosen, least) = device::choose_on_nodes(&rt, args.device.as_deref())?;
    let device::Chosen { device, note } = chosen;
    if let Some(note) = note {
        say(args, &note);
    }
    let processor =
        Processor { nodes: rt.nodes(), threads: threads(args.threads)?, simd: Simd::detect(), device };
    let interrupt = install_interrupt(&shown, args.quiet);
    let laid_out = match rt.node() {
        0 => lay_out(args, &processor, least.as_ref(), interrupt.as_ref().ok()),
        _ => Ok((None, Beginning::Complete)),
    };
    // A node that fails here ends the others, too.
    let (writer, begins) = rt.agree_result(laid_out)?;
    let beginning = Beginning::from_numbers(&rt.agree(begins.to_numbers())?[0]);
    let prepared = rt.agree_result(open(args, beginning, interrupt))?;
    rt.drain(())?;
    match prepared {
        ControlFlow::Break(outcome) => Ok(outcome),
        ControlFlow::Continue((start, frames, interrupt)) => {
            let checkpoints = args.output.checkpoints();
            compute(args, start, processor, writer, frames, checkpoints, &interrupt, accounts, &shown)
        }
    }
}

/// Lets a signal to any node stop all of them.
fn install_interrupt(shown: &Arc<OnceLock<Progress>>, quiet: bool) -> Result<Interrupt, Error> {
    let shown = Arc::clone(shown);
    let installed = Interrupt::install(SAME_REQUEST, move || {
        if let Some(progress) = shown.get().filter(|_| !quiet) {
            progress.println("Stopping all nodes");
        }
    });
    installed.map_err(Error::Signals)
}

/// On node 0: checks the options, and creates or opens the file. `least` is what the devices of all nodes
/// have.
fn lay_out(
    args: &SimulateArgs,
    processor: &Processor,
    least: Option<&DeviceInfo>,
    interrupt: Option<&Interrupt>,
) -> Result<(Option<Writer<f32>>, Beginning), Error> {
    if let Some(path) = &args.stats_json {
        drop(WholeFile::create(path).map_err(Error::io("write", path))?);
    }
    let here = Runtime::launched()?.map_or(1, |launched| launched.here);
    // Node 0 has whole frames of a compressed file.
    let nodes = if args.output.compress.is_some() { 1 } else { processor.nodes };
    let Some(mut choice) = start::choose(args, checkpoint::open, Sharing { here, nodes })? else {
        say(args, &start::is_complete(args));
        return Ok((None, Beginning::Complete));
    };
    if let Some(note) = choice.note.take() {
        say(args, &note);
    }
    least.map_or(Ok(()), |least| check_device(&choice.start.parameters, args.queue(true), least))?;
    say(args, &plan::describe(&choice, &args.output, &processor.to_string())?);
    if !output::extend_for(&args.output, &choice, || interrupt.is_some_and(Interrupt::requested))? {
        say(args, &output::not_extended(&args.output));
        return Ok((None, Beginning::Interrupted));
    }
    let writer = args.output.path().map(|_| output::open(&args.output, &choice)).transpose()?;
    let announced = match &writer {
        None => announcement::Output::Nowhere,
        Some(writer) => writer.announce().map_or(announcement::Output::Whole, announcement::Output::Parts),
    };
    let Start { parameters, step, fields } = choice.start;
    let is_saved = matches!(fields, Fields::Saved(_));
    let beginning =
        Beginning::Starts { parameters, step, is_saved, stored: choice.stored, output: announced };
    Ok((writer, beginning))
}

/// What a node computes from, where it stores, and what stops it.
type Ready = (Start, FrameOutput, Interrupt);

/// On each node: opens what the run needs, unless it has ended.
fn open(
    args: &SimulateArgs,
    beginning: Beginning,
    interrupt: Result<Interrupt, Error>,
) -> Result<ControlFlow<Outcome, Ready>, Error> {
    let (start, stored, announced) = match beginning {
        Beginning::Complete => return Ok(ControlFlow::Break(Outcome::Done)),
        Beginning::Interrupted => return Ok(ControlFlow::Break(Outcome::Interrupted)),
        Beginning::Starts { parameters, step, is_saved, stored, output } => {
            (announcement::start(parameters, step, is_saved, &args.output.output), stored, output)
        }
    };
    let frames = match announced {
        announcement::Output::Nowhere => FrameOutput::Nowhere,
        announcement::Output::Whole => FrameOutput::Whole,
        announcement::Output::Parts(announcement) => {
            let writer = PartWriter::open(&args.output.output, &announcement)?;
            FrameOutput::Parts(FramePart { writer, first: stored })
        }
    };
    Ok(ControlFlow::Continue((start, frames, interrupt?)))
}
