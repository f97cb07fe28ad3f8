//! The choice of the state to start from: the initial state, or the checkpoint of an interrupted run.

use crate::{
    commands::simulate::arguments::SimulateArgs,
    error::Error,
    files::{
        attributes::parameters_of,
        checkpoint::{self, Checkpoint},
    },
    parameters::Parameters,
    run::Start,
};
use anabranch_store::Reader;
use std::path::Path;

/// A start, with a note for the user if the choice may be a surprise.
type Choice = (Start, Option<String>);

/// The start for this command line.
///
/// # Errors
/// When the parameters exceed the limits, the file to resume cannot be read, or the command line
/// contradicts the parameters of that file.
pub fn choose(args: &SimulateArgs) -> Result<Choice, Error> {
    if args.output.resume { resume(args) } else { fresh(args) }
}

fn fresh(args: &SimulateArgs) -> Result<Choice, Error> {
    let parameters = args.parameters.over(&Parameters::default());
    if !parameters.is_representable() {
        return Err(Error::Usage(
            "--rows, --cols, --frames, --steps-per-frame: together more than 63 bits can count: choose smaller ones"
                .into(),
        ));
    }
    Ok((Start::initial(parameters), None))
}

/// The parameters come from the file. Parameters on the command line must be the same.
fn resume(args: &SimulateArgs) -> Result<Choice, Error> {
    let path = &args.output.output;
    let reader = Reader::open(path)?;
    let of_file = parameters_of(&reader).ok_or_else(|| Error::NotOurs { path: path.clone() })?;
    let requested = args.parameters.over(&of_file);
    if let Some(difference) = of_file.difference(&requested) {
        return Err(Error::Mismatch { path: path.clone(), difference });
    }
    let stored = reader.stored_frames()?;
    if stored == of_file.frames {
        let complete = Start { parameters: of_file, first_frame: stored, u: Vec::new(), v: Vec::new() };
        return Ok((complete, None));
    }
    from_checkpoint(path, of_file, stored)
}

/// Starts from the checkpoint if it exists and fits. Without one the run begins again: the frames that are
/// already stored are computed again, with the same result.
fn from_checkpoint(output: &Path, parameters: Parameters, stored: u64) -> Result<Choice, Error> {
    let path = checkpoint::path_of(output);
    let again = |why: String| {
        let note =
            format!("{why}: computing the {stored} stored frames again to get to where the run stopped");
        Ok((Start::initial(parameters.clone()), Some(note)))
    };
    let Some(Checkpoint { parameters: of_checkpoint, frames_done, u, v }) = checkpoint::load(&path)? else {
        return again(format!("There is no checkpoint {}", path.display()));
    };
    if let Some(difference) = parameters.difference(&of_checkpoint) {
        return Err(Error::ForeignCheckpoint { path, output: output.to_owned(), difference });
    }
    if frames_done > stored {
        return again(format!("{} is ahead of the file", path.display()));
    }
    Ok((Start { parameters, first_frame: frames_done, u, v }, None))
}
