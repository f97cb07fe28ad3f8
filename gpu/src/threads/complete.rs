//! The completion thread: waits for submissions, hands bytes over, and advances the timeline.

use super::{
    receive::{SPIN, next},
    shared::Shared,
};
use crate::{
    memory::{landing::Landing, staging::Sort},
    program::status::{self, Statuses},
};
use anabranch::device::{DeviceError, DeviceMemory};
use std::{
    sync::{Arc, atomic::Ordering, mpsc::Receiver},
    thread,
    time::Instant,
};

/// A group of batches that was submitted, or what was submitted before the end of one.
pub(crate) struct Submission {
    /// What to wait for; `None` if there was nothing to do.
    pub(crate) index: Option<wgpu::SubmissionIndex>,
    pub(crate) parts: Vec<Part>,
    /// Those of the launches of shaders.
    pub(crate) statuses: Option<Statuses>,
    /// The buffers to give back.
    pub(crate) used: Vec<(Sort, wgpu::Buffer)>,
}

/// A batch that was submitted.
pub(crate) struct Part {
    /// The value of the timeline when it is done.
    pub(crate) value: u64,
    pub(crate) result: Result<(), DeviceError>,
    pub(crate) downloads: Vec<Landing>,
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
    fn land(&mut self, shared: &Arc<Shared>) {
        if let (Ok(()), Some(lost)) = (&self.result, shared.timeline.is_lost()) {
            self.result = Err(lost);
        }
        for landing in self.downloads.drain(..) {
            if self.result.is_ok() {
                let failed = |why| DeviceError::Failed { device: shared.info.name.clone(), why };
                self.result = landing.land(shared).map_err(failed);
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
}

/// Waits for a submission. While it `is_last`, a program may wait for it and do nothing else. Then this thread asks the driver again and again for a moment
/// before it blocks there, because a driver takes longer to wake a thread than to do a small launch.
///
/// It asks whether all submissions are done: wgpu panics if several threads ask for one of them with a timeout.
fn wait(
    device: &wgpu::Device,
    index: wgpu::SubmissionIndex,
    is_last: impl Fn() -> bool,
) -> Result<(), wgpu::PollError> {
    let begin = Instant::now();
    while is_last() && begin.elapsed() < SPIN {
        if device.poll(wgpu::PollType::Poll)?.is_queue_empty() {
            return Ok(());
        }
        thread::yield_now();
    }
    device.poll(wgpu::PollType::Wait { submission_index: Some(index), timeout: None }).map(drop)
}

/// Waits for submissions until no more can come.
pub(crate) fn run(shared: &Arc<Shared>, submissions: &Receiver<Submission>) {
    let receive = || next(submissions, || shared.budget.rest());
    while let Some(Submission { index, mut parts, statuses, used }) = receive() {
        if let [part] = &mut *parts
            && statuses.is_none()
            && part.downloads.iter().any(Landing::has_pieces)
        {
            // The host reads the pieces of a large download, which goes alone, while the last ones are on their way.
            part.land(shared);
        }
        if let Some(index) = index {
            let is_last = || parts.last().is_some_and(|part| shared.timeline.submitted() == part.value);
            if let Err(error) = wait(&shared.device, index, is_last) {
                shared.timeline.lose(format!("waiting for a batch has failed: {error}"));
            }
        }
        if !parts.is_empty() {
            // Relaxed: the device thread only decides by it whether it waits for more batches.
            shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
        let has_uploads = used.iter().any(|(sort, _)| *sort == Sort::Upload);
        used.into_iter().for_each(|(sort, buffer)| shared.staging.give_back(sort, buffer));
        if has_uploads && shared.timeline.is_lost().is_none() {
            // The driver maps their buffers again when it is polled. An error comes out of the next wait, too.
            let _ = shared.device.poll(wgpu::PollType::Poll);
        }
        let statuses = statuses.map_or(Ok(Vec::new()), |statuses| statuses.end(shared));
        for mut part in parts {
            let checked = status::check(shared, &statuses, &part.statuses);
            part.result = part.result.and(checked);
            part.land(shared);
            part.finish(shared);
        }
    }
}
