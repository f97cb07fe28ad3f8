//! What each of several nodes stores by itself: its rows of every frame.

use super::{
    FramePart,
    times::{Accounts, Stored},
};
use crate::{error::Error, not_finite::NotFinite};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Takes the rows of this node.
pub(super) struct Part {
    output: Option<FramePart>,
    accounts: Accounts,
    /// Set with `not_finite`, and when rows cannot be stored: this node votes to stop.
    stop: Arc<AtomicBool>,
    /// The first value that is not finite, on whichever node. From then on nothing is stored.
    pub(super) not_finite: Option<NotFinite>,
}

impl Part {
    /// Without an `output` nothing is stored here.
    pub(super) fn new(output: Option<FramePart>, accounts: Accounts, stop: Arc<AtomicBool>) -> Self {
        Self { output, accounts, stop, not_finite: None }
    }

    /// Stores rows of a frame, from cell `first` of the frame on, straight from their buffer. The first frame
    /// that is `not_finite` ends the run. A frame that the file holds already, from an earlier run, stays as
    /// it is.
    pub(super) fn frame(
        &mut self,
        frame: u64,
        first: usize,
        rows: &[f32],
        not_finite: Option<NotFinite>,
    ) -> Result<(), Error> {
        self.not_finite = self.not_finite.or(not_finite);
        if self.not_finite.is_some() {
            self.stop.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let Some(output) = self.output.as_mut().filter(|output| frame >= output.first && !rows.is_empty())
        else {
            return Ok(());
        };
        let _storing = self.accounts.storing(Stored::Frames);
        let written = output.writer.write(frame, first, rows);
        if written.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(written?)
    }

    /// Makes what was stored here as safe as the options ask for.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        let Some(output) = self.output.take() else { return Ok(()) };
        let _storing = self.accounts.storing(Stored::Frames);
        Ok(output.writer.finish()?)
    }
}
