//! A checkpoint that is being written: laid out beside its final name, filled by one process or by several,
//! and renamed when all of it is safe.

use super::{CHECKSUM, MARK, VERSION, checksum::Checksum};
use crate::{
    Result, StoreError,
    attribute::Attr,
    file::{
        device::Device,
        partial::{Partial, Placing, find},
        space::{available_bytes, folder_of},
        system::{FileSystem, System},
    },
};
use hdf5::plist::dataset_create::{AllocTime, FillTime};
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The description of a checkpoint whose arrays are written in parts.
#[derive(Debug, Clone, Copy)]
pub struct Outline<'a> {
    /// Name and shape of each array.
    pub arrays: &'a [(&'a str, &'a [usize])],
    /// Name and value of each attribute.
    pub attributes: &'a [(&'a str, Attr)],
}

/// A checkpoint that is being written. It has its name when it is [complete](Self::complete); dropping it
/// before that removes it.
///
/// One process creates the draft and [announces](Self::announce) it. Each process writes its
/// [part](DraftPart) of the arrays. When all parts are safe, the first process completes the draft, with the
/// checksums of the parts.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("checkpoint.h5");
/// use anabranch_store::checkpoint::{self, Draft, DraftPart, Outline};
///
/// let draft = Draft::create(&path, &Outline { arrays: &[("u", &[2, 3])], attributes: &[] })?;
/// let words = draft.announce();
/// // In two other processes, which get these numbers:
/// let mut sums = Vec::new();
/// for rank in 0..2 {
///     let mut part = DraftPart::open(&path, &words)?;
///     sums.push(part.write(0, 3 * rank, &[rank as f32; 3])?);
///     part.finish()?;
/// }
/// // When both parts are written:
/// draft.complete(&[sums[0].followed_by(sums[1])])?;
/// assert_eq!(checkpoint::load(&path)?.array("u")?[[1, 2]], 1.0);
/// # Ok::<(), anabranch_store::StoreError>(())
/// ```
pub struct Draft {
    path: PathBuf,
    partial: Partial,
    device: Box<dyn Device>,
    arrays: Vec<Array>,
}

/// An array in the file.
struct Array {
    name: String,
    place: Place,
}

/// The place of an array.
#[derive(Clone, Copy)]
struct Place {
    /// Position of the first element.
    at: u64,
    elements: u64,
}

impl Draft {
    /// Lays the file out, with the arrays still empty.
    ///
    /// # Errors
    /// When there is no room, or the file cannot be created.
    pub fn create(path: impl AsRef<Path>, outline: &Outline<'_>) -> Result<Self> {
        Self::create_on(&System, path.as_ref(), outline)
    }

    pub(super) fn create_on(system: &dyn FileSystem, path: &Path, outline: &Outline<'_>) -> Result<Self> {
        // Without room, no part is written.
        let elements = |shape: &[usize]| shape.iter().product::<usize>() as u64;
        let needed = outline.arrays.iter().map(|(_, shape)| elements(shape) * size_of::<f32>() as u64).sum();
        if let Some(available) = available_bytes(path)?
            && needed > available
        {
            return Err(StoreError::NoSpace { needed, available, path: path.to_owned() });
        }
        let partial = Partial::create(path)?;
        let failed = |e| StoreError::hdf5("write", path, e);
        let arrays = lay_out(partial.temporary(), outline).map_err(failed)?;
        let device = system.open(partial.temporary()).map_err(|e| StoreError::io("open", path, e))?;
        Ok(Self { path: path.into(), partial, device, arrays })
    }

    /// What other processes must know to write their parts: 2 numbers, and 2 more for each array.
    pub fn announce(&self) -> Vec<u64> {
        let (process, number) = self.partial.id();
        let places = self.arrays.iter().flat_map(|array| [array.place.at, array.place.elements]);
        [process.into(), number].into_iter().chain(places).collect()
    }

    /// Writes elements of array number `array`, from element `first` on, and returns their checksum.
    pub(super) fn write(&self, array: usize, first: usize, data: &[f32]) -> Result<Checksum> {
        write(&*self.device, &self.path, self.arrays[array].place, first, data)
    }

    /// Makes the file durable, and gives it its name. It replaces an older checkpoint. `checksums` are those
    /// of the arrays: all their parts, [one after the other](Checksum::followed_by).
    ///
    /// # Errors
    /// When the checksums are not those of all elements, or the file cannot be written or renamed. The old
    /// checkpoint is untouched then.
    pub fn complete(self, checksums: &[Checksum]) -> Result<()> {
        self.complete_on(&System, checksums)
    }

