//! Pending downloads: the host waits for their pieces and reads them.

use super::staging::Sort;
use crate::threads::shared::Shared;
use anabranch::device::Take;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    vec,
};

/// Why the bytes of a download cannot be read.
const NOT_MAPPED: &str = "the driver does not give the bytes of a download";

/// A pending download.
pub(crate) struct PendingDownload {
    pub(super) pieces: Vec<Piece>,
    pub(super) take: Take,
}

/// A part of the bytes of a download.
pub(super) struct Piece {
    staging: wgpu::Buffer,
    bytes: u64,
    /// The submission that copies the piece, and the channel on which the driver reports that the host can
    /// read it.
    coming: Option<(wgpu::SubmissionIndex, mpsc::Receiver<Result<(), wgpu::BufferAsyncError>>)>,
}

impl Piece {
    /// A piece that goes to this buffer.
    pub(super) fn new(staging: wgpu::Buffer, bytes: u64) -> Self {
        Self { staging, bytes, coming: None }
    }

    /// Asks for the bytes, which this submission copies.
    pub(super) fn map(&mut self, index: &wgpu::SubmissionIndex) {
        let (send, mapped) = mpsc::sync_channel(1);
        self.staging.slice(..self.bytes).map_async(wgpu::MapMode::Read, move |result| {
            // The piece may be gone, with the channel.
            let _ = send.send(result);
        });
        self.coming = Some((index.clone(), mapped));
    }

    /// Waits until the host can read the bytes.
    fn wait(&mut self, shared: &Shared) -> Result<wgpu::BufferView, String> {
        let (index, mapped) = self.coming.take().ok_or(NOT_MAPPED)?;
        let wait = wgpu::PollType::Wait { submission_index: Some(index), timeout: None };
        shared.device.poll(wait).map_err(|error| error.to_string())?;
        mapped.recv().map_err(|_| NOT_MAPPED)?.map_err(|error| error.to_string())?;
        self.staging.slice(..self.bytes).get_mapped_range().map_err(|error| error.to_string())
    }
}

impl PendingDownload {
    /// Whether the bytes come in several pieces.
    pub(crate) fn has_pieces(&self) -> bool {
        self.pieces.len() > 1
    }

    /// The number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }

    /// Asks for the bytes of the last piece, which this submission copies.
    pub(crate) fn map(&mut self, index: &wgpu::SubmissionIndex) {
        self.pieces.iter_mut().filter(|piece| piece.coming.is_none()).for_each(|piece| piece.map(index));
    }

    /// Hands the bytes over, as they come.
    pub(crate) fn hand_over(self, shared: &Arc<Shared>) -> Result<(), String> {
        let Self { pieces, take } = self;
        let mut reading = Reading { shared, pieces: pieces.into_iter(), current: None, result: Ok(()) };
        let taken = catch_unwind(AssertUnwindSafe(|| take(&mut |to| reading.get(to))));
        reading.end_piece();
        taken.map_err(|_| "the function that takes a download has panicked".to_string())?;
        reading.result
    }
}

/// A download that the host reads.
struct Reading<'a> {
    shared: &'a Arc<Shared>,
    pieces: vec::IntoIter<Piece>,
    /// A piece, and how many of its bytes the host has.
    current: Option<(Piece, wgpu::BufferView, usize)>,
    result: Result<(), String>,
}

impl Reading<'_> {
    fn get(&mut self, mut to: &mut [u8]) {
        while !to.is_empty() && self.result.is_ok() {
            self.result = self.get_some(&mut to);
        }
    }

    /// Gives bytes of one piece.
    fn get_some(&mut self, to: &mut &mut [u8]) -> Result<(), String> {
        if self.current.as_ref().is_some_and(|(_, view, read)| *read == view.len()) {
            self.end_piece();
        }
        let (_, view, read) = match &mut self.current {
            Some(current) => current,
            None => {
                let next = self.pieces.next();
                let mut piece = next.ok_or_else(|| format!("a download has {} bytes too few", to.len()))?;
                let view = piece.wait(self.shared)?;
                self.current.insert((piece, view, 0))
            }
        };
        let now = to.len().min(view.len() - *read);
        let (these, rest) = std::mem::take(to).split_at_mut(now);
        these.copy_from_slice(&view[*read..*read + now]);
        *read += now;
        *to = rest;
        Ok(())
    }

    /// Gives the buffer of a piece back.
    fn end_piece(&mut self) {
        let Some((piece, view, _)) = self.current.take() else { return };
        drop(view);
        piece.staging.unmap();
        self.shared.staging.give_back(Sort::Download, piece.staging);
    }
}
