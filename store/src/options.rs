//! [`FileOptions`]: the description of a file of frames.

use crate::{Result, StoreError, attribute::Attr, element::Element};
use std::path::{Path, PathBuf};

/// The promise about frames when the power fails or the system crashes.
///
/// At every level a frame is acknowledged (counted in `/stored_frames`) only after all its bytes
/// have been handed to the operating system: whatever happens to the *program*, `kill -9`
/// included, every frame up to the count is complete and the file opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncLevel {
    /// No further promise. The operating system writes to the device when it sees fit; after a power
    /// failure any part of the file may be missing, also some time after the program ended.
    None,
    /// When [`Writer::finish`](crate::Writer::finish) returns `Ok`, everything is on the device. A power
    /// failure before that may leave the count ahead of the frames. The device is synchronised in between,
    /// too, so that the end has little to do.
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
    /// `None` until the program gives it.
    pub(crate) frame_shape: Option<Vec<usize>>,
    pub(crate) attributes: Vec<(String, Attr)>,
    pub(crate) stamps: bool,
    pub(crate) force: bool,
    pub(crate) sync: SyncLevel,
    pub(crate) compress: Option<u8>,
}

/// Names in the root group that the dataset of frames cannot have.
pub(crate) const RESERVED: [&str; 4] = ["stored_frames", "step", "time", "chunk_records"];

impl FileOptions {
    /// A file at `path`: dataset `/matrix`, no attributes, no stamps, no overwriting,
    /// [`SyncLevel::End`], no compression.
    /// [`frames`](Self::frames) and [`frame_shape`](Self::frame_shape) must be given.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_path_buf(),
            dataset: "matrix".into(),
            frames: 0,
            frame_shape: None,
            attributes: Vec::new(),
            stamps: false,
            force: false,
            sync: SyncLevel::default(),
            compress: None,
        }
    }

    /// Sets the name of the dataset of frames, in the root group.
    pub fn dataset(mut self, name: &str) -> Self {
        self.dataset = name.trim_start_matches('/').into();
        self
    }

    /// Sets how many frames the file has room for; at least 1.
    pub fn frames(mut self, frames: u64) -> Self {
        self.frames = frames;
        self
    }

    /// Sets the extent of a frame in each dimension, slowest first. A frame of shape `[]` is a single number.
    pub fn frame_shape(mut self, shape: &[usize]) -> Self {
        self.frame_shape = Some(shape.to_vec());
        self
    }

    /// Adds an attribute to the root group; when resuming, one that the file must have.
    /// A later value of the same name replaces the earlier one.
    pub fn attribute(mut self, name: &str, value: impl Into<Attr>) -> Self {
        self.attributes.retain(|(other, _)| other != name);
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// Sets whether the step and time of each frame are stored, in `/step` and `/time`.
    pub fn stamps(mut self, stamps: bool) -> Self {
        self.stamps = stamps;
        self
    }

    /// Sets whether an existing file is replaced. It stays until the new one is laid out completely.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Sets the promise about power failures.
    pub fn sync(mut self, level: SyncLevel) -> Self {
        self.sync = level;
        self
    }

    /// Sets the deflate level from 1 (fast) to 9 (small), or no compression. A resumed file keeps its own.
    pub fn compress(mut self, level: Option<u8>) -> Self {
        self.compress = level;
        self
    }

    /// The size of the complete file, without compression; `None` when it exceeds 64 bits, or no frame shape
    /// was given.
    pub fn required_bytes<T: Element>(&self) -> Option<u64> {
        let stamps = if self.stamps { 16 } else { 0 };
        self.frame_bytes::<T>()?.checked_add(stamps)?.checked_mul(self.frames)?.checked_add(16 * 1024)
    }

    pub(crate) fn frame_bytes<T: Element>(&self) -> Option<u64> {
        let elements = self.frame_shape.as_ref()?.iter().try_fold(1_usize, |n, &d| n.checked_mul(d))?;
        u64::try_from(elements.checked_mul(size_of::<T>())?).ok()
    }

    /// The extents of a frame, of options that are valid.
    pub(crate) fn extents(&self) -> &[usize] {
        self.frame_shape.as_deref().unwrap_or(&[])
    }

    /// An error if these options contradict themselves or lack something.
    pub(crate) fn validate<T: Element>(&self) -> Result<()> {
        let wrong = |reason: String| Err(StoreError::InvalidOptions(reason));
        if self.frames == 0 {
            return wrong("a file needs room for at least one frame; give the number of frames".into());
        }
        let Some(shape) = &self.frame_shape else {
            return wrong(
                "a file needs the shape of its frames; give it, or [] if a frame is a single number".into(),
            );
        };
        if shape.contains(&0) || shape.len() > 31 {
            return wrong(format!(
                "a frame of shape {shape:?} cannot be stored; give at most 31 extents, each above 0"
            ));
        }
        if self.required_bytes::<T>().is_none_or(|bytes| bytes > i64::MAX as u64) {
            return wrong(format!("{} frames of shape {shape:?} are more than a file can hold", self.frames));
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
}
