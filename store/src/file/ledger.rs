//! The count of stored frames and their stamps, in the file.

use crate::{
    SyncLevel,
    file::{
        device::{Device, Way, read_u64_at},
        immutable_part::ImmutablePart,
        layout::{Layout, StampsAt},
    },
};
use std::io;

/// The moment of the simulation that a frame shows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stamp {
    /// Time steps since the beginning.
    pub step: u64,
    /// Simulated time.
    pub time: f64,
}

/// The result of writing a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// How many frames the file holds now.
    pub(crate) count: u64,
    /// Bytes of the frame in the file.
    pub(crate) bytes: u64,
    /// Bytes of the frame that were copied in memory.
    pub(crate) copied: u64,
}

/// The count and the stamps of a file, and the device that the file is on.
pub(crate) struct Ledger {
    pub(crate) device: Box<dyn Device>,
    sync: SyncLevel,
    count: u64,
    count_at: u64,
    stamps_at: Option<StampsAt>,
    immutable: ImmutablePart,
}

impl Ledger {
    /// The ledger of a file that holds `count` frames.
    pub(crate) fn new(
        device: Box<dyn Device>,
        layout: &Layout,
        sync: SyncLevel,
        count: u64,
    ) -> io::Result<Self> {
        let immutable = ImmutablePart::read(&*device, layout)?;
        Ok(Self { device, sync, count, count_at: layout.count_at, stamps_at: layout.stamps_at, immutable })
    }

    /// The part of the file that does not change.
    pub(crate) fn immutable_part(&self) -> &ImmutablePart {
        &self.immutable
    }

    /// Whether the file still begins as it did, counts the frames that were counted, and ends at `end`.
    pub(crate) fn is_intact(&self, end: u64) -> io::Result<bool> {
        Ok(self.immutable.is_on(&*self.device, end)?
            && read_u64_at(&*self.device, self.count_at)? == self.count)
    }

    /// Writes the stamp of a frame, if the file has stamps.
    pub(crate) fn write_stamp(&self, index: u64, stamp: Stamp) -> io::Result<()> {
        let Some(at) = self.stamps_at else { return Ok(()) };
        self.device.write_all_at(&stamp.step.to_ne_bytes(), at.step + 8 * index)?;
        self.device.write_all_at(&stamp.time.to_ne_bytes(), at.time + 8 * index)
    }

    /// Synchronises the device in the middle, if everything is to be there at the end.
    pub(crate) fn sync_early(&self) -> io::Result<()> {
        if self.sync == SyncLevel::End { self.device.sync() } else { Ok(()) }
    }

    /// Writes a frame, and sees to it that it gets to the physical device soon if it is to be there at the
    /// end. Returns how many of its bytes were copied in memory.
    pub(crate) fn write_frame(&self, bytes: &[u8], offset: u64) -> io::Result<u64> {
        if self.sync == SyncLevel::None {
            return self.device.write_all_at(bytes, offset).map(|()| 0);
        }
        match self.device.write_directly_at(bytes, offset)? {
            Way::Direct { copied } => return Ok(copied),
            Way::PageCache if self.sync == SyncLevel::End => {
                self.device.begin_sync(offset, bytes.len() as u64);
            }
            Way::PageCache => {}
        }
        Ok(0)
    }

    /// With [`SyncLevel::Frame`], makes the writes before this call durable before those after it.
    pub(crate) fn barrier(&self) -> io::Result<()> {
        if self.sync == SyncLevel::Frame { self.device.sync() } else { Ok(()) }
    }

    /// As [`barrier`](Self::barrier), and also with [`SyncLevel::End`] if the frame is already counted: an
    /// earlier writer may have promised that it is safe.
    pub(crate) fn barrier_before_replacing(&self, index: u64) -> io::Result<()> {
        if index < self.count { self.sync() } else { self.barrier() }
    }

    /// Counts a frame whose bytes are in place, and returns the count. The count never goes down.
    pub(crate) fn acknowledge(&mut self, index: u64) -> io::Result<u64> {
        self.barrier()?;
        if index >= self.count {
            self.device.write_all_at(&(index + 1).to_ne_bytes(), self.count_at)?;
            self.count = index + 1;
            self.barrier()?;
        }
        Ok(self.count)
    }

    /// Synchronises the device, unless the level is [`SyncLevel::None`].
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.sync == SyncLevel::None { Ok(()) } else { self.device.sync() }
    }
}
