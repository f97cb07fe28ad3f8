//! [`Reader`]: reads the frames of a file, also while another process writes it.

use crate::{
    Result, StoreError,
    attribute::Attr,
    element::Element,
    file::{
        device::{Device, read_u64_at},
        layout::{FramesAt, Layout, element_name},
        ledger::Stamp,
        library::open_hdf5,
    },
    options::RESERVED,
};
use flate2::{Decompress, FlushDecompress, Status};
use hdf5::{Hyperslab, SliceOrIndex};
use ndarray::{ArrayD, IxDyn};
use std::{
    fs::File,
    path::{Path, PathBuf},
};

/// Reads the frames of a file. Several threads may read through one `Reader` at the same time.
///
/// A file of this crate is read by position: HDF5 reads the layout and closes the file, so that nothing is
/// locked or cached, and [`stored_frames`](Self::stored_frames) follows a program that is still writing.
/// Other HDF5 files with a numeric dataset whose first dimension counts frames can be read too (also a file
/// of this crate that `h5repack` has rewritten). If such a file has no `/stored_frames`, all of its frames
/// count as stored.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    dataset: String,
    shape: Vec<usize>,
    element: String,
    attributes: Vec<(String, Attr)>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A file of this crate.
    Positions { file: File, layout: Layout },
    /// A file of another program: HDF5 reads it. The count was read when the file was opened.
    Library { dataset: hdf5::Dataset, stored: u64 },
}

