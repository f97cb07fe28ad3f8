//! The output of a run: frames and checkpoints, as a host object of the runtime. With several nodes it is on
//! node 0, and counts the frames whose rows all nodes have stored (`part.rs`).

use super::times::{Accounts, Stored};
use crate::{
    error::Error,
    files::{attributes::stamp, checkpoint},
    not_finite::NotFinite,
    parameters::Parameters,
    report::progress::Progress,
};
use anabranch_store::{
    PartWriter, Stamp, StoreError, Summary, Writer,
    checkpoint::{Checksum, Draft},
};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The numbers that describe a draft of two arrays. All are 0 if there is none.
pub(super) const WORDS: usize = 6;

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

    /// Counts a frame whose rows are stored, and returns when it is acknowledged.
    ///
    /// # Errors
    /// When it cannot be counted.
    fn append_parts(&mut self, stamp: Stamp) -> Result<(), StoreError>;

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

    fn append_parts(&mut self, stamp: Stamp) -> Result<(), StoreError> {
        Self::append_parts(self, stamp)
    }

    fn finish(self: Box<Self>) -> Result<Summary, StoreError> {
        Self::finish(*self)
    }
}

/// What becomes of the frames, on each node of a run.
#[derive(Debug)]
pub enum FrameOutput {
    /// Nothing is stored.
    Nowhere,
    /// Node 0 stores whole frames in the writer of the run. On one node, and for compressed files.
    Whole,
    /// Each node stores its rows, and node 0 counts the frames in the writer of the run.
    Parts(FramePart),
}

/// The place where one of several nodes stores its rows of each frame.
#[derive(Debug)]
pub struct FramePart {
    /// The file, as this node writes it.
    pub writer: PartWriter<f32>,
    /// The first frame that is not in the file yet.
    pub first: u64,
}

/// Takes the frames and the checkpoints of a run.
pub(super) struct Storage {
    parameters: Parameters,
    writer: Option<Box<dyn FrameSink>>,
    checkpoints: Option<Checkpoints>,
    /// With several nodes: the checkpoint whose rows they are writing.
    draft: Option<Draft>,
    progress: Progress,
    accounts: Accounts,
    /// Whether states that are not finite are refused.
    check_finite: bool,
    /// Set with `not_finite`, and when a frame cannot be stored: the run submits nothing more.
    stop: Arc<AtomicBool>,
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
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            parameters,
            writer,
            checkpoints,
            draft: None,
            progress,
            accounts,
            check_finite,
            stop,
            not_finite: None,
            frames: 0,
            summary: None,
        }
    }

    /// Stores a frame, straight from its buffer, or counts it if `v` is `None`: then all nodes have stored
    /// their rows. The first frame that is `not_finite` ends the run. A frame that the file holds already,
    /// from an earlier run, stays as it is.
    pub(super) fn frame(
        &mut self,
        frame: u64,
        v: Option<&[f32]>,
        not_finite: Option<NotFinite>,
    ) -> Result<(), Error> {
        self.not_finite = self.not_finite.or(not_finite);
        if self.not_finite.is_some() {
            self.stop.store(true, Ordering::Relaxed);
            return Ok(());
        }
        if let Some(writer) = self.writer.as_mut().filter(|writer| writer.next_frame() == frame) {
            let _storing = self.accounts.storing(Stored::Frames);
            let stamp = stamp(&self.parameters, frame);
            let stored = match v {
                Some(v) => writer.append(v, stamp),
                None => writer.append_parts(stamp),
            };
            if stored.is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            stored?;
        }
        self.frames += 1;
        self.progress.done(frame + 1);
        Ok(())
    }

    /// With several nodes: lays a checkpoint of the state after `step` steps out, and returns the numbers
    /// that describe it to the nodes. All are 0 if there is none, because a value is not finite.
    pub(super) fn begin_checkpoint(&mut self, step: u64) -> Result<[u64; WORDS], Error> {
        let Some(checkpoints) = self.checkpoints.as_ref().filter(|_| self.not_finite.is_none()) else {
            return Ok([0; WORDS]);
        };
        let _storing = self.accounts.storing(Stored::Checkpoint);
        let draft = self.draft.insert(checkpoint::draft(&checkpoints.path, &self.parameters, step)?);
        Ok(draft.announce().try_into().expect("a checkpoint has two arrays"))
    }

    /// With several nodes: completes the checkpoint, whose rows all nodes have written, with the checksums of
    /// U and V. Without them the state is not finite, and does not replace an earlier one.
    pub(super) fn place_checkpoint(&mut self, checksums: Option<[Checksum; 2]>) -> Result<(), Error> {
        let (Some(draft), Some(checksums)) = (self.draft.take(), checksums) else { return Ok(()) };
        let _storing = self.accounts.storing(Stored::Checkpoint);
        Ok(draft.complete(&checksums)?)
    }

    /// Saves the state after `step` steps. All frames before it are stored. A state that is not finite does
    /// not replace an earlier one.
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

    /// Completes the file.
    pub(super) fn complete(&mut self) -> Result<(), Error> {
        if let Some(writer) = self.writer.take() {
            let _storing = self.accounts.storing(Stored::Frames);
            self.summary = Some(writer.finish()?);
        }
        Ok(())
    }

    /// Completes the file, and leaves a checkpoint if the run is not complete.
    ///
    /// A complete run leaves its last checkpoint where it is, so that the run can be extended.
    pub(super) fn finish(&mut self, step: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
        self.complete()?;
        if step < self.parameters.steps() { self.checkpoint(step, u, v) } else { Ok(()) }
    }
}
