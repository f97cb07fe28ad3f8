//! What a file of frames should be.

use std::path::{Path, PathBuf};

use crate::attribute::Attr;
use crate::element::Element;
use crate::space::available_bytes;
use crate::{FrameWriter, Result, StoreError};

/// What is promised about frames when the power fails or the system crashes.
///
/// At every level a frame is acknowledged (counted in `/stored_frames`) only after all its bytes
/// have been handed to the operating system: whatever happens to the *program*, `kill -9`
/// included, every frame up to the count is complete and the file opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncLevel {
    /// Nothing more. The operating system writes to the device when it sees fit; after a power
    /// failure any part of the file may be missing, also some time after the program ended.
    None,
    /// When [`FrameWriter::finish`] returns `Ok`, everything is on the device. A power failure
    /// before that may leave the count ahead of the frames.
    #[default]
    End,
    /// Each frame is on the device before it is counted (`fdatasync`, then the count, then
    /// `fdatasync` again), so that an acknowledged frame survives a power failure.
    Frame,
}

/// Describes a file of frames, and creates or resumes it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("output.h5");
/// use anabranch_store::{FileOptions, Stamp};
///
/// let mut writer = FileOptions::new(&path)
///     .frames(10)
///     .frame_shape(&[4, 6])
///     .attribute("feed", 0.014_f32)
///     .stamps(true)
///     .create::<f32>()?;
/// writer.append(&[0.5; 24], Stamp { step: 32, time: 32.0 })?;
/// let summary = writer.finish()?;
/// assert_eq!(summary.stored_frames, 1);
/// # Ok::<(), anabranch_store::StoreError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileOptions {
    pub(crate) path: PathBuf,
    pub(crate) dataset: String,
    pub(crate) frames: u64,
    pub(crate) frame_shape: Vec<usize>,
    pub(crate) attributes: Vec<(String, Attr)>,
    pub(crate) stamps: bool,
    pub(crate) force: bool,
    pub(crate) sync: SyncLevel,
    pub(crate) compress: Option<u8>,
    pub(crate) queue: usize,
}

/// Names in the root group that the frames cannot have.
pub(crate) const RESERVED: [&str; 4] = ["stored_frames", "step", "time", "chunk_records"];

