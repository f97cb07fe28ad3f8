//! The positions of everything in a file. HDF5 lays the file out and returns the positions; after that it is
//! not needed any more.
//!
//! | object | type | contents |
//! |---|---|---|
//! | `/matrix` (or the name given) | `[frames, ...frame_shape]` | the frames |
//! | `/stored_frames` | scalar `u64` | the number of complete frames |
//! | `/step`, `/time` | `u64`, `f64`, `[frames]` | the stamps, if the options ask for them |
//! | `/chunk_records` | `u64`, one for each chunk | compressed files only, see [`crate::file::chunks`] |
//! | attributes of the root group | | the parameters of the run |

use crate::{
    Result, StoreError,
    attribute::Attr,
    element::Element,
    file::chunks::{self, ChunkTable},
    options::FileOptions,
};
use hdf5::{
    Dataset, File,
    datatype::{ByteOrder, Datatype},
    plist::dataset_create::{AllocTime, FillTime},
};
use std::path::Path;

/// The positions of everything that is written after HDF5 has closed the file.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) frames: u64,
    pub(crate) frame_shape: Vec<usize>,
    pub(crate) frame_bytes: u64,
    pub(crate) frames_at: FramesAt,
    pub(crate) count_at: u64,
    pub(crate) stamps_at: Option<StampsAt>,
}

/// The places of the frames.
#[derive(Debug, Clone)]
pub(crate) enum FramesAt {
    /// The frames lie one after the other from this position on.
    Contiguous(u64),
    /// The frames are compressed chunks, found through their records.
    Chunked(ChunkTable),
}

/// The positions of the stamps of frame 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StampsAt {
    pub(crate) step: u64,
    pub(crate) time: u64,
}

impl Layout {
    /// Lays out a new file over the empty one at `path`.
    pub(crate) fn create<T: Element>(options: &FileOptions, path: &Path) -> Result<Self> {
        let failed = |e| StoreError::hdf5("lay out", &options.path, e);
        let file = new_file(path, options.compress.is_some()).map_err(failed)?;
        create_objects::<T>(&file, options).map_err(failed)?;
        if options.compress.is_some() {
            chunks::index(&file, path, options, size_of::<T>())?;
        }
        let layout = Self::read(&file, path, &options.dataset)?;
        file.close().map_err(failed)?;
        Ok(layout)
    }

    /// Reads the layout of a file that [`create`](Self::create) made.
    pub(crate) fn read(file: &File, path: &Path, dataset: &str) -> Result<Self> {
        let open = |name: &str| {
            file.dataset(name).map_err(|_| StoreError::format(path, format!("it has no dataset /{name}")))
        };
        let position = |name: &str| {
            let offset = open(name)?.offset();
            offset.ok_or_else(|| StoreError::format(path, format!("/{name} is not contiguous")))
        };
        let frames_set = open(dataset)?;
        let shape = frames_set.shape();
        let (&frames, frame_shape) = shape
            .split_first()
            .ok_or_else(|| StoreError::format(path, format!("/{dataset} has no frames")))?;
        let dtype = frames_set.dtype().map_err(|e| StoreError::hdf5("read the layout of", path, e))?;
        if !is_native(&dtype) {
            return Err(StoreError::format(path, "it was written on a machine of another byte order"));
        }
        let size = dtype.size();
        let frames_at = if frames_set.is_chunked() {
            FramesAt::Chunked(ChunkTable::read(file, path, &frames_set, size)?)
        } else {
            FramesAt::Contiguous(position(dataset)?)
        };
        let stamps_at = if file.link_exists("step") && file.link_exists("time") {
            Some(StampsAt { step: position("step")?, time: position("time")? })
        } else {
            None
        };
        Ok(Self {
            frames: frames as u64,
            frame_shape: frame_shape.to_vec(),
            frame_bytes: frame_shape.iter().product::<usize>() as u64 * size as u64,
            frames_at,
            count_at: position("stored_frames")?,
            stamps_at,
        })
    }

    /// The position of the first byte that a writer may change, apart from the end of the file in the
    /// superblock.
    pub(crate) fn first_changed(&self) -> u64 {
        let frames = match &self.frames_at {
            FramesAt::Contiguous(start) => *start,
            FramesAt::Chunked(table) => table.first_record(),
        };
        let stamps = self.stamps_at.map_or(u64::MAX, |at| at.step.min(at.time));
        frames.min(stamps).min(self.count_at)
    }

