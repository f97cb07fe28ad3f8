//! The files that are measured.

use crate::{error::Error, run::FrameSink};
use anabranch_store::FileOptions;
use std::path::{Path, PathBuf};

/// The folder of files in memory on Linux.
pub(super) const MEMORY_FOLDER: &str = "/dev/shm";

/// The folder of files in memory, where the system has one, or the folder of temporary files.
pub(super) fn memory_folder() -> PathBuf {
    let shared = Path::new(MEMORY_FOLDER);
    if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
}

/// A path for the file that is measured.
pub(super) fn path_in(folder: &Path) -> PathBuf {
    folder.join(format!("gray-scott-bench-{}.h5", std::process::id()))
}

/// Creates the file, for a run.
///
/// # Errors
/// When the file cannot be created.
pub(super) fn create(options: &FileOptions) -> Result<Box<dyn FrameSink>, Error> {
    Ok(Box::new(options.create::<f32>()?))
}
