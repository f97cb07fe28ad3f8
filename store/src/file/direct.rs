//! Writes that go past the page cache of the system (Linux).
//!
//! A write to the page cache copies the bytes, and later the system copies nothing but looks for them page by
//! page: on two processors that takes a third of a second of processor time for each gigabyte, which the
//! computation lacks. A direct write lets the device read the bytes where they are. In exchange it returns
//! only when the device has them, and a program that reads the file later reads it from the device.
//!
//! The device demands that position, length and memory of a direct write are multiples of certain numbers.
//! Frames are seldom so. So the bytes before the first such position in a frame and behind the last one go
//! through the page cache, and the others are written directly, if there are enough of them.

use super::device::Device;
use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};
use std::{
    fs::File,
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Fewer bytes than this are not written directly: the page cache takes less time for them than the device.
const LEAST: u64 = if cfg!(test) { 3 * BLOCK } else { 1 << 20 };

/// Parts of blocks of this size are not written directly: the size of a block in most file systems.
const BLOCK: u64 = 4096;

/// A file, a part of whose writes go past the page cache where the file system can do that.
pub(crate) struct DirectFile {
    file: File,
    direct: Option<Direct>,
}

/// The same file, opened for direct writes.
struct Direct {
    file: File,
    /// A position in the file must be a multiple of this, and a length, too.
    position: u64,
    /// An address must be a multiple of this.
    memory: u64,
    /// The system has refused a direct write all the same.
    is_refused: AtomicBool,
}

impl DirectFile {
    /// Opens an existing file to read and write it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let direct = Direct::open(path, &file);
        Ok(Self { file, direct })
    }
}

impl Direct {
    /// Opens the `file` at `path` once more. `None` if its file system has no direct writes, or does not say
    /// what it demands of them.
    fn open(path: &Path, file: &File) -> Option<Self> {
        let demands = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
        let [position, memory] = [demands.stx_dio_offset_align, demands.stx_dio_mem_align].map(u64::from);
        if position == 0 || memory == 0 || position > LEAST {
            return None;
        }
        let direct =
            File::options().write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path).ok()?;
        // Another program may have put another file there meanwhile.
        let is_same = direct.is_at(path).ok()? && file.is_at(path).ok()?;
        // A device may accept parts of blocks, but the file system has more to do for them.
        let position = position.max(BLOCK);
        is_same.then_some(Self { file: direct, position, memory, is_refused: AtomicBool::new(false) })
    }

    /// The part of `bytes`, which are written at `offset`, that can be written directly; `None` if there is too
    /// little.
    fn part(&self, bytes: &[u8], offset: u64) -> Option<std::ops::Range<usize>> {
        let end = offset + bytes.len() as u64;
        let (first, last) = (offset.next_multiple_of(self.position), end - end % self.position);
        let part = (first - offset) as usize..last.checked_sub(offset)? as usize;
        let is_enough = part.len() as u64 >= LEAST && part.start < part.end;
        let address = bytes.as_ptr() as u64 + part.start as u64;
        (is_enough && address.is_multiple_of(self.memory)).then_some(part)
    }
}

