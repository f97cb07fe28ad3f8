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

use crate::{
    Result, StoreError,
    attribute::Attr,
    file::{
        library::open_hdf5,
        partial::{Partial, Placing},
        space::available_bytes,
        system::{FileSystem, System},
    },
};
use ndarray::{ArrayD, ArrayViewD, IxDyn};
use std::path::{Path, PathBuf};

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

/// A checkpoint that was loaded.
#[derive(Debug, Clone)]
pub struct LoadedCheckpoint {
    path: PathBuf,
    /// The arrays, by name.
    pub arrays: Vec<(String, ArrayD<f32>)>,
    /// The attributes, by name.
    pub attributes: Vec<(String, Attr)>,
}

impl LoadedCheckpoint {
    /// The array of this name.
    ///
    /// # Errors
    /// When the checkpoint has no array of this name.
    pub fn array(&self, name: &str) -> Result<ArrayViewD<'_, f32>> {
        let found = self.arrays.iter().find(|(other, _)| other == name);
        let (_, array) = found
            .ok_or_else(|| StoreError::format(&self.path, format!("the checkpoint has no array {name:?}")))?;
        Ok(array.view())
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attr> {
        self.attributes.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }
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
    // The library's error for a full disk is many lines long, so the free space is checked first.
    let needed = checkpoint.arrays.iter().map(|(_, _, data)| size_of_val(*data) as u64).sum();
    if let Some(available) = available_bytes(path)?
        && needed > available
    {
        return Err(StoreError::NoSpace { needed, available, path: path.to_owned() });
    }
    let partial = Partial::create(path)?;
    write(partial.temporary(), checkpoint).map_err(|e| StoreError::hdf5("write", path, e))?;
    let device = system.open(partial.temporary()).map_err(|e| StoreError::io("open", path, e))?;
    partial.place(system, &*device, Placing { durable: true, replace: true })
}

fn write(path: &Path, checkpoint: &Checkpoint<'_>) -> hdf5::Result<()> {
    let file = hdf5::File::create(path)?;
    Attr::U64(VERSION).write(&file, MARK)?;
    for (name, value) in checkpoint.attributes {
        value.write(&file, name)?;
    }
    for (name, shape, data) in checkpoint.arrays {
        let dataset = file.new_dataset::<f32>().shape(shape.to_vec()).create(*name)?;
        dataset.write_raw(*data)?;
        Attr::U64(checksum(data)).write(&dataset, CHECKSUM)?;
    }
    file.close()
}

/// Reads a checkpoint.
///
/// # Errors
/// When the file cannot be opened, is no checkpoint, or is damaged.
pub fn load(path: impl AsRef<Path>) -> Result<LoadedCheckpoint> {
    let path = path.as_ref();
    let file = open_hdf5(path)?;
    let unreadable = |e| StoreError::hdf5("read", path, e);
    let mut attributes = Attr::read_all(&file).map_err(unreadable)?;
    match attributes.iter().position(|(name, _)| name == MARK).map(|at| attributes.swap_remove(at).1) {
        Some(Attr::U64(VERSION)) => {}
        Some(version) => {
            return Err(StoreError::format(path, format!("its checkpoint version {version} is unknown")));
        }
        None => return Err(StoreError::format(path, "it is not a checkpoint")),
    }
    let mut arrays = Vec::new();
    for name in file.member_names().map_err(unreadable)? {
        let dataset = file.dataset(&name).map_err(unreadable)?;
        let data = dataset.read_raw::<f32>().map_err(unreadable)?;
        if Attr::read(&dataset, CHECKSUM).ok().flatten() != Some(Attr::U64(checksum(&data))) {
            return Err(StoreError::format(path, format!("the checkpoint's array {name:?} is damaged")));
        }
        let array = ArrayD::from_shape_vec(IxDyn(&dataset.shape()), data)
            .map_err(|e| StoreError::format(path, e.to_string()))?;
        arrays.push((name, array));
    }
    Ok(LoadedCheckpoint { path: path.into(), arrays, attributes })
}

fn checksum(data: &[f32]) -> u64 {
    crc32fast::hash(bytemuck::cast_slice(data)).into()
}