impl FileOptions {
    /// A file at `path`: dataset `/matrix`, no attributes, no stamps, no overwriting,
    /// [`SyncLevel::End`], no compression, a queue of two frames.
    /// [`frames`](Self::frames) and [`frame_shape`](Self::frame_shape) have to be given.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_path_buf(),
            dataset: "matrix".into(),
            frames: 0,
            frame_shape: Vec::new(),
            attributes: Vec::new(),
            stamps: false,
            force: false,
            sync: SyncLevel::default(),
            compress: None,
            queue: 2,
        }
    }

    /// The name of the dataset, in the root group.
    pub fn dataset(mut self, name: &str) -> Self {
        self.dataset = name.trim_start_matches('/').into();
        self
    }

    /// How many frames the file has room for; at least 1.
    pub fn frames(mut self, frames: u64) -> Self {
        self.frames = frames;
        self
    }

    /// The extent of a frame in each dimension, slowest first.
    pub fn frame_shape(mut self, shape: &[usize]) -> Self {
        self.frame_shape = shape.to_vec();
        self
    }

    /// Adds an attribute to the root group; when resuming, one that the file must have.
    /// A later value of the same name replaces the earlier one.
    pub fn attribute(mut self, name: &str, value: impl Into<Attr>) -> Self {
        self.attributes.retain(|(other, _)| other != name);
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// Whether the step and time of each frame are stored, in `/step` and `/time`.
    pub fn stamps(mut self, stamps: bool) -> Self {
        self.stamps = stamps;
        self
    }

    /// Whether an existing file is replaced. It stays until the new one is laid out completely.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// What is promised about power failures.
    pub fn sync(mut self, level: SyncLevel) -> Self {
        self.sync = level;
        self
    }

    /// Deflate level from 1 (fast) to 9 (small), or no compression. A resumed file keeps its own.
    pub fn compress(mut self, level: Option<u8>) -> Self {
        self.compress = level;
        self
    }

    /// How many frames may wait for the I/O thread. With 0, [`FrameWriter::append`] returns when
    /// the I/O thread has taken the frame (and still writes it beside the computation).
    pub fn queue(mut self, capacity: usize) -> Self {
        self.queue = capacity;
        self
    }

    /// The size of the complete file, without compression; `None` when it exceeds 64 bits.
    pub fn required_bytes<T: Element>(&self) -> Option<u64> {
        let stamps = if self.stamps { 16 } else { 0 };
        self.frame_bytes::<T>()?.checked_add(stamps)?.checked_mul(self.frames)?.checked_add(16 * 1024)
    }

    /// Creates the file and starts its I/O thread. The file appears under its name when it is laid
    /// out completely; until then it is beside it, as `.NAME.PID.partial`.
    ///
    /// # Errors
    /// When the options do not make sense, the path is taken or cannot be created, or the file
    /// system lacks room for the complete file. The size of a compressed file is not known
    /// beforehand: there a full disk shows only while writing.
    pub fn create<T: Element>(&self) -> Result<FrameWriter<T>> {
        self.validate::<T>()?;
        self.check_path()?;
        FrameWriter::create(self)
    }

    /// Opens an incomplete file to go on with frame `from_frame`, which is at most the number
    /// of stored frames. Frames from there on are written (again) at their places, and the
    /// count never goes down: recomputed frames are expected to be the same.
    ///
    /// # Errors
    /// When the file's shape, element type, stamps or any attribute given here differ from
    /// these options (the error names it, with both values), or frames before `from_frame` are
    /// not stored.
    pub fn resume<T: Element>(&self, from_frame: u64) -> Result<FrameWriter<T>> {
        self.validate::<T>()?;
        FrameWriter::resume(self, from_frame)
    }

    pub(crate) fn frame_bytes<T: Element>(&self) -> Option<u64> {
        let elements = self.frame_shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(d))?;
        u64::try_from(elements.checked_mul(size_of::<T>())?).ok()
    }

    fn validate<T: Element>(&self) -> Result<()> {
        let wrong = |reason: String| Err(StoreError::InvalidOptions(reason));
        if self.frames == 0 {
            return wrong("a file needs room for at least one frame; give the number of frames".into());
        }
        if self.frame_shape.contains(&0) || self.frame_shape.len() > 31 {
            return wrong(format!(
                "a frame of shape {:?} cannot be stored; give 1 to 31 extents above 0",
                self.frame_shape
            ));
        }
        if self.required_bytes::<T>().is_none_or(|bytes| bytes > i64::MAX as u64) {
            return wrong(format!(
                "{} frames of shape {:?} are more than a file can hold",
                self.frames, self.frame_shape
            ));
        }
        if self.dataset.is_empty() || self.dataset.contains('/') || RESERVED.contains(&&*self.dataset) {
            return wrong(format!("{:?} cannot be the dataset's name", self.dataset));
        }
        match self.compress {
            Some(level) if !(1..=9).contains(&level) => {
                wrong(format!("compression level {level} does not exist; choose 1 (fast) to 9 (small)"))
            }
            _ => Ok(()),
        }
    }

    fn check_path(&self) -> Result<()> {
        match self.path.metadata() {
            Ok(metadata) if !metadata.is_file() => Err(StoreError::NotAFile { path: self.path.clone() }),
            Ok(_) if !self.force => Err(StoreError::Exists { path: self.path.clone() }),
            _ => Ok(()),
        }
    }

    /// Refuses when `frames` more frames have no room, counting `reclaimed` bytes as free.
    pub(crate) fn check_space<T: Element>(&self, frames: u64, reclaimed: u64) -> Result<()> {
        let rest = Self { frames, ..self.clone() };
        let needed = rest.required_bytes::<T>().unwrap_or(u64::MAX);
        let available = available_bytes(&self.path)?.saturating_add(reclaimed);
        if self.compress.is_none() && needed > available {
            return Err(StoreError::NoSpace { needed, available, path: self.path.clone() });
        }
        Ok(())
    }
}
