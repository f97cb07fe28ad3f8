//! The part of a file that its writer never changes. By it the writer notices at the end whether another
//! program has written over the file, which is then still the same file for the operating system.

use crate::file::{
    chunks::END_AT,
    device::{Device, read_u64_at},
    layout::Layout,
};
use std::io;

/// The most bytes that are kept.
const LIMIT: u64 = 64 << 10;
/// The bytes of the superblock with the end of the file, which moves while a compressed file is written.
const END: std::ops::Range<usize> = END_AT as usize..END_AT as usize + 8;

/// The first bytes of a file, up to the first one that its writer may change: HDF5's structures and the
/// attributes, without the end of the file.
pub(crate) struct ImmutablePart(Vec<u8>);

impl ImmutablePart {
    /// Reads the immutable part of a file of this layout.
    pub(crate) fn read(device: &dyn Device, layout: &Layout) -> io::Result<Self> {
        Self::read_bytes(device, layout.first_changed().min(LIMIT) as usize)
    }

    /// No bytes.
    pub(crate) fn empty() -> Self {
        Self(Vec::new())
    }

    /// Reads a part of this length.
    pub(crate) fn read_bytes(device: &dyn Device, len: usize) -> io::Result<Self> {
        let mut bytes = vec![0; len];
        device.read_exact_at(&mut bytes, 0)?;
        if let Some(end) = bytes.get_mut(END) {
            end.fill(0);
        }
        Ok(Self(bytes))
    }

    /// The length and the checksum of the part.
    pub(crate) fn fingerprint(&self) -> [u32; 2] {
        [self.0.len() as u32, crc32fast::hash(&self.0)]
    }

    /// Whether the file still has this part, and all bytes up to `end`, which its superblock states.
    pub(crate) fn is_on(&self, device: &dyn Device, end: u64) -> io::Result<bool> {
        let read = || -> io::Result<bool> {
            let mut last = [0];
            device.read_exact_at(&mut last, end.saturating_sub(1))?;
            Ok(Self::read_bytes(device, self.0.len())?.0 == self.0 && end_of(device)? == end)
        };
        match read() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            other => other,
        }
    }
}

/// The end of the file that its superblock states.
pub(crate) fn end_of(device: &dyn Device) -> io::Result<u64> {
    Ok(u64::from_le(read_u64_at(device, END_AT)?))
}
