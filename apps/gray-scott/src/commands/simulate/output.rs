//! The output file that the options describe.

use crate::{
    commands::simulate::{arguments::OutputArgs, room::check_disk, start::Choice},
    error::Error,
    files::{
        attributes::{DATASET, attributes},
        checkpoint,
        extend::extend,
    },
    parameters::Parameters,
};
use anabranch_store::{FileOptions, Writer};

/// Makes room in the file for more frames, if the run extends it. The answer is false if `stop` has ended
/// that.
///
/// # Errors
/// When the file cannot be extended.
pub fn extend_for(args: &OutputArgs, choice: &Choice, stop: impl Fn() -> bool) -> Result<bool, Error> {
    match &choice.extends {
        Some(old) => extend(&args.output, old, choice.start.parameters.frames, args.compress, stop),
        None => Ok(true),
    }
}

/// That the run was stopped before the file had room for more frames.
pub fn not_extended(args: &OutputArgs) -> String {
    format!("Stopped before {} was extended; it stays as it was", args.output.display())
}

/// Creates the file, or opens it to go on. Removes the checkpoint of an earlier file, which would otherwise
/// be taken for one of this run.
///
/// # Errors
/// When the file cannot be created or resumed.
pub fn open(args: &OutputArgs, choice: &Choice) -> Result<Writer<f32>, Error> {
    let parameters = &choice.start.parameters;
    let options = file_options(parameters, args);
    if args.resume {
        return Ok(options.resume(choice.stored)?);
    }
    check_disk(parameters, args)?;
    let writer = options.create()?;
    checkpoint::remove(&checkpoint::path_of(&args.output))?;
    Ok(writer)
}

/// The file that these parameters and options describe.
///
/// The version of the program is recorded when a file is created, and may differ when it is resumed.
fn file_options(parameters: &Parameters, args: &OutputArgs) -> FileOptions {
    let mut options = FileOptions::new(&args.output)
        .dataset(DATASET)
        .frames(parameters.frames)
        .frame_shape(&[parameters.rows, parameters.cols])
        .stamps(true)
        .force(args.force)
        .sync(args.sync.into())
        .compress(args.compress);
    for (name, value) in attributes(parameters) {
        options = options.attribute(name, value);
    }
    if args.resume {
        return options;
    }
    options.attribute("program", env!("CARGO_PKG_NAME")).attribute("version", env!("CARGO_PKG_VERSION"))
}
