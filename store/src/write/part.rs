//! [`PartWriter`]: writes parts of frames, beside the writer of the file in another process.

use crate::{
    Result, StoreError, SyncLevel,
    element::Element,
    file::{
        device::{Device, read_u64_at},
        immutable_part::ImmutablePart,
        lock::holder_of,
        partial::find,
        system::System,
    },
    write::announcement::Announcement,
};
use std::{
    fmt,
    fs::File,
    io::{self, ErrorKind},
    marker::PhantomData,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Writes parts of the frames of a file whose [`Writer`](crate::Writer) is in another process or on another
/// machine.
///
/// The writer creates the file, [announces](crate::Writer::announce) it, and alone
/// [counts](crate::Writer::append_parts) frames. A frame that is counted is complete, whichever process is
/// killed, if the program counts it only after all parts are written: [`write`](Self::write) returns when its
/// part is as safe as the [`SyncLevel`] of the file demands.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("output.h5");
/// use anabranch_store::{Announcement, FileOptions, PartWriter, Reader, Stamp};
///
/// let mut writer = FileOptions::new(&path).frames(1).frame_shape(&[4]).create::<f32>()?;
/// let words = writer.announce().expect("the file is not compressed").to_words();
/// // In two other processes, which get these numbers:
/// for rank in 0..2 {
///     let mut part = PartWriter::open(&path, &Announcement::from_words(words).unwrap())?;
///     part.write(0, 2 * rank, &[rank as f32; 2])?;
///     part.finish()?;
/// }
/// // When both parts are written:
/// writer.append_parts(Stamp::default())?;
/// writer.finish()?;
/// assert_eq!(Reader::open(&path)?.read_frame::<f32>(0)?.as_slice(), Some(&[0.0, 0.0, 1.0, 1.0][..]));
/// # Ok::<(), anabranch_store::StoreError>(())
/// ```
pub struct PartWriter<T: Element> {
    device: Box<dyn Device>,
    announcement: Announcement,
    path: PathBuf,
    element: PhantomData<fn(T)>,
}

impl<T: Element> PartWriter<T> {
    /// Opens the file at `path`, which must be the one that was announced.
    ///
    /// # Errors
    /// [`StoreError::NotAnnounced`] when there is no file at the path, it is another one, or its writer has
    /// ended. [`StoreError::Mismatch`] when its elements have another type. [`StoreError::Io`] when it cannot
    /// be opened.
    pub fn open(path: impl AsRef<Path>, announcement: &Announcement) -> Result<Self> {
        let path = path.as_ref();
        let failed = |e| StoreError::io("open for writing", path, e);
        announcement.check_element::<T>(path)?;
        let (real, file) = find(path)?;
        // A part that is longer than the file is not that of this file.
        let immutable =
            ImmutablePart::read_bytes(&file, announcement.immutable_len()).or_else(|e| match e.kind() {
                ErrorKind::UnexpectedEof => Ok(ImmutablePart::empty()),
                _ => Err(failed(e)),
            })?;
        announcement.check_identity(path, &immutable, holder_of(&real).as_ref())?;
        Ok(Self::on(System.open_part(&real).map_err(failed)?, announcement, path))
    }

    pub(super) fn on(device: Box<dyn Device>, announcement: &Announcement, path: &Path) -> Self {
        Self { device, announcement: *announcement, path: path.into(), element: PhantomData }
    }

    /// Writes elements of a frame, from element `first` of the frame on, straight from the slice. Returns
    /// when they are in the file, and with [`SyncLevel::Frame`] on the device. On a network file system they
    /// are on the server, because another machine may count the frame.
    ///
    /// # Errors
    /// When the elements are not all in the frame, the file has no such frame, or they could not be written.
    pub fn write(&mut self, frame: u64, first: usize, data: &[T]) -> Result<()> {
        let Announcement { frames, frame_bytes, start, sync, .. } = self.announcement;
        if frame >= frames {
            return Err(StoreError::TooManyFrames { path: self.path.clone(), frames });
        }
        let (offset, bytes) = (first as u64 * size_of::<T>() as u64, bytemuck::cast_slice(data));
        if offset + bytes.len() as u64 > frame_bytes {
            let elements = frame_bytes as usize / size_of::<T>();
            let range = first..first + data.len();
            return Err(StoreError::OutsideFrame { path: self.path.clone(), elements, range });
        }
        let written = self.device.write_all_at(bytes, start + frame * frame_bytes + offset);
        let safe = |()| if sync == SyncLevel::Frame { self.device.sync() } else { Ok(()) };
        written.and_then(safe).map_err(|error| self.failed(frame, error))
    }

    /// Makes all parts as safe as the [`SyncLevel`] of the file demands at the end. Call this in every
    /// process before the writer [finishes](crate::Writer::finish) the file.
    ///
    /// # Errors
    /// When the device cannot be synchronised.
    pub fn finish(self) -> Result<()> {
        if self.announcement.sync == SyncLevel::None {
            return Ok(());
        }
        self.device.sync().map_err(|source| {
            let (path, stored) = (self.path.clone(), self.stored());
            StoreError::Finish { path, stored, source: Arc::new(source) }
        })
    }

    /// Elements of a frame.
    pub fn frame_len(&self) -> usize {
        self.announcement.frame_bytes as usize / size_of::<T>()
    }

    fn failed(&self, frame: u64, source: io::Error) -> StoreError {
        StoreError::Write { frame, path: self.path.clone(), stored: self.stored(), source: Arc::new(source) }
    }

    /// The frames that the file counts; for messages only.
    fn stored(&self) -> u64 {
        let count = |file: File| read_u64_at(&file, self.announcement.count_at);
        File::open(&self.path).and_then(count).unwrap_or(0)
    }
}

impl<T: Element> fmt::Debug for PartWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartWriter").field("path", &self.path).finish_non_exhaustive()
    }
}
