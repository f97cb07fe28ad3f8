//! The completion thread: waits for submissions, hands bytes over, and advances the timeline.

use crate::{
    receive::next,
    shared::Shared,
    staging::Sort,
    status::{self, Statuses},
};
use anabranch::device::{DeviceError, DeviceMemory, Take};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc::Receiver},
};

/// Batches that were submitted together.
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
}

/// A download on its way.
pub(crate) struct Landing {
    /// The buffer that the bytes come to; `None` if there are none.
    pub(crate) staging: Option<wgpu::Buffer>,
    pub(crate) bytes: u64,
    pub(crate) take: Take,
}

impl Landing {
    /// Asks for the bytes: they can be read when the submission is done.
    pub(crate) fn map(&mut self) {
        if let Some(staging) = &self.staging {
            staging.slice(..self.bytes).map_async(wgpu::MapMode::Read, |_| ());
        }
    }

    /// Hands the bytes over.
    fn land(self, shared: &Arc<Shared>) -> Result<(), String> {
        let Self { staging, bytes, take } = self;
        let taken = match staging {
            None => catch_unwind(AssertUnwindSafe(|| take(&[]))),
            Some(buffer) => {
                let view = buffer.slice(..bytes).get_mapped_range().map_err(|error| error.to_string())?;
                let taken = catch_unwind(AssertUnwindSafe(|| take(&view)));
                drop(view);
                buffer.unmap();
                shared.staging.give_back(Sort::Download, buffer);
                taken
            }
        };
        taken.map_err(|_| "the function that takes a download has panicked".to_string())
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

/// Waits for submissions until no more can come.
pub(crate) fn run(shared: &Arc<Shared>, submissions: &Receiver<Submission>) {
    while let Some(Submission { index, parts, statuses, used }) = next(submissions) {
        if let Some(index) = index {
            let wait = wgpu::PollType::Wait { submission_index: Some(index), timeout: None };
            if let Err(error) = shared.device.poll(wait) {
                shared.timeline.lose(format!("waiting for a batch has failed: {error}"));
            }
        }
        used.into_iter().for_each(|(sort, buffer)| shared.staging.give_back(sort, buffer));
        let statuses = statuses.map_or(Ok(Vec::new()), |statuses| statuses.end(shared));
        for part in parts {
            finish(shared, part, &statuses);
        }
    }
}

fn finish(shared: &Arc<Shared>, part: Part, all: &Result<Vec<u8>, String>) {
    let Part { value, mut result, downloads, statuses, keep } = part;
    if let Some(lost) = shared.timeline.is_lost() {
        result = result.and(Err(lost));
    }
    result = result.and_then(|()| status::check(shared, all, &statuses));
    for landing in downloads {
        if result.is_ok() {
            let failed = |why| DeviceError::Failed { device: shared.info.name.clone(), why };
            result = landing.land(shared).map_err(failed);
        }
    }
    // Before the timeline says that the batch is done: a program that sees that may count on the memory.
    drop(keep);
    if let Err(error) = result {
        shared.timeline.fail(value, error);
    }
    shared.timeline.advance(value);
}
