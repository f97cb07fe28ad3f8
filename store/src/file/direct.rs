//! Writes that go past the page cache of the system (Linux).
//!
//! A write to the page cache copies the bytes. Later the system looks for them page by page. Together that
//! takes half a second of processor time or more for each gigabyte, which the computation could use. A direct
//! write lets the device read the bytes where they are. It returns only when the device has them. A program
//! that reads the file later reads it from the device.
//!
//! The device demands that position, length and memory of a direct write are multiples of certain numbers.
//! The bytes before the first such position in a frame and behind the last one go through the page cache. The
//! others are written directly, if there are enough of them. If they are in memory that the device does not
//! accept, they are copied to a buffer before, piece by piece: that takes less time than the page cache does.

use super::device::{Device, Way};
use parking_lot::Mutex;
use rustix::{
    fs::{AtFlags, OFlags, StatxFlags, statx},
    io::Errno,
};
use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Fewer bytes than this are not written directly: the page cache takes less time for them than the device.
const LEAST: u64 = if cfg!(test) { 3 * BLOCK } else { 1 << 20 };

/// Whole blocks of this size are written directly: the size of a block in most file systems, and a multiple
/// of what devices demand.
const BLOCK: u64 = 4096;

/// Bytes in the wrong memory are copied and written in pieces of this length.
const PIECE: usize = if cfg!(test) { 2 * BLOCK as usize } else { 4 << 20 };

/// A file, a part of whose writes go past the page cache where the file system can do that.
pub(crate) struct DirectFile {
    file: File,
    direct: Option<Direct>,
}

/// The same file, opened for direct writes.
struct Direct {
    file: File,
    /// An address must be a multiple of this.
    memory: usize,
    /// The buffer for bytes in the wrong memory, empty until there are some.
    buffer: Mutex<Vec<u8>>,
    /// Whether the system has refused a direct write.
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
        let position = u64::from(demands.stx_dio_offset_align);
        let memory = demands.stx_dio_mem_align as usize;
        let is_usual = position != 0 && BLOCK.is_multiple_of(position) && memory.is_power_of_two();
        if !is_usual || memory > PIECE {
            return None;
        }
        let direct =
            File::options().write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path).ok()?;
        // Another program may have put another file there meanwhile.
        let [here, there] = [file, &direct].map(|file| file.metadata().ok());
        let (here, there) = (here?, there?);
        let is_same = (here.dev(), here.ino()) == (there.dev(), there.ino());
        is_same.then(|| Self::new(direct, memory))
    }

    fn new(file: File, memory: usize) -> Self {
        Self { file, memory, buffer: Mutex::default(), is_refused: AtomicBool::new(false) }
    }

    /// Writes whole blocks. Returns how many bytes were copied in memory.
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<u64> {
        if bytes.as_ptr().align_offset(self.memory) == 0 {
            Device::write_all_at(&self.file, bytes, offset)?;
            return Ok(0);
        }
        let mut buffer = self.buffer.lock();
        buffer.resize(PIECE + self.memory, 0);
        let start = buffer.as_ptr().align_offset(self.memory);
        for (piece, at) in bytes.chunks(PIECE).zip((offset..).step_by(PIECE)) {
            let copy = &mut buffer[start..start + piece.len()];
            copy.copy_from_slice(piece);
            Device::write_all_at(&self.file, copy, at)?;
        }
        Ok(bytes.len() as u64)
    }
}

/// The whole blocks among `len` bytes that are written at `offset`; `None` if there are too few.
fn whole_blocks(offset: u64, len: usize) -> Option<Range<usize>> {
    let end = offset + len as u64;
    let (first, last) = (offset.next_multiple_of(BLOCK), end - end % BLOCK);
    (last >= first + LEAST).then(|| (first - offset) as usize..(last - offset) as usize)
}

/// Whether the system has refused a direct write of bytes that it may take through the page cache. It may
/// refuse their position, their memory (a device may have lent it) or all direct writes.
fn is_refusal(error: &io::Error) -> bool {
    let refusals = [Errno::INVAL, Errno::FAULT, Errno::NOTSUP, Errno::OPNOTSUPP];
    Errno::from_io_error(error).is_some_and(|error| refusals.contains(&error))
}

