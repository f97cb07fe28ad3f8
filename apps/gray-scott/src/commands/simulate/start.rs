//! The choice of the state to start from: the initial state, or the checkpoint of an interrupted run.

use crate::{
    commands::{
        room::{self, Sharing},
        simulate::arguments::SimulateArgs,
    },
    error::Error,
    files::{attributes::parameters_of, checkpoint},
    parameters::Parameters,
    start::Start,
};
use anabranch_store::Reader;
use std::path::Path;

/// The start of a run.
#[derive(Debug)]
pub struct Choice {
    /// The state, with the parameters of the run.
    pub start: Start,
    /// The number of frames in the file.
    pub stored: u64,
    /// The parameters of the file if it has room for fewer frames than the run.
    pub extends: Option<Parameters>,
    /// A note for the user, if the choice may be a surprise.
    pub note: Option<String>,
}

/// Reads the checkpoint at a path, if there is one.
type ReadCheckpoint = fn(&Path) -> Result<Option<Start>, Error>;

/// The start for this command line; `None` if the run to resume is complete. `read` reads a checkpoint, or
/// opens it for several nodes to read.
///
/// # Errors
/// When the parameters exceed the limits or the memory, the file to resume cannot be read, or the command
/// line contradicts the parameters of that file.
pub fn choose(args: &SimulateArgs, read: ReadCheckpoint, sharing: Sharing) -> Result<Option<Choice>, Error> {
    if args.output.resume {
        return resume(args, read, sharing);
    }
    let parameters = args.parameters.over(&Parameters::default());
    check(&parameters, args, sharing)?;
    Ok(Some(Choice { start: Start::initial(parameters), stored: 0, extends: None, note: None }))
}

/// That nothing is left to do.
pub fn is_complete(args: &SimulateArgs) -> String {
    format!("{} is complete: nothing is left to do", args.output.output.display())
}

/// Refuses parameters that cannot be run, before any memory is taken.
fn check(parameters: &Parameters, args: &SimulateArgs, sharing: Sharing) -> Result<(), Error> {
    if !parameters.is_representable() {
        return Err(Error::Usage(
            "--rows, --cols, --frames, --steps-per-frame: together more than 63 bits can count: choose smaller ones"
                .into(),
        ));
    }
    room::check_run(parameters, args.queue(false), sharing)
}

/// The parameters come from the file. Parameters on the command line must be the same, but for more frames.
fn resume(args: &SimulateArgs, read: ReadCheckpoint, sharing: Sharing) -> Result<Option<Choice>, Error> {
    let path = &args.output.output;
    let reader = Reader::open(path)?;
    let of_file = parameters_of(&reader).ok_or_else(|| Error::NotOurs { path: path.clone() })?;
    let requested = args.parameters.over(&of_file);
    let frames = requested.frames.max(of_file.frames);
    let expected = Parameters { frames, ..of_file.clone() };
    if let Some(difference) = expected.difference(&requested) {
        return Err(Error::Mismatch { path: path.clone(), difference });
    }
    let stored = reader.stored_frames()?;
    if stored == frames {
        return Ok(None);
    }
    check(&requested, args, sharing)?;
    let (start, note) = state(path, requested, stored, read)?;
    let extends = Some(of_file).filter(|of_file| of_file.frames < frames);
    Ok(Some(Choice { start, stored, extends, note }))
}

/// The state of the checkpoint if it exists and fits, and otherwise the initial state. Frames that are stored
/// already are not stored again.
fn state(
    output: &Path,
    parameters: Parameters,
    stored: u64,
    read: ReadCheckpoint,
) -> Result<(Start, Option<String>), Error> {
    let path = checkpoint::path_of(output);
    let again = |why: String| {
        let steps = stored * parameters.steps_per_frame;
        let note = format!("{why}: computing from step 0 again; the stored frames, up to step {steps}, stay");
        Ok((Start::initial(parameters.clone()), Some(note)))
    };
    let Some(start) = read(&path)? else {
        return again(format!("There is no checkpoint {}", path.display()));
    };
    let of_checkpoint = Parameters { frames: parameters.frames, ..start.parameters.clone() };
    if let Some(difference) = parameters.difference(&of_checkpoint) {
        return Err(Error::ForeignCheckpoint { path, output: output.to_owned(), difference });
    }
    if start.frames() > stored {
        return again(format!("{} is ahead of the file", path.display()));
    }
    let note = (start.frames() < stored).then(|| {
        let (step, steps) = (start.step, stored * parameters.steps_per_frame);
        format!("Computing steps {step} to {steps} again, from the checkpoint; the stored frames stay")
    });
    Ok((Start { parameters, ..start }, note))
}
