//! What a device is.

/// Facts about a device.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The name, as its driver gives it.
    pub name: String,
    /// What sort of device it is.
    pub kind: DeviceKind,
    /// The bytes that buffers may take together; `None` if the device does not say.
    pub memory: Option<u64>,
    /// The bytes that one buffer may take.
    pub largest_buffer: u64,
    /// Whether it computes with 64-bit floating-point numbers.
    pub has_f64: bool,
    /// Whether it computes with 64-bit integers.
    pub has_i64: bool,
}

/// A sort of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the memory of the processor.
    Integrated,
    /// A driver that computes on the processor.
    Software,
    /// A device for tests, which computes on the processor.
    Simulated,
    /// Something else.
    Other,
}
