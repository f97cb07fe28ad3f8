//! Space on the file system.

use crate::Result;
use std::path::{Path, PathBuf};

/// The folder that a file is in; `.` for a bare name.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// How many bytes this user can still write to the file system that `path` is or would be on. `None` on
/// systems other than Unix, where the free space is not read.
///
/// The path itself need not exist: the nearest existing folder above it decides.
///
/// # Errors
/// When the operating system cannot read the free space.
///
/// ```
/// if let Some(free) = anabranch_store::available_bytes("output.h5").unwrap() {
///     println!("{free} bytes free");
/// }
/// ```
pub fn available_bytes(path: impl AsRef<Path>) -> Result<Option<u64>> {
    free_bytes(&nearest_existing(path.as_ref()))
}

fn nearest_existing(path: &Path) -> PathBuf {
    let mut place = path.to_path_buf();
    while !place.exists() {
        let above = folder_of(&place);
        if above == place || place == Path::new(".") {
            break;
        }
        place = above;
    }
    place
}

#[cfg(unix)]
fn free_bytes(place: &Path) -> Result<Option<u64>> {
    let stats = rustix::fs::statvfs(place)
        .map_err(|e| crate::StoreError::io("read the free space of", place, e.into()))?;
    Ok(Some(stats.f_frsize.saturating_mul(stats.f_bavail)))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Result<Option<u64>> {
    Ok(None)
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
