//! The device that a text names, such as an option of a program or an environment variable.

use super::open::open;
use crate::error::GpuError;
use anabranch::device::Device;
use std::{env, sync::Arc};

/// The environment variable that names the device of a program.
const DEVICE: &str = "ANABRANCH_DEVICE";

/// Opens the device that the environment variable `ANABRANCH_DEVICE` names, as [`by_name`] does. Without the
/// variable, or if it is empty, it is the host.
///
/// ```
/// use anabranch::Runtime;
///
/// let mut builder = Runtime::builder();
/// if let Some(device) = anabranch_gpu::from_env()? {
///     builder = builder.device(&device);
/// }
/// let rt = builder.build()?;
/// # drop(rt);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`GpuError::Variable`], with the error of [`by_name`].
pub fn from_env() -> Result<Option<Arc<dyn Device>>, GpuError> {
    let Some(value) = env::var_os(DEVICE).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value.to_string_lossy();
    by_name(&value).map_err(|why| GpuError::Variable { value: value.to_string(), why: Box::new(why) })
}

/// Opens the device that a text names, in upper or lower case. `None` is the host.
///
/// | text | device |
/// |---|---|
/// | `host` | the host |
/// | `auto` | a GPU if there is one, otherwise the host; [`why_no_gpu`](crate::why_no_gpu) says why |
/// | `gpu` | a GPU |
/// | `gpu:1` | the second GPU, counted from 0; discrete ones come first |
/// | anything else | the device with this text in its name, also one that computes on the processor; `h200:1` is the second one with `h200` in its name |
///
/// The GPU is that of [`open`] without a name, so it is never a driver that computes on the processor.
///
/// ```
/// assert!(anabranch_gpu::by_name("host")?.is_none());
/// let error = anabranch_gpu::by_name("no such device").err().unwrap();
/// println!("{error}"); // lists the devices that there are
/// # Ok::<(), anabranch_gpu::GpuError>(())
/// ```
///
/// # Errors
/// Those of [`open`]. With `auto` only [`GpuError::Refused`]: there is a GPU, and its driver does not open it;
/// and [`GpuError::Memory`], if there is a GPU.
pub fn by_name(text: &str) -> Result<Option<Arc<dyn Device>>, GpuError> {
    match &*text.to_lowercase() {
        "host" => Ok(None),
        "auto" => match open(None) {
            Err(GpuError::None { .. }) => Ok(None),
            opened => opened.map(Some),
        },
        "gpu" => open(None).map(Some),
        _ => open(Some(text)).map(Some),
    }
}