impl Device for DirectFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        Device::write_all_at(&self.file, bytes, offset)
    }

    fn write_directly_at(&self, bytes: &[u8], offset: u64) -> io::Result<Way> {
        let direct = self.direct.as_ref().filter(|direct| !direct.is_refused.load(Relaxed));
        let (Some(direct), Some(blocks)) = (direct, whole_blocks(offset, bytes.len())) else {
            self.write_all_at(bytes, offset)?;
            return Ok(Way::PageCache);
        };
        let at = |position: usize| offset + position as u64;
        let copied = match direct.write(&bytes[blocks.clone()], at(blocks.start)) {
            Err(error) if is_refusal(&error) => {
                direct.is_refused.store(true, Relaxed);
                self.write_all_at(bytes, offset)?;
                return Ok(Way::PageCache);
            }
            other => other?,
        };
        self.write_all_at(&bytes[..blocks.start], offset)?;
        self.write_all_at(&bytes[blocks.end..], at(blocks.end))?;
        Ok(Way::Direct { copied })
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

    /// The position and the length of a write; how far its memory begins beyond an address that every device
    /// accepts, or `None` if all blocks of the file are to be in such memory; whether it is direct; a byte.
    fn write() -> impl Strategy<Value = (usize, usize, Option<usize>, bool, u8)> {
        let beyond = prop_oneof![2 => Just(None), 1 => (0..BLOCK as usize).prop_map(Some)];
        (0..LEN, 1..LEN, beyond, any::<bool>(), any::<u8>())
    }

    proptest! {
        /// Writes of both kinds, from memory of all alignments, leave in the file what they have written.
        #[test]
        fn what_is_written_is_what_is_read(
            writes in proptest::collection::vec(write(), 1..12),
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
                for (at, byte) in bytes.iter_mut().enumerate() {
                    // 251 does not divide the length of a piece.
                    *byte = value.wrapping_add((at % 251) as u8);
                }
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
    fn long_writes_are_direct_if_the_file_system_has_such_writes() {
        let folder = tempfile::tempdir().unwrap();
        let file = file_in(folder.path());
        let (memory, start) = memory(0);
        let write = |len: u64, offset: u64, beyond: u64| {
            let start = start + beyond as usize;
            file.write_directly_at(&memory[start..start + len as usize], offset).unwrap()
        };
        assert_eq!(write(LEAST - 1, 0, 0), Way::PageCache);
        if file.direct.is_none() {
            let what = "direct writes (the temporary folder is on a file system without them)";
            let _ = writeln!(io::stderr(), "skipped: {what}");
            return;
        }
        assert_eq!(write(LEAST, BLOCK, 0), Way::Direct { copied: 0 });
        // Its ends are in the middle of blocks.
        assert_eq!(write(LEAST + 2 * BLOCK, 512, 512), Way::Direct { copied: 0 });
        // It is in the wrong memory.
        assert_eq!(write(LEAST + 100, 0, 1), Way::Direct { copied: LEAST });
    }

    /// The system may refuse what it said it would accept.
    #[test]
    fn a_write_that_is_refused_goes_through_the_page_cache() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file_in(folder.path());
        let (memory, start) = memory(1);
        let bytes = &memory[start..start + 2 * LEAST as usize];
        let Some(direct) = file.direct.take() else { return };
        // As if the device had said that it accepts any memory. Some file systems then use the page cache.
        file.direct = Some(Direct::new(direct.file, 1));
        let way = file.write_directly_at(bytes, 0).unwrap();
        assert_eq!(way == Way::PageCache, file.direct.as_ref().unwrap().is_refused.load(Relaxed));
        // Another error comes out.
        file.direct = Some(Direct::new(File::open(folder.path().join("file")).unwrap(), 1));
        assert!(file.write_directly_at(bytes, 0).is_err());
    }
}
