//! Copies between the host and the device, in pieces.
//!
//! A copy goes by way of buffers that both reach. A large copy is cut into pieces with a buffer each, and a piece is submitted as soon as it is
//! encoded. So the device copies a piece while the host writes the next one, or reads the one before.

use super::staging::Sort;
use crate::threads::{encode::Encoding, shared::Shared};
use anabranch::device::{Download, Run, Take, Upload};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    vec,
};

/// The most bytes of a piece.
const PIECE: u64 = 4 << 20;

/// Why the bytes of a download cannot be read.
const NOT_MAPPED: &str = "the driver does not give the bytes of a download";

/// Whether a copy has several pieces.
pub(crate) fn is_large(runs: &[Run]) -> bool {
    total(runs) > PIECE
}

impl Encoding<'_> {
    /// Encodes an upload. All of its pieces but the last are submitted.
    pub(crate) fn upload(&mut self, Upload { to, runs, fill }: Upload) -> Result<(), String> {
        let Some(memory) = self.buffer(&to) else { return Ok(()) };
        let left = total(&runs);
        let places = Places::new(runs);
        let mut upload = Uploading { encoding: self, memory, places, left, piece: None, result: Ok(()) };
        let filled = catch_unwind(AssertUnwindSafe(|| fill(&mut |bytes| upload.put(bytes))));
        let Uploading { result, left, .. } = upload;
        match filled {
            Err(_) => Err("the function that fills an upload has panicked".to_string()),
            Ok(()) if left > 0 => result.and(Err(format!("an upload lacks {left} bytes"))),
            Ok(()) => result,
        }
    }

    /// Encodes a download. All of its pieces but the last are submitted.
    pub(crate) fn download(&mut self, Download { from, runs, take }: Download) -> Landing {
        let (mut left, mut pieces) = (total(&runs), Vec::new());
        let (mut places, memory) = (Places::new(runs), self.buffer(&from));
        while let Some(memory) = &memory
            && left > 0
        {
            let bytes = left.min(PIECE);
            left -= bytes;
            let staging = self.shared.staging.take(&self.shared.creator, Sort::Download, bytes);
            self.copies(&places.take(bytes), |encoder, run, at| {
                encoder.copy_buffer_to_buffer(memory, run.offset, &staging, at, run.bytes);
            });
            let mut piece = Piece { staging, bytes, coming: None };
            if left > 0 {
                piece.map(&self.submit_so_far());
            }
            pieces.push(piece);
        }
        Landing { pieces, take }
    }
}

fn total(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.bytes).sum()
}

/// The runs that the next bytes of a copy belong to.
struct Places {
    runs: vec::IntoIter<Run>,
    next: Run,
}

impl Places {
    fn new(runs: Vec<Run>) -> Self {
        Self { runs: runs.into_iter(), next: Run { offset: 0, bytes: 0 } }
    }

    /// Takes the places of this many bytes.
    fn take(&mut self, mut bytes: u64) -> Vec<Run> {
        let mut taken = Vec::new();
        while bytes > 0 {
            if self.next.bytes == 0 {
                let Some(next) = self.runs.next() else { break };
                self.next = next;
                continue;
            }
            let part = Run { offset: self.next.offset, bytes: self.next.bytes.min(bytes) };
            self.next = Run { offset: part.offset + part.bytes, bytes: self.next.bytes - part.bytes };
            bytes -= part.bytes;
            taken.push(part);
        }
        taken
    }
}

/// An upload in the making.
struct Uploading<'a, 'e> {
    encoding: &'a mut Encoding<'e>,
    memory: wgpu::Buffer,
    places: Places,
    /// The bytes that are to come.
    left: u64,
    piece: Option<Filling>,
    result: Result<(), String>,
}

/// A buffer that the host fills.
struct Filling {
    buffer: wgpu::Buffer,
    view: wgpu::BufferViewMut,
    filled: usize,
}

impl Uploading<'_, '_> {
    fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.result.is_ok() {
            self.result = self.put_some(&mut bytes);
        }
    }

    /// Takes bytes for one piece.
    fn put_some(&mut self, bytes: &mut &[u8]) -> Result<(), String> {
        let Self { encoding, left, piece, .. } = self;
        if *left == 0 {
            return Err(format!("an upload has {} bytes too many", bytes.len()));
        }
        let filling = match piece {
            Some(filling) => filling,
            None => piece.insert(Filling::new(encoding.shared, PIECE.min(*left))?),
        };
        let these;
        let room = filling.view.len() - filling.filled;
        (these, *bytes) = bytes.split_at(bytes.len().min(room));
        filling.view.slice(filling.filled..filling.filled + these.len()).copy_from_slice(these);
        filling.filled += these.len();
        *left -= these.len() as u64;
        if these.len() == room {
            self.encode_piece();
        }
        Ok(())
    }

    fn encode_piece(&mut self) {
        let Self { encoding, memory, places, left, piece, .. } = self;
        let Some(Filling { buffer, view, filled }) = piece.take() else { return };
        drop(view);
        buffer.unmap();
        encoding.copies(&places.take(filled as u64), |encoder, run, at| {
            encoder.copy_buffer_to_buffer(&buffer, at, memory, run.offset, run.bytes);
        });
        encoding.used.push((Sort::Upload, buffer));
        if *left > 0 {
            encoding.submit_so_far();
        }
    }
}

impl Filling {
    fn new(shared: &Shared, bytes: u64) -> Result<Self, String> {
        let buffer = shared.staging.take(&shared.creator, Sort::Upload, bytes);
        let view = buffer.slice(..bytes).get_mapped_range_mut().map_err(|error| error.to_string())?;
        Ok(Self { buffer, view, filled: 0 })
    }
}

/// A download on its way.
pub(crate) struct Landing {
    pieces: Vec<Piece>,
    take: Take,
}

/// A part of the bytes of a download.
struct Piece {
    staging: wgpu::Buffer,
    bytes: u64,
    /// The submission that copies it, and what the driver says when the host can read it.
    coming: Option<(wgpu::SubmissionIndex, mpsc::Receiver<Result<(), wgpu::BufferAsyncError>>)>,
}

impl Piece {
    /// Asks for the bytes, which this submission copies.
    fn map(&mut self, index: &wgpu::SubmissionIndex) {
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

impl Landing {
    /// Whether the bytes come in several pieces.
    pub(crate) fn has_pieces(&self) -> bool {
        self.pieces.len() > 1
    }

    /// Asks for the bytes of the last piece, which this submission copies.
    pub(crate) fn map(&mut self, index: &wgpu::SubmissionIndex) {
        self.pieces.iter_mut().filter(|piece| piece.coming.is_none()).for_each(|piece| piece.map(index));
    }

    /// Hands the bytes over, as they come.
    pub(crate) fn land(self, shared: &Arc<Shared>) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use testing::deadline;

    #[test]
    fn places_are_taken_one_after_the_other() {
        let _deadline = deadline();
        let run = |(offset, bytes)| Run { offset, bytes };
        let mut places = Places::new([(4, 8), (16, 0), (24, 12)].map(run).to_vec());
        assert_eq!(places.take(4), [(4, 4)].map(run));
        assert_eq!(places.take(8), [(8, 4), (24, 4)].map(run));
        assert_eq!(places.take(100), [(28, 8)].map(run));
        assert_eq!(places.take(4), []);
    }
}
