//! Uncompressed frames, one after the other.

use crate::file::ledger::{Ledger, Stamp, Written};
use std::io;

/// A file whose frames lie one after the other.
pub(crate) struct Contiguous {
    pub(crate) ledger: Ledger,
    /// The position of frame 0.
    pub(crate) start: u64,
    pub(crate) frame_bytes: u64,
    /// The end of the file, which does not move.
    pub(crate) end: u64,
    /// Up to this position the space of frames is reserved.
    pub(crate) reserved: u64,
}

/// Space is reserved, and written frames are synchronised, in steps of this many bytes: so a file with room
/// for many frames occupies little more than those that were written, and the last synchronisation has little
/// to do.
pub(crate) const STEP: u64 = if cfg!(test) { 16 << 10 } else { 64 << 20 };

impl Contiguous {
    pub(crate) fn write_frame(&mut self, index: u64, bytes: &[u8], stamp: Stamp) -> io::Result<Written> {
        let at = self.start + index * self.frame_bytes;
        if at + self.frame_bytes > self.reserved {
            if self.reserved > self.start {
                self.ledger.sync_early()?;
            }
            self.reserve(at);
        }
        let copied = self.ledger.write_frame(bytes, at)?;
        Ok(Written { copied, ..self.count_frame(index, stamp)? })
    }

    /// Reserves the space of the frame at this position, and of some after it.
    fn reserve(&mut self, at: u64) {
        let begin = at.max(self.reserved);
        let end = (begin + STEP).min(self.end).max(at + self.frame_bytes);
        self.ledger.device.reserve(begin, end - begin);
        self.reserved = end;
    }

    /// Counts a frame whose bytes are in the file.
    pub(crate) fn count_frame(&mut self, index: u64, stamp: Stamp) -> io::Result<Written> {
        self.ledger.write_stamp(index, stamp)?;
        let count = self.ledger.acknowledge(index)?;
        Ok(Written { count, bytes: self.frame_bytes, copied: 0 })
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.ledger.sync()
    }
}
