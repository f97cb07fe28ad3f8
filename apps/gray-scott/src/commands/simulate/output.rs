//! The output file that the options describe.

use crate::{
    commands::simulate::arguments::OutputArgs,
    error::Error,
    files::attributes::{DATASET, attributes},
    parameters::Parameters,
};
use anabranch_store::{FileOptions, available_bytes};

/// The file that these parameters and options describe.
///
/// The version of the program is recorded when a file is created, and may differ when it is resumed.
pub fn file_options(parameters: &Parameters, args: &OutputArgs) -> FileOptions {
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

/// Refuses a new file if there is no room for a checkpoint beside it. The room for the frames alone is
/// checked when the file is created.
///
/// # Errors
/// When there is no room, or the free space cannot be read.
pub fn check_room(p: &Parameters, args: &OutputArgs) -> Result<(), Error> {
    let path = &args.output;
    if path.exists() {
        return Ok(());
    }
    let frames = if args.compress.is_some() { 0 } else { p.total_bytes() };
    // A checkpoint is two frames large, and the old one is there until the new one is complete.
    let needed = frames.saturating_add(4 * p.frame_bytes());
    if let Some(available) = available_bytes(path)?
        && needed > available
    {
        return Err(Error::NoSpace { path: path.clone(), needed, available });
    }
    Ok(())
}
