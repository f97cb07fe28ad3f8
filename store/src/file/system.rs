//! The operations of the file system that matter for a power failure, beside those of a [`Device`]. Fault
//! tests put a file system of their own here.

use crate::file::device::Device;
#[cfg(target_os = "linux")]
use crate::file::direct::DirectFile;
use std::{fs::File, io, path::Path};

/// Opens files, and gives them their names.
pub(crate) trait FileSystem {
    /// Opens an existing file to read and write it.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Device>>;
    /// Renames a file. If `to` exists, it is replaced at once if `replace` is set, and otherwise this fails.
    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()>;
    /// Returns when the names of the files in this folder have reached the physical device.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// The operating system's files.
pub(crate) struct System;

impl System {
    /// Opens an existing file to write parts of it, beside other machines.
    ///
    /// A client of NFS keeps written data for a while. It may also write back the whole page around them, and
    /// so overwrite what another machine has written meanwhile. It does neither to a file that is open with
    /// `O_DSYNC`.
    pub(crate) fn open_part(&self, path: &Path) -> io::Result<Box<dyn Device>> {
        let mut options = File::options();
        options.write(true);
        #[cfg(unix)]
        if is_on_network(path)? {
            use std::os::unix::fs::OpenOptionsExt;
            options.custom_flags(rustix::fs::OFlags::DSYNC.bits() as i32);
        }
        Ok(Box::new(options.open(path)?))
    }
}

/// Whether the file is on a file system whose clients keep data to themselves.
#[cfg(target_os = "linux")]
fn is_on_network(path: &Path) -> io::Result<bool> {
    // NFS, SMB 1, SMB 2 and later, CIFS, 9p, AFS, Coda, BeeGFS, whose clients write from buffers of their
    // own, and FUSE, behind which a network may be.
    const NETWORK: [u32; 9] = [
        0x6969,
        0x517b,
        0xfe53_4d42,
        0xff53_4d42,
        0x0102_1997,
        0x5346_414f,
        0x7375_7245,
        0x1983_0326,
        0x6573_5546,
    ];
    Ok(NETWORK.contains(&(rustix::fs::statfs(path)?.f_type as u32)))
}

/// Elsewhere it is not known, so that it may be.
#[cfg(all(unix, not(target_os = "linux")))]
fn is_on_network(_: &Path) -> io::Result<bool> {
    Ok(true)
}

impl FileSystem for System {
    #[cfg(target_os = "linux")]
    fn open(&self, path: &Path) -> io::Result<Box<dyn Device>> {
        Ok(Box::new(DirectFile::open(path)?))
    }

    #[cfg(not(target_os = "linux"))]
    fn open(&self, path: &Path) -> io::Result<Box<dyn Device>> {
        Ok(Box::new(File::options().read(true).write(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        if replace { std::fs::rename(from, to) } else { rename_to_new(from, to) }
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        // Other systems cannot open a folder.
        if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
    }
}

/// Renames a file to a name that must be free, in one operation where the file system has it.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::{
        fs::{CWD, RenameFlags, renameat_with},
        io::Errno,
    };
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_if_free(from, to),
        other => Ok(other?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_if_free(from, to)
}

/// Renames a file if the name is free. Another program could still take the name in between.
fn rename_if_free(from: &Path, to: &Path) -> io::Result<()> {
    if to.symlink_metadata().is_ok() {
        Err(io::ErrorKind::AlreadyExists.into())
    } else {
        std::fs::rename(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{read, write};

    #[test]
    fn a_taken_name_is_replaced_only_on_request() {
        for rename in [|a: &Path, b: &Path| System.rename(a, b, false), rename_if_free] {
            let folder = tempfile::tempdir().unwrap();
            let (from, to) = (folder.path().join("from"), folder.path().join("to"));
            write(&from, "new").unwrap();
            write(&to, "old").unwrap();
            assert_eq!(rename(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!((read(&from).unwrap(), read(&to).unwrap()), (b"new".into(), b"old".into()));
            System.rename(&from, &to, true).unwrap();
            assert_eq!(read(&to).unwrap(), b"new");
            rename(&to, &from).unwrap();
            assert_eq!(read(&from).unwrap(), b"new");
        }
    }
}
