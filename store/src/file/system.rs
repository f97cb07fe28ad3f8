//! The operations of the file system that matter for a power failure, beside those of a [`Device`]. Fault tests
//! put a file system of their own here.

use crate::file::device::Device;
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

impl FileSystem for System {
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