    /// Reads the layout of an existing file. An error if it is not the one that the options describe.
    pub(crate) fn read_matching<T: Element>(file: &File, options: &FileOptions) -> Result<Self> {
        let path = &options.path;
        let layout = Self::read(file, path, &options.dataset)?;
        let differs = |what: &str, found: String, expected: String| {
            Err(StoreError::Mismatch { path: path.clone(), what: what.into(), found, expected })
        };
        let dataset = file.dataset(&options.dataset).map_err(|e| StoreError::hdf5("read", path, e))?;
        let found = element_name(&dataset);
        if found != T::NAME {
            return differs("the element type", found, T::NAME.into());
        }
        if layout.frames != options.frames {
            return differs("the number of frames", layout.frames.to_string(), options.frames.to_string());
        }
        if layout.frame_shape != options.extents() {
            let (found, expected) = (&layout.frame_shape, options.extents());
            return differs("the frame shape", format!("{found:?}"), format!("{expected:?}"));
        }
        if layout.stamps_at.is_some() != options.stamps {
            let say = |yes| if yes { "present" } else { "absent" }.to_string();
            return differs("the pair /step and /time", say(!options.stamps), say(options.stamps));
        }
        for (name, expected) in &options.attributes {
            let found = Attr::read(file, name).ok().flatten();
            if found.as_ref() != Some(expected) {
                let found = found.map_or("absent".into(), |value| value.to_string());
                return differs(&format!("attribute {name:?}"), found, expected.to_string());
            }
        }
        Ok(layout)
    }
}

/// Creates an HDF5 file in the oldest format, whose metadata has no checksums and can be changed in place.
fn new_file(path: &Path, compressed: bool) -> hdf5::Result<File> {
    // Large objects begin at a page. In compressed files every number begins at a multiple of 8, so that none
    // straddles a page.
    let (threshold, alignment) = if compressed { (1, 8) } else { (64 * 1024, 4096) };
    File::with_options().with_fapl(|p| p.libver_earliest().alignment(threshold, alignment)).create(path)
}

/// Creates a contiguous dataset that has its place in the file from the start.
fn extent<T: hdf5::H5Type>(file: &File, shape: &[usize], name: &str) -> hdf5::Result<Dataset> {
    file.new_dataset::<T>()
        .shape(shape.to_vec())
        .alloc_time(Some(AllocTime::Early))
        .fill_time(FillTime::Never)
        .create(name)
}

fn create_objects<T: Element>(file: &File, options: &FileOptions) -> hdf5::Result<()> {
    for (name, value) in &options.attributes {
        value.write(file, name)?;
    }
    let count = file.new_dataset::<u64>().alloc_time(Some(AllocTime::Early)).create("stored_frames")?;
    count.write_scalar(&0_u64)?;
    let frames = usize::try_from(options.frames).map_err(|e| e.to_string())?;
    if options.stamps {
        extent::<u64>(file, &[frames], "step")?;
        extent::<f64>(file, &[frames], "time")?;
    }
    let mut shape = vec![frames];
    shape.extend(options.extents());
    match options.compress {
        None => extent::<T>(file, &shape, &options.dataset).map(drop),
        Some(level) => chunks::create::<T>(file, &shape, level, &options.dataset),
    }
}

/// The name of a dataset's element type as [`Element::NAME`] has it, or HDF5's own.
pub(crate) fn element_name(dataset: &Dataset) -> String {
    use hdf5::types::TypeDescriptor as D;
    match dataset.dtype().and_then(|dtype| dtype.to_descriptor()) {
        Ok(D::Float(size)) => format!("f{}", 8 * size as usize),
        Ok(D::Integer(size)) => format!("i{}", 8 * size as usize),
        Ok(D::Unsigned(size)) => format!("u{}", 8 * size as usize),
        Ok(other) => other.to_string(),
        Err(_) => "a type of another program".into(),
    }
}

/// Whether elements are in the byte order of this machine.
fn is_native(dtype: &Datatype) -> bool {
    let native = if cfg!(target_endian = "little") { ByteOrder::LittleEndian } else { ByteOrder::BigEndian };
    dtype.size() == 1 || dtype.byte_order() == native
}
