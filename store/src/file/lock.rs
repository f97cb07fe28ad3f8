//! The lock of a file that is being written: one writer at a time, in whichever process.
//!
//! The lock is the operating system's, which releases it when a process ends, also by `kill -9`. It is not on
//! the data file: HDF5 locks that file while it reads, so readers and a writer would refuse each other. It is
//! on a file of its own beside the data file, `.NAME.lock`, in which the writer writes its process and host.
//! A writer that ends removes the lock file. One that is killed leaves it, without the lock, and the next
//! writer takes it over.
//!
//! A file system without locks (some cluster file systems) does not hold a writer back.

use crate::{
    Result, StoreError,
    file::{
        device::Device as _,
        holder::Holder,
        partial::sync_folder_of,
        space::folder_of,
        system::{FileSystem, System},
    },
};
use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

/// A lock that is held is tried again for this long: a killed process takes a moment to end.
const PATIENCE: Duration = Duration::from_millis(500);

/// The right to write a file, until it is dropped. Every [`Writer`](crate::Writer) has it.
///
/// A program that replaces a file by another one takes the lock itself, so that no writer works on the file
/// meanwhile:
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("output.h5");
/// use anabranch_store::{FileOptions, StoreError, WriteLock};
///
/// let options = FileOptions::new(&path).frames(2).frame_shape(&[3]);
/// options.create::<f64>()?.finish()?;
/// let lock = WriteLock::acquire(&path)?;
/// assert!(matches!(options.resume::<f64>(0), Err(StoreError::Busy { .. })));
///
/// let longer = folder.path().join("longer.h5");
/// FileOptions::new(&longer).frames(5).frame_shape(&[3]).create::<f64>()?.finish()?;
/// lock.replace(&longer)?;
/// drop(lock);
/// assert!(options.frames(5).resume::<f64>(0).is_ok());
/// # Ok::<(), StoreError>(())
/// ```
#[derive(Debug)]
pub struct WriteLock {
    file: File,
    /// The lock file.
    path: PathBuf,
    /// The file that the lock is for.
    locked: PathBuf,
}

impl WriteLock {
    /// Locks the file at `path`, which must exist. Symbolic links to it lead to the same lock.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another writer, in this process or another, has the lock. [`StoreError::Io`]
    /// when the file does not exist or cannot be locked.
    pub fn acquire(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let real = path.canonicalize().map_err(|e| StoreError::io("open", path, e))?;
        Self::acquire_to("lock", &real)
    }

    /// Gives the file at `from` the name of the locked one, which it replaces. The lock stays, so that no
    /// writer opens the old file. The new name is durable when this returns.
    ///
    /// # Errors
    /// When the file cannot be renamed, or the folder cannot be synchronised.
    pub fn replace(&self, from: impl AsRef<Path>) -> Result<()> {
        let renamed = System.rename(from.as_ref(), &self.locked, true);
        renamed.map_err(|e| StoreError::io("replace", &self.locked, e))?;
        sync_folder_of(&System, &self.locked)
    }

    /// Locks the file at `path`, which need not exist. Its folder must exist. `action` is what the caller
    /// wants to do with the file, for messages.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another writer, in this process or another, has the lock.
    pub(crate) fn acquire_to(action: &'static str, path: &Path) -> Result<Self> {
        let failed = |e| StoreError::io(action, path, e);
        let beside = lock_file_of(path).ok_or_else(|| StoreError::NotAFile { path: path.into() })?;
        // The program may change its working directory while it holds the lock.
        let beside = std::path::absolute(beside).map_err(failed)?;
        let locked = std::path::absolute(path).map_err(failed)?;
        let began = Instant::now();
        loop {
            let mut options = File::options();
            let file =
                options.read(true).write(true).create(true).truncate(false).open(&beside).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => {
                    sleep(Duration::from_millis(10));
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Busy { path: path.into(), holder: Holder::read(&file) });
                }
                Err(TryLockError::Error(error)) if has_no_locks(&error) => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // If the last writer has removed this file in the meantime, the next writer would lock another
            // one.
            if file.is_at(&beside).map_err(failed)? {
                // The name of the holder is for messages only: a full disk does not prevent the lock.
                let _ = Holder::this_process().write(&file);
                return Ok(Self { file, path: beside, locked });
            }
        }
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        // Only on Unix can the next writer see that the file was removed.
        if cfg!(unix) && self.file.is_at(&self.path).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.path);
        }
        // A child process that is being started may have the file open for a moment longer.
        let _ = self.file.unlock();
    }
}

/// Whether this is the error of a file system without locks.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error()) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// What the writer of the file at `path` has written into the lock file. `None` if there is no writer, or if
/// it has written nothing.
pub(crate) fn holder_of(path: &Path) -> Option<Holder> {
    Holder::read(&File::open(lock_file_of(path)?).ok()?)
}

/// The lock file of the file at `path`, which is no folder.
fn lock_file_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    Some(folder_of(path).join(format!(".{}.lock", name.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_of_a_killed_writer_is_taken_over_and_removed() {
        let _deadline = testing::deadline();
        let folder = tempfile::tempdir().unwrap();
        let (path, beside) = (folder.path().join("out.h5"), folder.path().join(".out.h5.lock"));
        std::fs::write(&beside, "4000000 a-host-with-a-very-long-name-that-is-gone\n").unwrap();
        let lock = WriteLock::acquire_to("create", &path).unwrap();
        let expected = Holder::this_process();
        assert!(expected.process == std::process::id() && !expected.host.is_empty());
        match WriteLock::acquire_to("create", &path).unwrap_err() {
            StoreError::Busy { holder, .. } => assert_eq!(holder, Some(expected)),
            other => panic!("{other}"),
        }
        assert!(beside.exists());
        drop(lock);
        assert_eq!(beside.exists(), !cfg!(unix));
        drop(WriteLock::acquire_to("create", &path).unwrap());
    }

    #[test]
    fn a_lock_file_without_text_names_no_holder() {
        let _deadline = testing::deadline();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let other = File::create(folder.path().join(".out.h5.lock")).unwrap();
        other.lock().unwrap();
        let error = WriteLock::acquire_to("create", &path).unwrap_err();
        assert!(matches!(error, StoreError::Busy { holder: None, .. }), "{error}");
        assert!(error.to_string().contains("is being written by another process"), "{error}");
    }

    #[test]
    fn a_file_system_without_locks_is_recognised() {
        let _deadline = testing::deadline();
        assert!(has_no_locks(&io::ErrorKind::Unsupported.into()));
        #[cfg(unix)]
        for errno in [rustix::io::Errno::NOLCK, rustix::io::Errno::NOSYS, rustix::io::Errno::NOTSUP] {
            assert!(has_no_locks(&errno.into()), "{errno}");
        }
        assert!(!has_no_locks(&io::ErrorKind::PermissionDenied.into()));
    }

    #[test]
    fn one_thread_of_many_has_the_lock() {
        let _deadline = testing::deadline();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let inside = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let Ok(lock) = WriteLock::acquire_to("create", &path) else { continue };
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
    }
}
