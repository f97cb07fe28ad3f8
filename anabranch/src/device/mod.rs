//! Devices: what computes beside the processor and has memory of its own, such as a GPU.
//!
//! A [`Device`] takes [batches](Batch) of [steps](DeviceStep): copies to and from its memory, and launches of
//! recorded kernels and of shaders. It works on them in the order in which it got them, on threads of its
//! own. Its [`Timeline`] says how far it has come. No call of a device blocks, except those that wait for its
//! timeline.
//!
//! [`Simulated`] is a device for tests, which computes on the processor.
//!
//! Programs hold a device as an [`Arc<dyn Device>`](std::sync::Arc), and say `.on(&device)` for the tasks
//! that it is to compute.

mod batch;
mod error;
mod info;
mod memory;
mod simulated;
mod source;
mod timeline;

pub(crate) use self::batch::Parameters;
pub use self::{
    batch::{Batch, DeviceStep, Download, Fill, Launch, Operand, Run, Take, Upload},
    error::DeviceError,
    info::{DeviceInfo, DeviceKind},
    memory::{DeviceMemory, DeviceProgram},
    simulated::{Counts, Simulated, SimulatedBuilder},
    source::Source,
    timeline::Timeline,
};
pub use crate::submit::shader::Wgsl;
pub use anabranch_kernel::shader::{Shader, ShaderError};
use std::{fmt, future::Future, pin::Pin};

/// A device.
pub trait Device: Send + Sync + 'static {
    /// What the device is.
    fn info(&self) -> &DeviceInfo;

    /// How far the device has come.
    fn timeline(&self) -> &Timeline;

    /// Memory for this number of bytes, whose contents are unspecified. It is free again when all handles to
    /// it are gone and no batch in flight uses it. The call does not advance the timeline.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], [`DeviceError::TooLarge`], [`DeviceError::Lost`].
    fn allocate(&self, bytes: u64) -> Result<DeviceMemory, DeviceError>;

    /// Prepares a recording or a shader for launches. The device may compile it later: then the first launch
    /// reports what is wrong with it.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] if the device cannot run it: it has no 64-bit floating-point numbers, for
    /// example, or takes no shaders. [`DeviceError::Shader`] if a shader is wrong. [`DeviceError::Lost`].
    fn compile(&self, source: Source<'_>) -> Result<DeviceProgram, DeviceError>;

    /// Hands a batch over. It never blocks. Returns the value that the [timeline](Self::timeline) has when
    /// the batch is done.
    fn submit(&self, batch: Batch) -> u64;

    /// Lets the device notice sooner what is done. A thread that waits for the timeline of the device calls
    /// it; one that waits for tasks does not. The device must not need it: it advances its timeline by itself.
    fn poll(&self) {}

    /// Whether the device has done all that it got. This costs two loads.
    fn is_idle(&self) -> bool {
        self.timeline().is_idle()
    }

    /// Blocks until the device has done all that it got before this call.
    ///
    /// # Errors
    /// The first error that no call has taken, or a wait inside a callback of a device: see
    /// [`Timeline::wait_for_all`].
    fn wait(&self) -> Result<(), DeviceError> {
        self.timeline().wait_for_all(|| self.poll())
    }

    /// Waits until the device has done all that it got before this call, as a future for asynchronous code.
    ///
    /// ```
    /// use anabranch::{device::Simulated, prelude::*};
    /// use std::{future::Future, sync::Arc, task::{Context, Poll, Waker}};
    ///
    /// let device: Arc<dyn anabranch::device::Device> = Arc::new(Simulated::new());
    /// let rt = Runtime::new()?;
    /// let u = rt.buffer_from(&[1.0_f32, 2.0])?;
    /// rt.task("double").over([2]).on(&device).update(&u, one_to_one()).each(|(u,)| u.set(u.here() * 2.0))?.wait()?;
    /// assert!(device.is_idle());
    /// let mut idle = device.idle();
    /// assert_eq!(idle.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())));
    /// # Ok::<(), anabranch::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`wait`](Self::wait).
    fn idle(&self) -> Pin<Box<dyn Future<Output = Result<(), DeviceError>> + Send + '_>> {
        Box::pin(self.timeline().idle())
    }

    /// Calls a function once when the device has done all that it got before this call: at once, or on a
    /// thread of the device. See [`Timeline::on_idle`], which takes any function.
    fn on_done(&self, callback: Box<dyn FnOnce(Result<(), DeviceError>) + Send>) {
        self.timeline().on_idle(callback);
    }
}

impl fmt::Debug for dyn Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.info().name)
    }
}
