//! Checkpoints: the state of a computation in a small HDF5 file that is complete or does not exist.
//!
//! [`save`] writes a new file beside the old one, makes it durable, and renames it into place: a
//! crash at any moment leaves the old checkpoint or the new one. Arrays are restored bit for bit;
//! a checksum over each of them finds damage.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("checkpoint.h5");
//! use anabranch_store::{Attr, checkpoint::{self, Checkpoint}};
//!
//! let (u, v) = ([1.0_f32; 6], [0.5_f32; 6]);
//! checkpoint::save(&path, &Checkpoint {
//!     arrays: &[("u", &[2, 3], &u), ("v", &[2, 3], &v)],
//!     attributes: &[("step", Attr::U64(320))],
//! })?;
//!
//! let loaded = checkpoint::load(&path)?;
//! assert_eq!(loaded.array("u")?.as_slice(), Some(&u[..]));
//! assert_eq!(loaded.attribute("step"), Some(&Attr::U64(320)));
//! # Ok::<(), anabranch_store::StoreError>(())
//! ```
//!
//! A program of several processes writes one file too, in parts ([`Draft`]), and each process reads the rows
//! that it needs ([`SavedCheckpoint`]).

mod checksum;
mod draft;
mod saved;

pub use checksum::Checksum;
pub use draft::{Draft, DraftPart, Outline};
pub use saved::{LoadedCheckpoint, SavedCheckpoint, load};

use crate::{
    Result, StoreError,
    attribute::Attr,
    file::system::{FileSystem, System},
};
use std::path::Path;

/// The attribute that marks a file as a checkpoint. Its value is the version of the format.
const MARK: &str = "anabranch_checkpoint";
const VERSION: u64 = 1;
/// The attribute of each array with the CRC-32 of its bytes.
const CHECKSUM: &str = "crc32";

/// A checkpoint to save.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoint<'a> {
    /// Name, shape and elements of each array.
    pub arrays: &'a [(&'a str, &'a [usize], &'a [f32])],
    /// Name and value of each attribute.
    pub attributes: &'a [(&'a str, Attr)],
}

/// Writes a checkpoint. It replaces the one at `path` only when the new one is safely on the device.
///
/// # Errors
/// When an array's length and shape disagree, or the file cannot be written. The old checkpoint is
/// untouched then.
pub fn save(path: impl AsRef<Path>, checkpoint: &Checkpoint<'_>) -> Result<()> {
    save_on(&System, path.as_ref(), checkpoint)
}

pub(crate) fn save_on(system: &dyn FileSystem, path: &Path, checkpoint: &Checkpoint<'_>) -> Result<()> {
    for (name, shape, data) in checkpoint.arrays {
        if shape.iter().product::<usize>() != data.len() {
            let found = data.len();
            return Err(StoreError::InvalidOptions(format!(
                "array {name:?} of shape {shape:?} cannot have {found} elements"
            )));
        }
    }
    let arrays: Vec<_> = checkpoint.arrays.iter().map(|&(name, shape, _)| (name, shape)).collect();
    let outline = Outline { arrays: &arrays, attributes: checkpoint.attributes };
    let draft = Draft::create_on(system, path, &outline)?;
    let whole = checkpoint.arrays.iter().enumerate().map(|(array, (_, _, data))| draft.write(array, 0, data));
    let checksums = whole.collect::<Result<Vec<_>>>()?;
    draft.complete_on(system, &checksums)
}
