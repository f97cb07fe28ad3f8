//! The choice of the device that computes a run.
//!
//! The crate `anabranch-gpu` opens it. A program that was built without the feature `gpu` has the host alone.

use crate::error::Error;
use anabranch::device::Device;
use std::{env, sync::Arc};

/// The environment variable that names a device where no option does. `anabranch_gpu::from_env` reads it, too.
const VARIABLE: &str = "ANABRANCH_DEVICE";

/// Where a run computes.
pub(crate) struct Chosen {
    /// The device; `None` for the threads of this process.
    pub(crate) device: Option<Arc<dyn Device>>,
    /// A note for the user, if the choice may be a surprise.
    pub(crate) note: Option<String>,
}

/// Opens the device that the option `--device` names, or else the environment.
///
/// # Errors
/// [`Error::Device`].
pub(crate) fn choose(option: Option<&str>) -> Result<Chosen, Error> {
    let device = open(option)?;
    let is_auto = device.is_none() && requested(option).0.eq_ignore_ascii_case("auto");
    let note = is_auto.then(|| format!("Computing on the processor: {}", why_on_host()));
    Ok(Chosen { device, note })
}

/// Refuses a device on several nodes. With `auto` they compute on their processors.
///
/// # Errors
/// [`Error::Usage`].
pub(crate) fn check_nodes(option: Option<&str>) -> Result<(), Error> {
    let (name, source) = requested(option);
    if ["host", "auto"].iter().any(|host| name.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{source} {name}: several nodes compute on their processors only; choose the device host, or start one process"
    )))
}

/// The name that is requested, and what requests it.
fn requested(option: Option<&str>) -> (String, &'static str) {
    if let Some(name) = option {
        return (name.to_owned(), "--device");
    }
    let value = env::var_os(VARIABLE).filter(|value| !value.is_empty());
    (value.map_or("host".to_owned(), |value| value.to_string_lossy().into_owned()), VARIABLE)
}

#[cfg(feature = "gpu")]
fn open(option: Option<&str>) -> Result<Option<Arc<dyn Device>>, Error> {
    match option {
        Some(name) => {
            anabranch_gpu::by_name(name).map_err(|error| Error::Device(format!("--device {name}: {error}")))
        }
        None => anabranch_gpu::from_env().map_err(|error| Error::Device(error.to_string())),
    }
}

#[cfg(feature = "gpu")]
fn why_on_host() -> String {
    anabranch_gpu::why_no_gpu().unwrap_or_else(|| "a GPU was not there a moment ago".to_owned())
}

#[cfg(not(feature = "gpu"))]
fn open(option: Option<&str>) -> Result<Option<Arc<dyn Device>>, Error> {
    match check_nodes(option) {
        Ok(()) => Ok(None),
        Err(_) => {
            let (name, source) = requested(option);
            Err(Error::Device(format!("{source} {name}: {}", why_on_host())))
        }
    }
}

/// What a program says that was built without devices.
#[cfg(not(feature = "gpu"))]
pub(crate) const NOT_BUILT: &str = "this program was built without its feature gpu: build it with `cargo build --release -p gray-scott --features gpu`";

#[cfg(not(feature = "gpu"))]
fn why_on_host() -> String {
    NOT_BUILT.to_owned()
}
