//! `simulate` on several nodes: what differs from a run in one process before it starts.

use crate::{
    Outcome,
    commands::{
        arguments::threads,
        simulate::{
            arguments::SimulateArgs,
            compute, output, plan,
            show::{Processor, say},
            start::{self, Choice},
        },
    },
    error::Error,
    files::whole::WholeFile,
    kernel::Simd,
    run::{Accounts, Interrupt},
};
use anabranch::Runtime;
use anabranch_store::Writer;
use std::sync::OnceLock;

/// Runs a new simulation on the nodes that a launcher such as `mpirun` has started. Node 0 stores the frames and prints.
///
/// # Errors
/// As for one process, when the processes cannot be connected, and when the options ask for something that is not possible on several nodes yet. An error of one
/// node is an error of all.
pub(super) fn run(args: &SimulateArgs) -> Result<Outcome, Error> {
    refuse(args)?;
    let rt = Runtime::builder().threads(1).build()?;
    let accounts = Accounts::default();
    let mut args = args.clone();
    if rt.node() != 0 {
        (args.quiet, args.stats_json) = (true, None);
    }
    // Signals end the process at once: the file is valid at every moment.
    let interrupt = Interrupt::default();
    let (prepared, failure) = match prepare(&args, &rt) {
        Ok(prepared) => (Some(prepared), Ok(())),
        Err(error) => (None, Err(error)),
    };
    // A node that fails here ends the others, too.
    rt.task("prepare the run").collective().host(move |_, ()| failure)?;
    rt.drain(())?;
    let (choice, processor, writer) = prepared.expect("the task has failed otherwise");
    compute(&args, choice, processor, writer, None, &interrupt, &accounts, &OnceLock::new())
}

/// Refuses what is not possible on several nodes yet.
fn refuse(args: &SimulateArgs) -> Result<(), Error> {
    let output = &args.output;
    let wanted = [
        (output.resume, "--resume"),
        (output.checkpoint_every.is_some_and(|frames| frames > 0), "--checkpoint-every"),
        (output.checkpoint_seconds.is_some_and(|seconds| seconds > 0.0), "--checkpoint-seconds"),
    ];
    match wanted.into_iter().find(|(is_wanted, _)| *is_wanted) {
        Some((_, option)) => Err(Error::Usage(format!(
            "{option} is not possible on several nodes yet: leave it out, or start the program without mpirun"
        ))),
        None => Ok(()),
    }
}

type Prepared = (Choice, Processor, Option<Writer<f32>>);

fn prepare(args: &SimulateArgs, rt: &Runtime) -> Result<Prepared, Error> {
    if let Some(path) = &args.stats_json {
        drop(WholeFile::create(path).map_err(Error::io("write", path))?);
    }
    let choice = start::choose(args)?.expect("a run that is not resumed has something to do");
    let processor = Processor { nodes: rt.nodes(), threads: threads(args.threads)?, simd: Simd::detect() };
    say(args, &plan::describe(&choice, &args.output, &processor.to_string())?);
    if rt.node() != 0 || args.output.path().is_none() {
        return Ok((choice, processor, None));
    }
    say(args, "No checkpoints: on several nodes a run that is stopped cannot be resumed yet");
    let writer = output::open(&args.output, &choice)?;
    Ok((choice, processor, Some(writer)))
}
