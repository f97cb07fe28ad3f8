//! Files that appear under their final name when they are complete.

use crate::{Result, StoreError, file::space::folder_of};
use std::path::{Path, PathBuf};

/// A file under a temporary name beside its final one. Dropping it removes the file, unless
/// [`place`](Self::place) has renamed it.
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

    /// The temporary path.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its final name and replaces the file that had it. `durable`: the new name survives a
    /// power failure.
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

/// Makes a rename in this folder durable.
fn sync_folder(folder: &Path) -> Result<()> {
    #[cfg(unix)]
    std::fs::File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| StoreError::io("synchronise the folder", folder, e))?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