    pub(super) fn complete_on(self, system: &dyn FileSystem, checksums: &[Checksum]) -> Result<()> {
        let elements = self.arrays.iter().map(|array| array.place.elements);
        if !elements.eq(checksums.iter().map(|sum| sum.elements())) {
            return Err(StoreError::InvalidOptions(format!(
                "the checksums of the checkpoint {} are not those of all elements; give one for each array, of all its parts",
                self.path.display()
            )));
        }
        let names = self.arrays.iter().map(|array| array.name.as_str());
        set_checksums(self.partial.temporary(), names.zip(checksums))
            .map_err(|e| StoreError::hdf5("write", &self.path, e))?;
        self.partial.place(system, &*self.device, Placing { durable: true, replace: true })
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Writes one process's part of a [`Draft`], which may be in another process.
pub struct DraftPart {
    path: PathBuf,
    device: Box<dyn Device>,
    places: Vec<Place>,
}

impl DraftPart {
    /// Opens the draft of a checkpoint at `path` that was announced with these numbers.
    ///
    /// # Errors
    /// [`StoreError::NotAnnounced`] when there is no such draft. [`StoreError::Io`] when it cannot be opened.
    pub fn open(path: impl AsRef<Path>, words: &[u64]) -> Result<Self> {
        let path = path.as_ref();
        let not_announced =
            |reason: &str| StoreError::NotAnnounced { path: path.into(), reason: reason.into() };
        let [process, number, places @ ..] = words else {
            return Err(not_announced("the announcement has too few numbers"));
        };
        let temporary = Partial::name(path, (*process as u32, *number))?;
        let (real, _) = find(&folder_of(path).join(temporary))?;
        let device = System.open_part(&real).map_err(|e| StoreError::io("open for writing", path, e))?;
        let places = places.chunks_exact(2).map(|place| Place { at: place[0], elements: place[1] });
        Ok(Self { path: path.into(), device, places: places.collect() })
    }

    /// Writes elements of array number `array`, from element `first` on, and returns their checksum.
    ///
    /// # Errors
    /// When the elements are not all in the array, or could not be written.
    ///
    /// # Panics
    /// If the draft has no such array.
    pub fn write(&mut self, array: usize, first: usize, data: &[f32]) -> Result<Checksum> {
        write(&*self.device, &self.path, self.places[array], first, data)
    }

    /// Makes the part durable.
    ///
    /// # Errors
    /// When the device cannot be synchronised.
    pub fn finish(self) -> Result<()> {
        self.device.sync().map_err(|e| StoreError::io("synchronise", &self.path, e))
    }
}

impl fmt::Debug for DraftPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DraftPart").field("path", &self.path).finish_non_exhaustive()
    }
}

fn write(device: &dyn Device, path: &Path, place: Place, first: usize, data: &[f32]) -> Result<Checksum> {
    let range = first..first + data.len();
    if range.end as u64 > place.elements {
        let elements = place.elements as usize;
        return Err(StoreError::OutsideFrame { path: path.into(), elements, range });
    }
    let at = place.at + (first * size_of::<f32>()) as u64;
    let written = device.write_all_at(bytemuck::cast_slice(data), at);
    written.map_err(|e| StoreError::io("write", path, e))?;
    Ok(Checksum::of(data))
}

/// Lays out an empty file. Each array has its place, and a checksum of 0.
fn lay_out(path: &Path, outline: &Outline<'_>) -> hdf5::Result<Vec<Array>> {
    let file = hdf5::File::create(path)?;
    Attr::U64(VERSION).write(&file, MARK)?;
    for (name, value) in outline.attributes {
        value.write(&file, name)?;
    }
    let mut datasets = Vec::new();
    for (name, shape) in outline.arrays {
        let dataset = file
            .new_dataset::<f32>()
            .shape(shape.to_vec())
            .alloc_time(Some(AllocTime::Early))
            .fill_time(FillTime::Never)
            .create(*name)?;
        Attr::U64(0).write(&dataset, CHECKSUM)?;
        datasets.push((name, dataset));
    }
    let array = |(name, dataset): (&&str, hdf5::Dataset)| {
        let elements = dataset.size() as u64;
        // An empty array has no place, and needs none.
        let at =
            dataset.offset().or((elements == 0).then_some(0)).ok_or("an array has no place in the file")?;
        Ok(Array { name: (*name).to_owned(), place: Place { at, elements } })
    };
    let arrays = datasets.into_iter().map(array).collect::<hdf5::Result<_>>()?;
    file.close()?;
    Ok(arrays)
}

fn set_checksums<'a>(
    path: &Path,
    checksums: impl Iterator<Item = (&'a str, &'a Checksum)>,
) -> hdf5::Result<()> {
    let file = hdf5::File::open_rw(path)?;
    for (name, checksum) in checksums {
        file.dataset(name)?.attr(CHECKSUM)?.write_scalar(&u64::from(checksum.value()))?;
    }
    file.close()
}