impl Device for DirectFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        Device::write_all_at(&self.file, bytes, offset)
    }

    fn write_directly_at(&self, bytes: &[u8], offset: u64) -> io::Result<bool> {
        let direct = self.direct.as_ref().filter(|direct| !direct.is_refused.load(Relaxed));
        let Some((direct, part)) = direct.and_then(|direct| Some((direct, direct.part(bytes, offset)?)))
        else {
            self.write_all_at(bytes, offset)?;
            return Ok(false);
        };
        let at = |position: usize| offset + position as u64;
        match Device::write_all_at(&direct.file, &bytes[part.clone()], at(part.start)) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                direct.is_refused.store(true, Relaxed);
                self.write_all_at(bytes, offset)?;
                return Ok(false);
            }
            other => other?,
        }
        self.write_all_at(&bytes[..part.start], offset)?;
        self.write_all_at(&bytes[part.end..], at(part.end))?;
        Ok(true)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        Device::read_exact_at(&self.file, buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn reserve(&self, offset: u64, len: u64) {
        self.file.reserve(offset, len);
    }

    fn begin_sync(&self, offset: u64, len: u64) {
        self.file.begin_sync(offset, len);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Device::set_len(&self.file, len)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.is_at(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    /// The length of the files, in bytes.
    const LEN: usize = 40 * BLOCK as usize;

    fn file_in(folder: &Path) -> DirectFile {
        let path = folder.join("file");
        File::create(&path).unwrap().set_len(LEN as u64).unwrap();
        DirectFile::open(&path).unwrap()
    }

    /// Memory that begins `beyond` bytes after an address that every device accepts.
    fn memory(beyond: usize) -> (Vec<u8>, usize) {
        let memory = vec![0; LEN + beyond + BLOCK as usize];
        let start = memory.as_ptr().align_offset(BLOCK as usize) + beyond;
        (memory, start)
    }

    proptest! {
        /// Writes of both kinds, from memory of all alignments, leave in the file what they have written.
        #[test]
        fn what_is_written_is_what_is_read(
            writes in proptest::collection::vec(
                (0..LEN, 1..LEN, prop_oneof![2 => Just(None), 1 => (0..4096_usize).prop_map(Some)], any::<bool>(), any::<u8>()),
                1..12,
            ),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let file = file_in(folder.path());
            let mut expected = vec![0; LEN];
            for (offset, len, beyond, directly, value) in writes {
                let len = len.min(LEN - offset);
                // Blocks of the file are in memory that the device accepts, or anywhere.
                let beyond = beyond.unwrap_or(offset % BLOCK as usize);
                let (mut memory, start) = memory(beyond);
                let bytes = &mut memory[start..start + len];
                bytes.iter_mut().zip(value..=u8::MAX).for_each(|(byte, value)| *byte = value);
                bytes[len - 1] = value;
                expected[offset..offset + len].copy_from_slice(bytes);
                if directly {
                    file.write_directly_at(bytes, offset as u64).unwrap();
                } else {
                    file.write_all_at(bytes, offset as u64).unwrap();
                }
            }
            let mut found = vec![0; LEN];
            file.read_exact_at(&mut found, 0).unwrap();
            prop_assert!(found == expected);
        }
    }

    #[test]
    fn long_writes_of_aligned_memory_are_direct_if_the_file_system_has_such_writes() {
        let folder = tempfile::tempdir().unwrap();
        let file = file_in(folder.path());
        let (memory, start) = memory(0);
        let write = |len: u64, offset: u64, beyond: u64| {
            let start = start + beyond as usize;
            file.write_directly_at(&memory[start..start + len as usize], offset).unwrap()
        };
        // Too short, or in the wrong memory.
        assert!(!write(LEAST - 1, 0, 0));
        assert!(!write(LEAST + 2 * BLOCK, 0, 1));
        if file.direct.is_none() {
            let _ = writeln!(
                io::stderr(),
                "skipped: direct writes (the temporary folder is on a file system without them)"
            );
            return;
        }
        assert!(write(LEAST, BLOCK, 0));
        // Not all of it can be written directly: its ends are in the middle of blocks.
        assert!(write(LEAST + 2 * BLOCK, 512, 512));
    }

    /// The system may refuse what it said it would accept.
    #[test]
    fn a_write_that_is_refused_goes_through_the_page_cache() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file_in(folder.path());
        let path = folder.path().join("file");
        // A file that cannot be written stands for it: such a write has another error, which comes out.
        let direct = |file: File| Direct { file, position: 1, memory: 1, is_refused: AtomicBool::new(false) };
        file.direct = Some(direct(File::open(&path).unwrap()));
        let (memory, start) = memory(0);
        let bytes = &memory[start..start + 2 * LEAST as usize];
        assert!(file.write_directly_at(bytes, 0).is_err());
        let refusing = File::options().write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(&path);
        if let Ok(refusing) = refusing {
            file.direct = Some(direct(refusing));
            // A position in the middle of a block.
            if !file.write_directly_at(bytes, 1).unwrap() {
                assert!(file.direct.as_ref().unwrap().is_refused.load(Relaxed));
            }
        }
    }
}
