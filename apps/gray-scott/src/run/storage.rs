//! The output of a run: frames and checkpoints, as a host object of the runtime.

use super::times::{Accounts, Stored};
use crate::{
    error::Error,
    files::{attributes::stamp, checkpoint},
    not_finite::NotFinite,
    parameters::Parameters,
    report::progress::Progress,
};
use anabranch_store::{Stamp, StoreError, Summary, Writer};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The checkpoint of a run, and when it is written.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    /// The file.
    pub path: PathBuf,
    /// Frames between two checkpoints; 0 for none at frames.
    pub every: u64,
    /// Time between two checkpoints, which may lie within a frame; `None` for none by time.
    pub interval: Option<Duration>,
}

impl Checkpoints {
    /// Checkpoints only of a run that is interrupted.
    pub fn on_interruption(path: PathBuf) -> Self {
        Self { path, every: 0, interval: None }
    }

    /// Whether a checkpoint is due after the first `done` frames.
    pub(super) fn is_due_at(&self, done: u64) -> bool {
        self.every > 0 && done.is_multiple_of(self.every)
    }
}

/// The place where a run stores its frames: the writer of a file, or something that stands for it in tests.
pub trait FrameSink: Send {
    /// The index of the next frame.
    fn next_frame(&self) -> u64;

    /// Stores a frame, and returns when it is acknowledged.
    ///
    /// # Errors
    /// When it cannot be stored.
    fn append(&mut self, frame: &[f32], stamp: Stamp) -> Result<(), StoreError>;

    /// Completes what was stored.
    ///
    /// # Errors
    /// When it cannot be completed.
    fn finish(self: Box<Self>) -> Result<Summary, StoreError>;
}

impl FrameSink for Writer<f32> {
    fn next_frame(&self) -> u64 {
        Self::next_frame(self)
    }

    fn append(&mut self, frame: &[f32], stamp: Stamp) -> Result<(), StoreError> {
        Self::append(self, frame, stamp)
    }

    fn finish(self: Box<Self>) -> Result<Summary, StoreError> {
        Self::finish(*self)
    }
}

/// Takes the frames and the checkpoints of a run.
pub(super) struct Storage {
    parameters: Parameters,
    writer: Option<Box<dyn FrameSink>>,
    checkpoints: Option<Checkpoints>,
    progress: Progress,
    accounts: Accounts,
    /// Whether states that are not finite are refused.
    check_finite: bool,
    /// Set with `not_finite`: the run submits nothing more. `None` with several nodes, where the task fails.
    stop: Option<Arc<AtomicBool>>,
    /// The first value that is not finite. From then on nothing is stored.
    pub(super) not_finite: Option<NotFinite>,
    /// Frames that are complete.
    pub(super) frames: u64,
    /// The result of the writer, once it is finished.
    pub(super) summary: Option<Summary>,
}

impl Storage {
    /// Storage for a run. Without a `writer` it counts the frames and stores nothing.
    pub(super) fn new(
        parameters: Parameters,
        writer: Option<Box<dyn FrameSink>>,
        checkpoints: Option<Checkpoints>,
        progress: Progress,
        accounts: Accounts,
        check_finite: bool,
        stop: Option<Arc<AtomicBool>>,
    ) -> Self {
        Self {
            parameters,
            writer,
            checkpoints,
            progress,
            accounts,
            check_finite,
            stop,
            not_finite: None,
            frames: 0,
            summary: None,
        }
    }

    /// Stores a frame, straight from its buffer. The first frame that is `not_finite` ends the run. A frame that
    /// the file holds already, from an earlier run, stays as it is.
    pub(super) fn frame(
        &mut self,
        frame: u64,
        v: &[f32],
        not_finite: Option<NotFinite>,
    ) -> Result<(), Error> {
        self.not_finite = self.not_finite.or(not_finite);
        if let Some(place) = self.not_finite {
            return self.stop(place);
        }
        if let Some(writer) = self.writer.as_mut().filter(|writer| writer.next_frame() == frame) {
            let _storing = self.accounts.storing(Stored::Frames);
            writer.append(v, stamp(&self.parameters, frame))?;
        }
        self.frames += 1;
        self.progress.done(frame + 1);
        Ok(())
    }

    /// Ends the run at a value that is not finite.
    fn stop(&mut self, place: NotFinite) -> Result<(), Error> {
        if let Some(stop) = &self.stop {
            stop.store(true, Ordering::Relaxed);
            return Ok(());
        }
        if let Some(writer) = self.writer.take() {
            self.summary = Some(writer.finish()?);
        }
        let saved = (place.frame > 0).then(|| format!(", with {} frames stored", place.frame));
        Err(Error::NotFinite { place, saved })
    }

    /// Saves the state after `step` steps. All frames before it are stored. A state that is not finite does not replace
    /// an earlier one.
    pub(super) fn checkpoint(&mut self, step: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
        let Some(checkpoints) = self.checkpoints.as_ref().filter(|_| self.not_finite.is_none()) else {
            return Ok(());
        };
        let _storing = self.accounts.storing(Stored::Checkpoint);
        if self.check_finite && !u.iter().chain(v).all(|value| value.is_finite()) {
            return Ok(());
        }
        checkpoint::save(&checkpoints.path, &self.parameters, step, u, v)
    }

    /// Completes the file, and leaves a checkpoint if the run is not complete.
    ///
    /// A complete run leaves its last checkpoint where it is, so that the run can be extended.
    pub(super) fn finish(&mut self, step: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
        if let Some(writer) = self.writer.take() {
            let _storing = self.accounts.storing(Stored::Frames);
            self.summary = Some(writer.finish()?);
        }
        if step < self.parameters.steps() { self.checkpoint(step, u, v) } else { Ok(()) }
    }
}
