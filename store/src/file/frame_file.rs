//! An open file that takes frames, compressed or not.

use crate::{
    SyncLevel,
    file::{
        compressed::Compressed,
        contiguous::Contiguous,
        device::Device,
        layout::{FramesAt, Layout},
        ledger::{Ledger, Stamp, Written},
    },
};
use std::{io, path::Path};

/// A file that takes frames.
pub(crate) enum FrameFile {
    Contiguous(Contiguous),
    Compressed(Box<Compressed>),
}

impl FrameFile {
    /// The file of this layout on `device`, of which `count` frames are stored.
    pub(crate) fn new(
        device: Box<dyn Device>,
        layout: &Layout,
        sync: SyncLevel,
        count: u64,
    ) -> io::Result<Self> {
        let ledger = Ledger::new(device, layout, sync, count);
        Ok(match &layout.frames_at {
            FramesAt::Contiguous(start) => {
                Self::Contiguous(Contiguous { ledger, start: *start, frame_bytes: layout.frame_bytes })
            }
            FramesAt::Chunked(table) => Self::Compressed(Box::new(Compressed::new(ledger, table.clone())?)),
        })
    }

    /// Writes a frame. When this returns `Ok`, the frame is acknowledged.
    pub(crate) fn write_frame(&mut self, index: u64, bytes: &[u8], stamp: Stamp) -> io::Result<Written> {
        match self {
            Self::Contiguous(file) => file.write_frame(index, bytes, stamp),
            Self::Compressed(file) => file.write_frame(index, bytes, stamp),
        }
    }

    /// Completes the file after its last frame.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Contiguous(file) => file.finish(),
            Self::Compressed(file) => file.finish(),
        }
    }
    /// Whether the file at `path` is this one.
    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let ledger = match self {
            Self::Contiguous(file) => &file.ledger,
            Self::Compressed(file) => &file.ledger,
        };
        ledger.device.is_at(path)
    }
}
