//! The device that computes, as the command line or the environment names it.

use crate::error::Error;
use anabranch::device::Device;
use std::{env, sync::Arc};

/// The environment variable that names the device if the command line does not.
const VARIABLE: &str = "ANABRANCH_DEVICE";

/// What the user asks for; `None` for the processor.
pub(crate) fn wanted(option: Option<&str>) -> Option<String> {
    let of_environment = || env::var_os(VARIABLE).map(|value| value.to_string_lossy().into_owned());
    let wanted = option.map(str::to_string).or_else(|| of_environment().filter(|value| !value.is_empty()));
    wanted.filter(|wanted| wanted.trim() != "host")
}

/// Opens the device with this name, or a GPU: `gpu` and `auto`. `None` if there is none for `auto`.
///
/// # Errors
/// [`Error::Device`] if there is no such device, or it cannot be opened.
#[cfg(feature = "gpu")]
pub(crate) fn open(wanted: &str) -> Result<Option<Arc<dyn Device>>, Error> {
    anabranch_gpu::choose(wanted).map_err(|error| Error::Device(error.to_string()))
}

/// Without the feature `gpu` there is no device.
#[cfg(not(feature = "gpu"))]
pub(crate) fn open(wanted: &str) -> Result<Option<Arc<dyn Device>>, Error> {
    match wanted {
        "auto" => Ok(None),
        _ => Err(Error::Device(WITHOUT.into())),
    }
}

/// What is said where the program cannot know GPUs.
#[cfg(not(feature = "gpu"))]
pub(crate) const WITHOUT: &str =
    "this program was built without GPUs: build it with the feature gpu, which is on by default";
