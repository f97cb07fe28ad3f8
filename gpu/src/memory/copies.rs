//! Copies between the host and the device, in pieces.
//!
//! A copy goes by way of buffers that both reach. A large copy is cut into pieces with a buffer each, and a
//! piece is submitted as soon as it is encoded. So the device copies a piece while the host writes the next
//! one, or reads the one before.

use super::{
    downloads::{PendingDownload, Piece},
    pieces::{PIECE, Places, total},
    staging::Sort,
};
use crate::threads::{encode::Encoding, shared::Shared};
use anabranch::device::{Download, Upload};
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    pub(crate) fn download(&mut self, Download { from, runs, take }: Download) -> PendingDownload {
        let (mut left, mut pieces) = (total(&runs), Vec::new());
        let (mut places, memory) = (Places::new(runs), self.buffer(&from));
        while let Some(memory) = &memory
            && left > 0
        {
            let bytes = left.min(PIECE);
            left -= bytes;
            let staging = self.shared.staging.take(&self.shared.allocator, Sort::Download, bytes);
            self.copies(&places.take(bytes), |encoder, run, at| {
                encoder.copy_buffer_to_buffer(memory, run.offset, &staging, at, run.bytes);
            });
            let mut piece = Piece::new(staging, bytes);
            if left > 0 {
                piece.map(&self.submit_so_far());
            }
            pieces.push(piece);
        }
        PendingDownload { pieces, take }
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
        let buffer = shared.staging.take(&shared.allocator, Sort::Upload, bytes);
        let view = buffer.slice(..bytes).get_mapped_range_mut().map_err(|error| error.to_string())?;
        Ok(Self { buffer, view, filled: 0 })
    }
}
