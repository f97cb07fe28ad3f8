#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! 1. [`open`] gives a device, with two threads.
//! 2. The *device thread* gets the batches over a channel. All that wait there go together as a *group*: it
//!    encodes them into one command buffer, with one compute pass for launches that follow each other, and
//!    submits it. While the device has two groups to do, this thread looks for more batches for a moment
//!    before that. A group ends with a batch that copies to the host, and a large copy goes alone. Only this
//!    thread submits, because a driver may block there.
//! 3. Then the device thread asks the driver for up to 200 us whether the submission is done, if all earlier
//!    batches are done, the program has submitted nothing after it, and its downloads are small. If the
//!    device does it in this time, the thread hands the bytes over and advances the timeline itself.
//! 4. Otherwise it sends the submission to the *completion thread*, which waits for submissions in their
//!    order, hands the bytes of downloads over, and advances the timeline.
//!
//! Both threads spin for a moment before they block, so that launches which follow each other quickly need
//! not wake them.
//!
//! Copies of more than 4 MiB are cut into parts. Each is submitted as soon as it is encoded, so that the device
//! copies one while the host writes the next, or reads the one before.
//!
//! A step that is wrong fails its batch, of which nothing is done then. A function of a copy that panics, or
//! gives too few bytes, fails its batch when the steps before may be done. What only the driver finds fails
//! all batches that were submitted together.
//!
//! All handles of one device share a device of the driver, which stays open until the process ends. If it is
//! lost, all of them are, and the next handle gets a new one.

#![forbid(unsafe_code)]

mod adapters;
mod device;
mod error;
mod memory;
mod program;
mod threads;

pub use adapters::{
    Adapter, adapters, best,
    by_name::{by_name, from_env},
    diagnosis::why_no_gpu,
    open::{Settings, open, open_with},
};
pub use error::GpuError;

/// The result of a future of wgpu. Outside of browsers they are ready at once.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}
