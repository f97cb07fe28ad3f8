//! Opening a file with the HDF5 library.

use crate::{Result, StoreError, file::device::Device};
use std::{fs::File, path::Path};

/// The first bytes of every HDF5 file.
const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Opens an HDF5 file for reading. The errors for a file that is missing, or is no HDF5 file, are clearer
/// than the library's.
pub(crate) fn open_hdf5(path: &Path) -> Result<hdf5::File> {
    let file = File::open(path).map_err(|e| StoreError::io("open", path, e))?;
    if !file.metadata().map_err(|e| StoreError::io("open", path, e))?.is_file() {
        return Err(StoreError::NotAFile { path: path.into() });
    }
    let mut signature = [0; 8];
    if file.read_exact_at(&mut signature, 0).is_err() || signature != SIGNATURE {
        return Err(StoreError::format(path, "it is not an HDF5 file"));
    }
    hdf5::File::open(path).map_err(|e| StoreError::hdf5("open", path, e))
}
