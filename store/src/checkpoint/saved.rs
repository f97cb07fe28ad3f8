//! Reading a checkpoint, whole or in part.

use super::{CHECKSUM, MARK, VERSION, checksum::Checksum};
use crate::{Result, StoreError, attribute::Attr, file::library::open_hdf5};
use hdf5::{Hyperslab, SliceOrIndex};
use ndarray::{ArrayD, ArrayViewD, IxDyn};
use std::{
    ops::Range,
    path::{Path, PathBuf},
};

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
        let (_, array) = found.ok_or_else(|| no_array(&self.path, name))?;
        Ok(array.view())
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attr> {
        self.attributes.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }
}

/// Reads a checkpoint.
///
/// # Errors
/// When the file cannot be opened, is no checkpoint, or is damaged.
pub fn load(path: impl AsRef<Path>) -> Result<LoadedCheckpoint> {
    let saved = SavedCheckpoint::open(path)?;
    let mut arrays = Vec::new();
    let unreadable = |e| StoreError::hdf5("read", &saved.path, e);
    for name in saved.file.member_names().map_err(unreadable)? {
        let dataset = saved.file.dataset(&name).map_err(unreadable)?;
        let data = dataset.read_raw::<f32>().map_err(unreadable)?;
        saved.check(&name, Checksum::of(&data))?;
        let array = ArrayD::from_shape_vec(IxDyn(&dataset.shape()), data)
            .map_err(|e| StoreError::format(&saved.path, e.to_string()))?;
        arrays.push((name, array));
    }
    Ok(LoadedCheckpoint { path: saved.path, arrays, attributes: saved.attributes })
}

/// A checkpoint whose arrays are read in parts.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("checkpoint.h5");
/// use anabranch_store::checkpoint::{self, Checkpoint, Checksum, SavedCheckpoint};
///
/// let u = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// checkpoint::save(&path, &Checkpoint { arrays: &[("u", &[3, 2], &u)], attributes: &[] })?;
///
/// let saved = SavedCheckpoint::open(&path)?;
/// let (mut first, mut rest) = ([0.0; 2], [0.0; 4]);
/// saved.read_rows("u", 0..1, &mut first)?;
/// saved.read_rows("u", 1..3, &mut rest)?;
/// assert_eq!((&first[..], &rest[..]), u.split_at(2));
/// // All parts together tell whether the array is as it was saved.
/// saved.check("u", Checksum::of(&first).followed_by(Checksum::of(&rest)))?;
/// # Ok::<(), anabranch_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct SavedCheckpoint {
    path: PathBuf,
    file: hdf5::File,
    attributes: Vec<(String, Attr)>,
}

impl SavedCheckpoint {
    /// Opens a checkpoint, and reads its attributes.
    ///
    /// # Errors
    /// When the file cannot be opened, or is no checkpoint.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = open_hdf5(path)?;
        let mut attributes = Attr::read_all(&file).map_err(|e| StoreError::hdf5("read", path, e))?;
        match attributes.iter().position(|(name, _)| name == MARK).map(|at| attributes.swap_remove(at).1) {
            Some(Attr::U64(VERSION)) => Ok(Self { path: path.into(), file, attributes }),
            Some(version) => {
                Err(StoreError::format(path, format!("its checkpoint version {version} is unknown")))
            }
            None => Err(StoreError::format(path, "it is not a checkpoint")),
        }
    }

    /// The attributes, by name.
    pub fn attributes(&self) -> &[(String, Attr)] {
        &self.attributes
    }

    /// The shape of an array.
    ///
    /// # Errors
    /// When the checkpoint has no array of this name.
    pub fn shape(&self, name: &str) -> Result<Vec<usize>> {
        Ok(self.dataset(name)?.shape())
    }

    /// Reads indices of the first dimension of an array: rows, of a matrix.
    ///
    /// # Errors
    /// When the checkpoint has no array of this name, the array has no such rows, `data` has another length
    /// than these rows, or the file cannot be read.
    pub fn read_rows(&self, name: &str, rows: Range<usize>, data: &mut [f32]) -> Result<()> {
        let dataset = self.dataset(name)?;
        let shape = dataset.shape();
        let (all, row) =
            shape.split_first().map_or((0, 1), |(&all, rest)| (all, rest.iter().product::<usize>()));
        if rows.start > rows.end || rows.end > all || data.len() != rows.len() * row {
            return Err(StoreError::format(
                &self.path,
                format!(
                    "rows {rows:?} of its array {name:?} of shape {shape:?} are not {} elements",
                    data.len()
                ),
            ));
        }
        if data.is_empty() {
            return Ok(());
        }
        let mut place = vec![SliceOrIndex::from(..); shape.len()];
        place[0] = SliceOrIndex::from(rows);
        let read = dataset.read_slice::<f32, _, IxDyn>(Hyperslab::from(place));
        let read = read.map_err(|e| StoreError::hdf5("read", &self.path, e))?;
        data.iter_mut().zip(&read).for_each(|(to, from)| *to = *from);
        Ok(())
    }

    /// An error unless this is the checksum of the array: of all its parts, one after the other.
    ///
    /// # Errors
    /// When the array is damaged, or the checkpoint has no array of this name.
    pub fn check(&self, name: &str, sum: Checksum) -> Result<()> {
        let dataset = self.dataset(name)?;
        let saved = Attr::read(&dataset, CHECKSUM).ok().flatten();
        if saved == Some(Attr::U64(sum.value().into())) {
            return Ok(());
        }
        Err(StoreError::format(&self.path, format!("the checkpoint's array {name:?} is damaged")))
    }

    fn dataset(&self, name: &str) -> Result<hdf5::Dataset> {
        self.file.dataset(name).map_err(|_| no_array(&self.path, name))
    }
}

fn no_array(path: &Path, name: &str) -> StoreError {
    StoreError::format(path, format!("the checkpoint has no array {name:?}"))
}
