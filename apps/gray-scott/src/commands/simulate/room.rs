//! The refusal of runs for which the disk has too little room.

use crate::{commands::simulate::arguments::OutputArgs, error::Error, parameters::Parameters};
use anabranch_store::available_bytes;

/// Refuses a new file if there is no room for a checkpoint beside it. The room for the frames alone is
/// checked when the file is created.
///
/// # Errors
/// When there is no room, or the free space cannot be read.
pub fn check_disk(p: &Parameters, args: &OutputArgs) -> Result<(), Error> {
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
