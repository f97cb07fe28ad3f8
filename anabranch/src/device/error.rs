//! What devices report.

/// An error of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The memory of the device is in use.
    #[error("the device {device} has no memory left for {bytes} bytes: {used} of {budget} bytes are in use")]
    OutOfMemory {
        /// The device.
        device: String,
        /// The bytes that were asked for.
        bytes: u64,
        /// The bytes that are in use.
        used: u64,
        /// The bytes that may be in use.
        budget: u64,
    },
    /// One buffer may not take so much memory.
    #[error(
        "a buffer of {bytes} bytes is too large for the device {device}, whose buffers have at most {most} bytes"
    )]
    TooLarge {
        /// The device.
        device: String,
        /// The bytes that were asked for.
        bytes: u64,
        /// The bytes that one buffer may take.
        most: u64,
    },
    /// The device cannot run a recorded kernel or a shader.
    #[error("the device {device} cannot run this kernel or shader: {why}")]
    Unsupported {
        /// The device.
        device: String,
        /// What it lacks.
        why: String,
    },
    /// A shader is wrong.
    #[error("the device {device} does not compile the shader: {why}")]
    Shader {
        /// The device.
        device: String,
        /// What is wrong, with the line and its text.
        why: String,
    },
    /// A shader was to get or set an element that its task does not declare. It got zero, or has not set it.
    #[error(
        "on the device {device} a shader has left the declared region of operand {operand}, at {index:?}"
    )]
    Outside {
        /// The device.
        device: String,
        /// The number of the operand, from 0.
        operand: usize,
        /// The index of the element, padded with zeros at the front. Of several such accesses it is that of
        /// any.
        index: [u32; 3],
    },
    /// A callback of a device waits for a device. The thread that calls callbacks may be the one that the wait
    /// needs.
    #[error("a callback of a device waits for the device {device}: use `on_complete`, `on_idle` or a future")]
    WaitInsideCallback {
        /// The device.
        device: String,
    },
    /// The driver has refused something.
    #[error("the device {device} has failed: {why}")]
    Failed {
        /// The device.
        device: String,
        /// What the driver says.
        why: String,
    },
    /// The device is gone, and all that its memory held.
    #[error("the device {device} is lost: {why}")]
    Lost {
        /// The device.
        device: String,
        /// What the driver says.
        why: String,
    },
}
