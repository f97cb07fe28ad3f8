//! Files that appear under their final name when they are complete.

use crate::{
    Result, StoreError,
    file::{device::Device, space::folder_of, system::FileSystem},
};
use std::{
    fs::File,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread::sleep,
    time::{Duration, Instant},
};

/// The way in which a complete file gets its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placing {
    /// The contents and the new name survive a power failure.
    pub(crate) durable: bool,
    /// A file that has the name is replaced; otherwise it is an error.
    pub(crate) replace: bool,
}

/// A file under a temporary name beside its final one. Dropping it removes the file, unless
/// [`place`](Self::place) has renamed it.
pub(crate) struct Partial {
    temporary: PathBuf,
    path: PathBuf,
    id: (u32, u64),
    placed: bool,
}

impl Partial {
    /// Creates the empty temporary file, with a name of its own.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = existing_folder(path)?;
        loop {
            let id = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
            let temporary = folder.join(Self::name(path, id)?);
            match File::create_new(&temporary) {
                Ok(_) => return Ok(Self { temporary, path: path.into(), id, placed: false }),
                // A process of this number was killed, or runs on another host.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(StoreError::io("create", path, error)),
            }
        }
    }

    /// The temporary name of the file at `path`, of a process and its number for it.
    pub(crate) fn name(path: &Path, (process, number): (u32, u64)) -> Result<String> {
        let name = path.file_name().ok_or_else(|| StoreError::NotAFile { path: path.into() })?;
        Ok(format!(".{}.{process}-{number}.partial", name.to_string_lossy()))
    }

    /// The process that has created the file, and its number for it: they are in the temporary name.
    pub(crate) fn id(&self) -> (u32, u64) {
        self.id
    }

    /// The temporary path.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file, which is open as `device`, its final name. After a power failure a durable file is
    /// complete if it has the name at all, and it has the name once this has returned.
    pub(crate) fn place(
        mut self,
        system: &dyn FileSystem,
        device: &dyn Device,
        placing: Placing,
    ) -> Result<()> {
        if placing.durable {
            device.sync().map_err(|e| StoreError::io("synchronise", &self.path, e))?;
        }
        system.rename(&self.temporary, &self.path, placing.replace).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => StoreError::Exists { path: self.path.clone() },
            _ => StoreError::io("create", &self.path, e),
        })?;
        self.placed = true;
        if placing.durable { sync_folder_of(system, &self.path) } else { Ok(()) }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.placed {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// A file that does not exist is looked for again for this long: on a network file system it may take a
/// moment until another machine sees a new file.
const PATIENCE: Duration = Duration::from_secs(2);

/// The file at `path`, which another process has created, behind all symbolic links, open for reading.
pub(crate) fn find(path: &Path) -> Result<(PathBuf, File)> {
    let began = Instant::now();
    loop {
        match path.canonicalize().and_then(|real| Ok((real.clone(), File::open(real)?))) {
            Ok(found) => return Ok(found),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(StoreError::io("open", path, error));
            }
            Err(_) if began.elapsed() < PATIENCE => sleep(Duration::from_millis(10)),
            Err(_) => {
                return Err(StoreError::NotAnnounced {
                    path: path.into(),
                    reason: "this process finds no file at the path".into(),
                });
            }
        }
    }
}

/// The folder that a file is to be created in. An error if it does not exist.
pub(crate) fn existing_folder(path: &Path) -> Result<PathBuf> {
    let folder = folder_of(path);
    if folder.is_dir() { Ok(folder) } else { Err(StoreError::NoFolder { path: path.into(), folder }) }
}

/// Makes the name of a file durable.
pub(crate) fn sync_folder_of(system: &dyn FileSystem, path: &Path) -> Result<()> {
    let folder = folder_of(path);
    system.sync_folder(&folder).map_err(|e| StoreError::io("synchronise the folder", folder, e))
}
