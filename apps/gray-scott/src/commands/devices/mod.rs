//! `devices`: the devices that there are, and why no GPU can be used.

#[cfg(feature = "gpu")]
mod found;

use crate::error::Error;
use clap::Args;

/// Options of `devices`.
#[derive(Args, Clone, Debug)]
pub struct DevicesArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the devices.
///
/// # Errors
/// When standard output cannot be written, or the program was built without devices.
#[cfg(feature = "gpu")]
pub fn run(args: &DevicesArgs) -> Result<(), Error> {
    crate::report::console::print(&found::text(args.json))
}

/// Prints the devices.
///
/// # Errors
/// The program was built without devices.
#[cfg(not(feature = "gpu"))]
pub fn run(_: &DevicesArgs) -> Result<(), Error> {
    Err(Error::Device(crate::device::NOT_BUILT.to_owned()))
}
