//! The end of submissions: one of the two threads waits for a submission, hands bytes over, and advances the
//! timeline.
//!
//! The completion thread can always do so. But a program that launches a small kernel and waits for it
//! submits nothing meanwhile, and then the device thread has nothing else to do. So the device thread asks
//! the driver for a moment whether its submission is done, and completes it ([`Submission::complete_soon`]).
//! Then only one of the two threads spins, which matters on a machine with few processors.

use super::{
    receive::{SPIN, next},
    shared::Shared,
};
use crate::{
    memory::{downloads::PendingDownload, staging::Sort},
    program::status::{self, Statuses},
};
use anabranch::device::{DeviceError, DeviceMemory};
use std::{
    sync::{Arc, atomic::Ordering, mpsc::Receiver},
    thread,
    time::Instant,
};

/// The most bytes of downloads that the device thread hands over: copying them takes no longer than asking
/// the driver.
const SMALL: u64 = 64 << 10;

/// A group of batches that was submitted, or what was submitted before the end of one.
pub(crate) struct Submission {
    /// What to wait for; `None` if there was nothing to do.
    pub(crate) index: Option<wgpu::SubmissionIndex>,
    pub(crate) parts: Vec<Part>,
    /// Those of the launches of shaders.
    pub(crate) statuses: Option<Statuses>,
    /// The buffers to give back.
    pub(crate) used: Vec<(Sort, wgpu::Buffer)>,
    /// Whether the completion thread may ask the driver for a moment before it blocks. Not for a part of a
    /// group, and not if the device thread has tried to complete the submission.
    pub(crate) may_ask: bool,
}

/// A batch that was submitted.
pub(crate) struct Part {
    /// The value of the timeline when it is done.
    pub(crate) value: u64,
    pub(crate) result: Result<(), DeviceError>,
    pub(crate) downloads: Vec<PendingDownload>,
    /// Where the statuses of its launches are.
    pub(crate) statuses: Vec<u64>,
    /// The memory that the batch uses.
    pub(crate) keep: Vec<DeviceMemory>,
}

impl Part {
    pub(crate) fn new(value: u64) -> Self {
        Self { value, result: Ok(()), downloads: Vec::new(), statuses: Vec::new(), keep: Vec::new() }
    }

    /// Hands the bytes of its downloads over, unless it has failed or they have got theirs.
    fn hand_over_downloads(&mut self, shared: &Arc<Shared>) {
        if let (Ok(()), Some(lost)) = (&self.result, shared.timeline.is_lost()) {
            self.result = Err(lost);
        }
        for download in self.downloads.drain(..) {
            if self.result.is_ok() {
                let failed = |why| DeviceError::Failed { device: shared.info.name.clone(), why };
                self.result = download.hand_over(shared).map_err(failed);
            }
        }
    }

    fn finish(self, shared: &Shared) {
        let Self { value, result, keep, .. } = self;
        // Before the timeline says that the batch is done: a program that sees that may count on the memory.
        drop(keep);
        if let Err(error) = result {
            shared.timeline.fail(value, error);
        }
        shared.timeline.advance(value);
    }
}

impl Submission {
    /// Fails the batches that have not failed yet.
    pub(crate) fn fail(&mut self, error: &DeviceError) {
        for part in &mut self.parts {
            if part.result.is_ok() {
                part.result = Err(error.clone());
            }
        }
    }

    /// Completes the submission if all earlier batches are done, its downloads are small, and the device ends
    /// it within [`SPIN`] while the program submits nothing else. Otherwise returns it.
    pub(super) fn complete_soon(mut self, shared: &Arc<Shared>) -> Option<Self> {
        let is_next = self.parts.first().is_some_and(|part| shared.timeline.completed() + 1 == part.value);
        let downloads = self.parts.iter().flat_map(|part| &part.downloads);
        if !is_next || downloads.map(PendingDownload::bytes).sum::<u64>() > SMALL {
            return Some(self);
        }
        self.may_ask = false;
        // To ask without waiting gives no error.
        let is_done = match self.index {
            Some(_) => matches!(self.is_done_soon(shared), Ok(true)),
            None => self.is_last(shared),
        };
        if is_done {
            self.complete(shared);
            return None;
        }
        Some(self)
    }

    /// Whether the program has submitted nothing after it.
    fn is_last(&self, shared: &Shared) -> bool {
        self.parts.last().is_some_and(|part| shared.timeline.submitted() == part.value)
    }

    /// Asks the driver again and again whether the submission is done, for a moment, and only while it is the
    /// last one. A program that submits nothing else may wait for this one, and a driver takes longer to wake
    /// a thread than to do a small launch.
    ///
    /// It asks whether all submissions are done: wgpu panics if several threads ask for one of them with a
    /// timeout.
    fn is_done_soon(&self, shared: &Shared) -> Result<bool, wgpu::PollError> {
        let begin = Instant::now();
        while self.is_last(shared) && begin.elapsed() < SPIN {
            if shared.device.poll(wgpu::PollType::Poll)?.is_queue_empty() {
                return Ok(true);
            }
            thread::yield_now();
        }
        Ok(false)
    }

    /// Waits until the device has done the submission.
    fn wait(&mut self, shared: &Arc<Shared>) -> Result<(), wgpu::PollError> {
        if let [part] = &mut *self.parts
            && self.statuses.is_none()
            && part.downloads.iter().any(PendingDownload::has_pieces)
        {
            // The host reads the pieces of a large download, which goes alone, while the last ones are on
            // their way.
            part.hand_over_downloads(shared);
        }
        if self.index.is_none() || (self.may_ask && self.is_done_soon(shared)?) {
            return Ok(());
        }
        let wait = wgpu::PollType::Wait { submission_index: self.index.clone(), timeout: None };
        shared.device.poll(wait).map(drop)
    }

    /// Hands over what the device has done, and advances the timeline.
    fn complete(self, shared: &Arc<Shared>) {
        let Self { parts, statuses, used, .. } = self;
        if !parts.is_empty() {
            // Relaxed: the device thread only decides by it whether it waits for more batches.
            shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
        let has_uploads = used.iter().any(|(sort, _)| *sort == Sort::Upload);
        used.into_iter().for_each(|(sort, buffer)| shared.staging.give_back(sort, buffer));
        if has_uploads && shared.timeline.is_lost().is_none() {
            // The driver maps their buffers again when it is polled. An error comes out of the next wait,
            // too.
            let _ = shared.device.poll(wgpu::PollType::Poll);
        }
        let statuses = statuses.map_or(Ok(Vec::new()), |statuses| statuses.end(shared));
        for mut part in parts {
            let checked = status::check(shared, &statuses, &part.statuses);
            part.result = part.result.and(checked);
            part.hand_over_downloads(shared);
            part.finish(shared);
        }
    }
}

/// Waits for submissions until no more can come.
pub(crate) fn run(shared: &Arc<Shared>, submissions: &Receiver<Submission>) {
    while let Some(mut submission) = next(submissions) {
        if let Err(error) = submission.wait(shared) {
            shared.timeline.lose(format!("waiting for a batch has failed: {error}"));
        }
        submission.complete(shared);
    }
}
