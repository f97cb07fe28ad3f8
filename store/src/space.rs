//! Room on the file system.

use std::path::{Path, PathBuf};

use crate::{Result, StoreError};

/// The folder that a file is in; `.` for a bare name.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// The bytes that this user can still write to the file system that `path` is or would be on.
///
/// The path itself need not exist; the nearest folder above it that does is asked.
///
/// # Errors
/// When the operating system cannot tell.
///
/// ```
/// let free = anabranch_store::available_bytes("output.h5").unwrap();
/// println!("{free} bytes free");
/// ```
pub fn available_bytes(path: impl AsRef<Path>) -> Result<u64> {
    let path = path.as_ref();
    let mut place = path.to_path_buf();
    while !place.exists() {
        let above = folder_of(&place);
        if above == place || place == Path::new(".") {
            break;
        }
        place = above;
    }
    fs4::available_space(&place).map_err(|e| StoreError::io("read the free space of", place, e))
}

/// The bytes that become free when this file is replaced.
pub(crate) fn occupied_bytes(path: &Path) -> u64 {
    let Ok(metadata) = path.metadata() else { return 0 };
    #[cfg(unix)]
    let occupied = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    #[cfg(not(unix))]
    let occupied = metadata.len();
    occupied
}

/// Makes a rename or creation in this folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    #[cfg(unix)]
    std::fs::File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| StoreError::io("synchronise the folder", folder, e))?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// A file under a temporary name beside its final one: removed again unless it is put into place.
pub(crate) struct Partial {
    temporary: PathBuf,
    path: PathBuf,
    placed: bool,
}

impl Partial {
    /// Creates the empty temporary file.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let name = path.file_name().ok_or_else(|| StoreError::NotAFile { path: path.into() })?;
        let folder = folder_of(path);
        let temporary = folder.join(format!(".{}.{}.partial", name.to_string_lossy(), std::process::id()));
        if !folder.is_dir() {
            return Err(StoreError::NoFolder { path: path.into(), folder });
        }
        std::fs::File::create(&temporary).map_err(|e| StoreError::io("create", path, e))?;
        Ok(Self { temporary, path: path.into(), placed: false })
    }

    /// Where the file is while it is being made.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its final name, replacing what had it.
    pub(crate) fn place(mut self, durable: bool) -> Result<()> {
        std::fs::rename(&self.temporary, &self.path).map_err(|e| StoreError::io("create", &self.path, e))?;
        self.placed = true;
        if durable { sync_folder(&folder_of(&self.path)) } else { Ok(()) }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.placed {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