impl Reader {
    /// Opens the dataset `/matrix` of a file or, if it has none, its only dataset.
    ///
    /// # Errors
    /// When the file cannot be opened, is no HDF5 file, or has no `/matrix` and several other datasets.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = open_hdf5(path)?;
        let names = file.member_names().map_err(|e| StoreError::hdf5("read", path, e))?;
        let name = match names.iter().find(|name| *name == "matrix") {
            Some(name) => name,
            None => {
                let mut datasets = names
                    .iter()
                    .filter(|name| !RESERVED.contains(&name.as_str()) && file.dataset(name).is_ok());
                match (datasets.next(), datasets.next()) {
                    (Some(only), None) => only,
                    (None, _) => return Err(StoreError::format(path, "it has no dataset of frames")),
                    _ => return Err(StoreError::format(path, "it has several datasets; name one")),
                }
            }
        };
        Self::read(&file, path, name)
    }

    /// Opens a dataset by its name.
    ///
    /// # Errors
    /// When the file cannot be opened, is no HDF5 file, or has no such dataset.
    pub fn open_dataset(path: impl AsRef<Path>, dataset: &str) -> Result<Self> {
        Self::read(&open_hdf5(path.as_ref())?, path.as_ref(), dataset.trim_start_matches('/'))
    }

    fn read(file: &hdf5::File, path: &Path, name: &str) -> Result<Self> {
        let dataset =
            file.dataset(name).map_err(|_| StoreError::format(path, format!("it has no dataset /{name}")))?;
        let shape = dataset.shape();
        if shape.is_empty() {
            return Err(StoreError::format(path, format!("/{name} is a single value and holds no frames")));
        }
        let element = element_name(&dataset);
        let attributes = Attr::read_all(file).map_err(|e| StoreError::hdf5("read", path, e))?;
        let source = match Layout::read(file, path, name) {
            Ok(layout) => {
                let file = File::open(path).map_err(|e| StoreError::io("open", path, e))?;
                Source::Positions { file, layout }
            }
            Err(_) => {
                let stored = file.dataset("stored_frames").and_then(|count| count.read_scalar::<u64>());
                Source::Library { dataset, stored: stored.unwrap_or(shape[0] as u64) }
            }
        };
        Ok(Self { path: path.into(), dataset: name.into(), shape, element, attributes, source })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the dataset, without the leading slash.
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// The shape of the dataset: the number of frames, then the extents of a frame.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The extents of a frame.
    pub fn frame_shape(&self) -> &[usize] {
        &self.shape[1..]
    }

    /// How many frames the file has room for.
    pub fn frames(&self) -> u64 {
        self.shape[0] as u64
    }

    /// The element type, as in `f32`.
    pub fn element(&self) -> &str {
        &self.element
    }

    /// Whether the frames are compressed.
    pub fn is_compressed(&self) -> bool {
        match &self.source {
            Source::Positions { layout, .. } => matches!(layout.frames_at, FramesAt::Chunked(_)),
            Source::Library { dataset, .. } => !dataset.filters().is_empty(),
        }
    }

    /// How many frames are stored, at this moment.
    ///
    /// # Errors
    /// When the file cannot be read or counts more frames than it has room for.
    pub fn stored_frames(&self) -> Result<u64> {
        let stored = match &self.source {
            Source::Positions { file, layout } => {
                read_u64_at(file, layout.count_at).map_err(|e| self.failed(e))?
            }
            Source::Library { stored, .. } => *stored,
        };
        if stored > self.frames() {
            let reason = format!("it counts {stored} frames and has room for {}", self.frames());
            return Err(StoreError::format(&self.path, reason));
        }
        Ok(stored)
    }

    /// Whether all frames are stored.
    ///
    /// # Errors
    /// As [`stored_frames`](Self::stored_frames).
    pub fn is_complete(&self) -> Result<bool> {
        Ok(self.stored_frames()? == self.frames())
    }

    /// The attributes of the root group, except those of a type that [`Attr`] lacks.
    pub fn attributes(&self) -> &[(String, Attr)] {
        &self.attributes
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&Attr> {
        self.attributes.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// The step and time of a stored frame, if the file has stamps.
    ///
    /// # Errors
    /// When the frame is not stored, or the file cannot be read.
    pub fn stamp(&self, frame: u64) -> Result<Option<Stamp>> {
        self.check_stored(frame)?;
        let Source::Positions { file, layout } = &self.source else { return Ok(None) };
        let Some(at) = layout.stamps_at else { return Ok(None) };
        let read = |at: u64| read_u64_at(file, at + 8 * frame).map_err(|e| self.failed(e));
        Ok(Some(Stamp { step: read(at.step)?, time: f64::from_bits(read(at.time)?) }))
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// When the frame is not stored, has elements of another type, or cannot be read.
    ///
    /// ```no_run
    /// let reader = anabranch_store::Reader::open("output.h5")?;
    /// let frame = reader.read_frame::<f32>(0)?;
    /// println!("{:?}, largest {}", frame.shape(), frame.iter().copied().fold(f32::MIN, f32::max));
    /// # Ok::<(), anabranch_store::StoreError>(())
    /// ```
    pub fn read_frame<T: Element>(&self, frame: u64) -> Result<ArrayD<T>> {
        let mut data = vec![T::zeroed(); self.frame_shape().iter().product()];
        self.read_frame_into(frame, &mut data)?;
        Ok(ArrayD::from_shape_vec(IxDyn(self.frame_shape()), data)
            .expect("the length is the shape's product"))
    }

    /// Reads a frame into memory of the right length.
    ///
    /// # Errors
    /// As [`read_frame`](Self::read_frame), and when the slice has another length than a frame.
    pub fn read_frame_into<T: Element>(&self, frame: u64, data: &mut [T]) -> Result<()> {
        let expected = self.frame_shape().iter().product();
        if data.len() != expected {
            let (path, shape) = (self.path.clone(), self.frame_shape().to_vec());
            return Err(StoreError::WrongLength { path, shape, expected, found: data.len() });
        }
        self.check_stored(frame)?;
        if self.element != T::NAME {
            return Err(StoreError::Mismatch {
                path: self.path.clone(),
                what: "the element type".into(),
                found: self.element.clone(),
                expected: T::NAME.into(),
            });
        }
        match &self.source {
            Source::Positions { file, layout } => {
                self.read_positions(file, layout, frame, bytemuck::cast_slice_mut(data))
            }
            Source::Library { dataset, .. } => {
                let mut place = vec![SliceOrIndex::from(..); self.shape.len()];
                place[0] = SliceOrIndex::from(frame as usize);
                let read = dataset.read_slice::<T, _, IxDyn>(Hyperslab::from(place));
                let array = read.map_err(|e| StoreError::hdf5("read", &self.path, e))?;
                data.iter_mut().zip(&array).for_each(|(to, from)| *to = *from);
                Ok(())
            }
        }
    }

    fn read_positions(&self, file: &File, layout: &Layout, frame: u64, bytes: &mut [u8]) -> Result<()> {
        let table = match &layout.frames_at {
            FramesAt::Contiguous(start) => {
                let read = file.read_exact_at(bytes, start + frame * layout.frame_bytes);
                return read.map_err(|e| self.failed(e));
            }
            FramesAt::Chunked(table) => table,
        };
        let mut record = vec![0; table.record_len()];
        let (mut packed, mut chunk) = (Vec::new(), Vec::new());
        for (at, range) in table.chunks(frame) {
            file.read_exact_at(&mut record, at).map_err(|e| self.failed(e))?;
            let place = table.decode(&record, frame).ok_or_else(|| self.damaged(frame))?;
            packed.resize(place.size as usize, 0);
            file.read_exact_at(&mut packed, place.address).map_err(|e| self.failed(e))?;
            if place.deflated {
                self.inflate(&packed, &mut chunk, table.chunk_bytes(), frame)?;
            } else {
                std::mem::swap(&mut packed, &mut chunk);
            }
            let len = range.len();
            let whole = chunk.get(..len).ok_or_else(|| self.damaged(frame))?;
            bytes[range].copy_from_slice(whole);
        }
        Ok(())
    }

    fn inflate(&self, packed: &[u8], chunk: &mut Vec<u8>, len: usize, frame: u64) -> Result<()> {
        chunk.clear();
        chunk.reserve_exact(len);
        let status = Decompress::new(true).decompress_vec(packed, chunk, FlushDecompress::Finish);
        if !matches!(status, Ok(Status::StreamEnd)) || chunk.len() != len {
            return Err(self.damaged(frame));
        }
        Ok(())
    }

    fn damaged(&self, frame: u64) -> StoreError {
        StoreError::format(
            &self.path,
            format!("frame {frame} is damaged: its chunks cannot be found or decompressed"),
        )
    }

    fn check_stored(&self, frame: u64) -> Result<()> {
        let stored = self.stored_frames()?;
        if frame < stored {
            return Ok(());
        }
        Err(StoreError::NotStored { path: self.path.clone(), frame, stored, frames: self.frames() })
    }

    fn failed(&self, error: std::io::Error) -> StoreError {
        StoreError::io("read", &self.path, error)
    }
}
