//! Where kernels run.

use crate::device::Device;
use std::sync::Arc;

/// Where a kernel runs.
#[derive(Clone, Debug)]
pub(in crate::submit) enum KernelPlace {
    /// On the device of the runtime if it has one and the kernel is recorded, otherwise on the host.
    Default,
    Host,
    Device(Arc<dyn Device>),
}
