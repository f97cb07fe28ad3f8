//! An open file that takes frames, compressed or not.

use crate::{
    SyncLevel,
    file::{
        compressed::Compressed,
        contiguous::Contiguous,
        device::Device,
        immutable_part::{ImmutablePart, end_of},
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
        let ledger = Ledger::new(device, layout, sync, count)?;
        Ok(match &layout.frames_at {
            FramesAt::Contiguous(start) => {
                let end = end_of(&*ledger.device)?;
                let (start, frame_bytes) = (*start, layout.frame_bytes);
                Self::Contiguous(Contiguous { ledger, start, frame_bytes, end, reserved: start })
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

    /// Counts a frame whose parts are all written. `None` for a compressed file, which has no parts.
    pub(crate) fn count_frame(&mut self, index: u64, stamp: Stamp) -> Option<io::Result<Written>> {
        match self {
            Self::Contiguous(file) => Some(file.count_frame(index, stamp)),
            Self::Compressed(_) => None,
        }
    }

    /// The position of frame 0, and the immutable part of the file. `None` for a compressed file.
    pub(crate) fn start(&self) -> Option<(u64, &ImmutablePart)> {
        match self {
            Self::Contiguous(file) => Some((file.start, file.ledger.immutable_part())),
            Self::Compressed(_) => None,
        }
    }

    /// Completes the file after its last frame.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Contiguous(file) => file.finish(),
            Self::Compressed(file) => file.finish(),
        }
    }

    /// What has become of the file at `path` after [`finish`](Self::finish).
    pub(crate) fn state(&self, path: &Path) -> io::Result<State> {
        let (ledger, end) = match self {
            Self::Contiguous(file) => (&file.ledger, file.end),
            Self::Compressed(file) => (&file.ledger, file.reserved),
        };
        if !ledger.device.is_at(path)? {
            return Ok(State::Displaced);
        }
        Ok(if ledger.is_intact(end)? { State::Intact } else { State::Overwritten })
    }
}

/// What has become of a file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It is at its path, as it was written.
    Intact,
    /// No file, or another one, is at its path.
    Displaced,
    /// It is at its path, and another program has written to it.
    Overwritten,
}
