//! A device for tests: memory of its own, and a thread of its own that computes on the processor.
//!
//! The device does what a GPU does, with the same results as the processor, and fails where a test wants it
//! to. [`memory`] has its memory, [`launch`] runs programs on it, [`worker`] is the thread, [`settings`] says
//! when the device refuses, fails or is lost.

mod counts;
mod launch;
mod memory;
mod settings;
mod worker;

pub use self::{counts::Counts, settings::SimulatedBuilder};

use self::{launch::Prepared, memory::Block, settings::Settings, worker::Shared};
use super::{Batch, Device, DeviceError, DeviceInfo, DeviceMemory, DeviceProgram, Source, Timeline};
use std::{
    fmt,
    sync::Arc,
    thread::{self, JoinHandle},
};

/// A device for tests. It has memory of its own, and computes on the processor, on a thread of its own.
///
/// When the device is dropped, it does the batches that it has, without [delays](SimulatedBuilder::delays),
/// and ends.
///
/// A launch finds each operand as it was before the launch, also if another operand that it sets is the same
/// memory. A batch that uses what belongs to another device fails, and one whose functions panic.
///
/// ```
/// use anabranch::device::{Batch, Device, DeviceStep, Download, Run, Simulated, Upload};
/// use std::sync::mpsc;
///
/// let device = Simulated::new();
/// let memory = device.allocate(16)?;
/// let (to, from) = mpsc::channel();
/// device.submit(Batch::from([
///     DeviceStep::Upload(Upload {
///         to: memory.clone(),
///         runs: vec![Run { offset: 4, bytes: 8 }],
///         fill: Box::new(|put| put(&[7; 8])),
///     }),
///     DeviceStep::Download(Download {
///         from: memory,
///         runs: vec![Run { offset: 0, bytes: 16 }],
///         take: Box::new(move |get| {
///             let mut bytes = [1; 16];
///             get(&mut bytes);
///             to.send(bytes).unwrap();
///         }),
///     }),
/// ]));
/// device.wait()?;
/// assert_eq!(from.recv().unwrap(), [0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0]);
/// assert_eq!(device.counts().bytes_up, 8);
/// # Ok::<(), anabranch::device::DeviceError>(())
/// ```
pub struct Simulated {
    info: DeviceInfo,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Simulated {
    /// A device that refuses nothing, never fails and takes no delays.
    ///
    /// # Panics
    /// If the system refuses a thread.
    #[expect(clippy::new_without_default, reason = "it starts a thread")]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A device with other settings.
    pub fn builder() -> SimulatedBuilder {
        SimulatedBuilder::default()
    }

    fn start(settings: Settings) -> Self {
        let info = settings.info();
        let shared = Arc::new(Shared::new(settings));
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("simulated device".into()).spawn(move || of_thread.run());
        Self { info, shared, thread: Some(thread.expect("the system starts a thread")) }
    }

    /// What the device has done, and what it has. What a batch did is counted before the batch is done.
    pub fn counts(&self) -> Counts {
        self.shared.ledger.counts()
    }
}

impl SimulatedBuilder {
    /// Starts the device.
    ///
    /// # Panics
    /// If the system refuses a thread.
    pub fn build(self) -> Simulated {
        Simulated::start(self.0)
    }
}

impl Device for Simulated {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn timeline(&self) -> &Timeline {
        &self.shared.timeline
    }

    fn allocate(&self, bytes: u64) -> Result<DeviceMemory, DeviceError> {
        self.shared.refuse_if_lost()?;
        let block = Block::new(bytes, &self.shared.ledger, &self.shared.settings)?;
        Ok(DeviceMemory::new(bytes, block))
    }

    fn compile(&self, source: Source<'_>) -> Result<DeviceProgram, DeviceError> {
        self.shared.refuse_if_lost()?;
        let Source::Recording(recording) = source else {
            let why = "it runs recorded kernels, and no shaders".to_string();
            return Err(DeviceError::Unsupported { device: self.info.name.clone(), why });
        };
        let number = self.shared.ledger.count_program();
        if self.shared.settings.refused_programs.contains(&number) {
            let why = format!("it is to refuse program {number}");
            return Err(DeviceError::Unsupported { device: self.info.name.clone(), why });
        }
        Ok(DeviceProgram::new(Prepared::new(recording, &self.shared.ledger)))
    }

    fn submit(&self, batch: Batch) -> u64 {
        self.shared.submit(batch)
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.shared.close();
        // A callback of the timeline may have had the last handle: then this is the thread of the device,
        // which ends by itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // It has caught the panics of all that is not its own.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulated")
            .field("name", &self.info.name)
            .field("timeline", &self.shared.timeline)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
