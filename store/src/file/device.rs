//! Positioned reads and writes: the only way in which frames reach a file. Fault tests put a device of their
//! own here.

use std::{fs::File, io, path::Path};

/// The way that a frame has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is with the system, which writes it to the physical device later.
    PageCache,
    /// The physical device has it, but for parts of a block or two at its ends.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has direct writes here"))]
    Direct {
        /// How many of its bytes were copied in memory before.
        copied: u64,
    },
}

/// A file that is written at given positions.
pub(crate) trait Device: Send {
    /// Writes all of `bytes` at `offset`.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// The same for a frame that is to be on the physical device soon. Until [`sync`](Self::sync) returns, it
    /// may be in a cache of the device.
    fn write_directly_at(&self, bytes: &[u8], offset: u64) -> io::Result<Way> {
        self.write_all_at(bytes, offset)?;
        Ok(Way::PageCache)
    }
    /// Fills `buffer` from `offset` on.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Returns when all data written so far has reached the physical device.
    fn sync(&self) -> io::Result<()>;
    /// Reserves the space of a part of the file that is written soon, where the file system can. Without
    /// this, it looks for the place of each page when it writes the page to the physical device, which takes
    /// several times as long.
    fn reserve(&self, _offset: u64, _len: u64) {}
    /// Begins to write a part of the file to the physical device, where the system can, so that a later
    /// [`sync`](Self::sync) finds less to do.
    fn begin_sync(&self, _offset: u64, _len: u64) {}
    /// Sets the length of the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Whether the file at `path` is this one. On systems other than Unix any file there passes for it.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

impl Device for File {
    #[cfg(unix)]
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    #[cfg(windows)]
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_write(self, bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => (bytes, offset) = (&bytes[n..], offset + n as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(self, buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => (buffer, offset) = (&mut buffer[n..], offset + n as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, offset: u64, len: u64) {
        // If there is no room, the write says so.
        let _ = rustix::fs::fallocate(self, rustix::fs::FallocateFlags::KEEP_SIZE, offset, len);
    }

    #[cfg(target_os = "linux")]
    fn begin_sync(&self, offset: u64, len: u64) {
        // This also drops the pages that are on the device already: of a part that was just written, none.
        let len = std::num::NonZero::new(len);
        let _ = rustix::fs::fadvise(self, offset, len, rustix::fs::Advice::DontNeed);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let there = match path.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        #[cfg(unix)]
        let same = {
            use std::os::unix::fs::MetadataExt;
            let here = self.metadata()?;
            (here.dev(), here.ino()) == (there.dev(), there.ino())
        };
        #[cfg(not(unix))]
        let same = there.is_file();
        Ok(same)
    }
}

/// Reads the number at `offset`, in this machine's byte order.
pub(crate) fn read_u64_at(device: &(impl Device + ?Sized), offset: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    device.read_exact_at(&mut bytes, offset)?;
    Ok(u64::from_ne_bytes(bytes))
}
