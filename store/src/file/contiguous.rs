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
}

impl Contiguous {
    pub(crate) fn write_frame(&mut self, index: u64, bytes: &[u8], stamp: Stamp) -> io::Result<Written> {
        self.ledger.device.write_all_at(bytes, self.start + index * self.frame_bytes)?;
        self.count_frame(index, stamp)
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
