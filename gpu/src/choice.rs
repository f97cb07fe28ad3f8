//! The device that the user of a program names.

use crate::adapters::{GpuError, open};
use anabranch::device::Device;
use std::{env, sync::Arc};

/// The environment variable that [`from_environment`] reads.
const VARIABLE: &str = "ANABRANCH_DEVICE";

/// Opens the device that a user names; `None` stands for the processor.
///
/// | `wanted` | what it gives |
/// |---|---|
/// | `host` | `None` |
/// | `auto` | the GPU that [`open`] takes without a name; `None` if there is none |
/// | `gpu` | the same GPU; an error if there is none |
/// | another text | the first device with this text in its name, in upper or lower case, also a driver that computes on the processor |
///
/// ```
/// assert!(anabranch_gpu::choose("host")?.is_none());
/// let error = anabranch_gpu::choose("no such device").unwrap_err();
/// println!("{error}");
/// # Ok::<(), anabranch_gpu::GpuError>(())
/// ```
///
/// # Errors
/// [`GpuError::NoName`] for an empty text. For `gpu` and names: there is no such device, and the error says which there are or what is missing.
/// If the driver refuses to open a GPU, that is an error also for `auto`.
pub fn choose(wanted: &str) -> Result<Option<Arc<dyn Device>>, GpuError> {
    match wanted.trim() {
        "" => Err(GpuError::NoName),
        "host" => Ok(None),
        "auto" => match open(None) {
            Err(GpuError::None { .. }) => Ok(None),
            opened => opened.map(Some),
        },
        "gpu" => open(None).map(Some),
        name => open(Some(name)).map(Some),
    }
}

/// Opens the device that the environment variable `ANABRANCH_DEVICE` names, as [`choose`] does; `None`, the processor, if the variable is not
/// set or empty.
///
/// ```
/// use anabranch::prelude::*;
///
/// let device = anabranch_gpu::from_environment()?;
/// let builder = Runtime::builder();
/// let rt = device.iter().fold(builder, |builder, device| builder.device(device)).build()?;
/// let u = rt.buffer::<u32, 1>([5]);
/// rt.task("square").over([5]).write(&u, one_to_one()).each(|(u,)| u.set(u.index(0) * u.index(0)))?;
/// assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [0, 1, 4, 9, 16]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`GpuError::Variable`], with the value and the error of [`choose`].
pub fn from_environment() -> Result<Option<Arc<dyn Device>>, GpuError> {
    let Some(value) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value.to_string_lossy();
    choose(&value).map_err(|error| GpuError::Variable { value: value.into_owned(), error: Box::new(error) })
}
