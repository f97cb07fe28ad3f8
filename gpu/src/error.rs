//! Errors of finding and opening devices.

/// Why no GPU can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no GPU that can be used.
    #[error("no GPU can be used: {why}")]
    None {
        /// What is missing, and what to do.
        why: String,
    },
    /// No device has this name.
    #[error("no device has `{name}` in its name; there are: {there}")]
    NoSuchDevice {
        /// The name.
        name: String,
        /// The names of the devices that there are.
        there: String,
    },
    /// The driver refuses to open the device.
    #[error("the driver does not open {device}: {why}")]
    Refused {
        /// The device.
        device: String,
        /// What the driver says.
        why: String,
    },
    /// The device that the environment variable `ANABRANCH_DEVICE` names cannot be opened.
    #[error("ANABRANCH_DEVICE is `{value}`: {why}")]
    Variable {
        /// The value of the variable.
        value: String,
        /// Why its device cannot be opened.
        why: Box<GpuError>,
    },
    /// The environment variable `ANABRANCH_DEVICE_MEMORY` is no number of bytes.
    #[error(
        "ANABRANCH_DEVICE_MEMORY is `{value}`: it must be a number of bytes above 0, perhaps with K, M or G behind it"
    )]
    Memory {
        /// The value of the variable.
        value: String,
    },
}
