//! Positioned reads and writes: the only way in which frames reach a file. Fault tests put a device of their
//! own here.

use std::{fs::File, io, path::Path};

/// A file that is written at given positions.
pub(crate) trait Device: Send {
    /// Writes all of `bytes` at `offset`.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Fills `buffer` from `offset` on.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Returns when all data written so far has reached the physical device.
    fn sync(&self) -> io::Result<()>;
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
