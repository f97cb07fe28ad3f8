//! Events, and how a thread waits for one. They know neither tasks nor devices, which both use them.

pub(crate) mod event;
pub(crate) mod latch;
pub(crate) mod waker;

use anabranch_par::Patience;
use std::time::Duration;

/// How long a thread spins and yields that may wait for a device: longer than a small launch takes.
const FOR_DEVICES: Duration = Duration::from_micros(200);

/// The patience of a thread that may wait for a device.
pub(crate) fn patience_for_devices() -> Patience {
    Patience::lasting(FOR_DEVICES)
}
