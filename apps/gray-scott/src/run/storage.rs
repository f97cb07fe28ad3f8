//! The output of a run: frames and checkpoints, as a host object of the runtime.

use crate::{
    error::Error,
    files::{attributes::stamp, checkpoint},
    parameters::Parameters,
    report::progress::Progress,
};
use anabranch_store::{Summary, Writer};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

/// The checkpoint of a run, and when it is written.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    /// The file.
    pub path: PathBuf,
    /// Frames between two checkpoints; 0 to write one only when the run is interrupted.
    pub every: u64,
}

impl Checkpoints {
    /// Whether a checkpoint is due after the first `done` frames.
    pub(super) fn is_due(&self, done: u64) -> bool {
        self.every > 0 && done.is_multiple_of(self.every)
    }
}

/// Takes the frames and the checkpoints of a run.
pub(super) struct Storage {
    parameters: Parameters,
    writer: Option<Writer<f32>>,
    checkpoints: Option<Checkpoints>,
    progress: Progress,
    /// The result of the writer, once it is finished.
    pub(super) summary: Option<Summary>,
    /// Time spent on frames and checkpoints. The run waits for storage in that part of it in which nothing is
    /// computed.
    pub(super) busy: Duration,
}

impl Storage {
    /// Storage for a run. Without a `writer` it counts the frames and stores nothing.
    pub(super) fn new(
        parameters: Parameters,
        writer: Option<Writer<f32>>,
        checkpoints: Option<Checkpoints>,
        progress: Progress,
    ) -> Self {
        Self { parameters, writer, checkpoints, progress, summary: None, busy: Duration::ZERO }
    }

    /// Runs `act`, and counts its time as busy.
    pub(super) fn timed<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let began = Instant::now();
        let result = act(self);
        self.busy += began.elapsed();
        result
    }

    /// Stores a frame, straight from its buffer.
    pub(super) fn frame(&mut self, frame: u64, v: &[f32]) -> Result<(), Error> {
        if let Some(writer) = &mut self.writer {
            writer.append(v, stamp(&self.parameters, frame))?;
        }
        self.progress.done(frame + 1);
        Ok(())
    }

    /// Saves the state after the first `done` frames, which are stored.
    pub(super) fn checkpoint(&mut self, done: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
        match &self.checkpoints {
            Some(checkpoints) => checkpoint::save(&checkpoints.path, &self.parameters, done, u, v),
            None => Ok(()),
        }
    }

    /// Completes the file. Leaves a checkpoint if the run is not complete, and removes it otherwise.
    pub(super) fn finish(&mut self, done: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.summary = Some(writer.finish()?);
        match &self.checkpoints {
            Some(checkpoints) if done == self.parameters.frames => checkpoint::remove(&checkpoints.path),
            _ => self.checkpoint(done, u, v),
        }
    }
}
