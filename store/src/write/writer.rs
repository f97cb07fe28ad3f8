//! [`Writer`]: writes frames to a file, on the calling thread.

use crate::{
    Result, StoreError,
    element::Element,
    file::{
        device::Device,
        frame_file::{FrameFile, State},
        layout::Layout,
        ledger::{Stamp, Written},
        lock::WriteLock,
    },
    options::FileOptions,
    write::{
        announcement::Announcement,
        stats::{Meter, Monitor, Stats},
    },
};
use std::{
    fmt,
    io::{self, Write as _},
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Writes frames to a file, in the order of the calls, on the thread that calls.
///
/// Made by [`FileOptions::create`] or [`FileOptions::resume`]. [`append`](Self::append) writes straight from
/// the caller's memory and returns when the frame is acknowledged: no copy, no queue, no thread.
/// [`queued`](Self::queued) puts a queue in front.
///
/// After a frame has failed, every later call reports the same error, and the stored frames stay.
/// [`finish`](Self::finish) completes the file. Dropping the writer completes it too, and prints an error
/// that no call has returned to standard error.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("output.h5");
/// use anabranch_store::{FileOptions, Stamp};
///
/// let mut writer = FileOptions::new(&path).frames(2).frame_shape(&[3]).create::<f64>()?;
/// writer.append(&[1.0, 2.0, 3.0], Stamp::default())?;
/// assert_eq!(writer.stored_frames(), 1);
/// assert!(!writer.finish()?.is_complete());
/// # Ok::<(), anabranch_store::StoreError>(())
/// ```
pub struct Writer<T: Element> {
    file: FrameFile,
    announcement: Option<Announcement>,
    room: Room,
    meter: Arc<Meter>,
    /// The index of the next frame.
    next: u64,
    error: Option<StoreError>,
    /// A call has returned `error` to the program.
    returned: bool,
    completed: bool,
    /// The absolute path, since the program may change its working directory.
    place: PathBuf,
    /// Released when everything is written.
    _lock: Option<WriteLock>,
    element: PhantomData<fn(T)>,
}

impl<T: Element> Writer<T> {
    /// A writer to a file of this layout that holds `stored` frames. It goes on with frame `next`.
    pub(crate) fn new(
        device: Box<dyn Device>,
        options: &FileOptions,
        layout: &Layout,
        stored: u64,
        next: u64,
    ) -> Result<Self> {
        let room =
            Room { path: options.path.clone(), frames: layout.frames, shape: layout.frame_shape.clone() };
        let place = std::path::absolute(&room.path).map_err(|e| StoreError::io("find", &room.path, e))?;
        let file = FrameFile::new(device, layout, options.sync, stored)
            .map_err(|e| StoreError::io("read", &room.path, e))?;
        let announcement = file
            .start()
            .map(|(start, immutable)| Announcement::new::<T>(layout, start, options.sync, immutable));
        let meter = Arc::new(Meter::new(stored));
        let (error, returned, completed, element) = (None, false, false, PhantomData);
        let _lock = None;
        Ok(Self { file, announcement, room, meter, next, error, returned, completed, place, _lock, element })
    }

    /// Keeps other writers from the file as long as this one exists.
    pub(crate) fn holding(mut self, lock: WriteLock) -> Self {
        self._lock = Some(lock);
        self
    }

    /// Writes a frame straight from the slice, and returns when it is acknowledged.
    ///
    /// # Errors
    /// When the slice has another length than a frame, the file is full, or this or an earlier
    /// frame could not be written.
    pub fn append(&mut self, data: &[T], stamp: Stamp) -> Result<()> {
        self.check()?;
        self.room.check(self.next, data.len())?;
        let bytes: &[u8] = bytemuck::cast_slice(data);
        self.store(bytes.len(), |file, frame| file.write_frame(frame, bytes, stamp))
    }

    /// What other processes must know to write parts of the frames, with a [`PartWriter`](crate::PartWriter).
    /// `None` for a compressed file, whose frames are written whole, by [`append`](Self::append).
    pub fn announce(&self) -> Option<Announcement> {
        self.announcement
    }

    /// Counts the next frame, all of whose parts [`PartWriter`](crate::PartWriter)s have written. Returns
    /// when it is acknowledged.
    ///
    /// # Errors
    /// When the file is full or compressed, or this or an earlier frame could not be written.
    pub fn append_parts(&mut self, stamp: Stamp) -> Result<()> {
        self.check()?;
        let len = self.room.frame_len();
        self.room.check(self.next, len)?;
        if self.announcement.is_none() {
            return Err(StoreError::InvalidOptions(format!(
                "{} is compressed, so its frames have no parts; append whole frames",
                self.room.path.display()
            )));
        }
        let missing = || Err(io::ErrorKind::Unsupported.into());
        self.store(len * size_of::<T>(), |file, frame| file.count_frame(frame, stamp).unwrap_or_else(missing))
    }

    /// The error of an earlier frame.
    fn check(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Stores the next frame, of this many bytes, by `write`.
    fn store(
        &mut self,
        bytes: usize,
        write: impl FnOnce(&mut FrameFile, u64) -> io::Result<Written>,
    ) -> Result<()> {
        self.meter.begin_write();
        let written = catch_unwind(AssertUnwindSafe(|| write(&mut self.file, self.next)))
            .unwrap_or_else(|_| Err(io::Error::other("the writing code panicked")));
        match written {
            Ok(written) => {
                self.meter.end_write(Some((bytes as u64, written)));
                self.next += 1;
                Ok(())
            }
            Err(source) => {
                self.meter.end_write(None);
                let (path, stored) = (self.room.path.clone(), self.meter.stored());
                let error = StoreError::Write { frame: self.next, path, stored, source: Arc::new(source) };
                (self.error, self.returned) = (Some(error.clone()), true);
                Err(error)
            }
        }
    }

    /// Completes the file as its [`SyncLevel`](crate::SyncLevel) asks for, and returns a summary.
    ///
    /// # Errors
    /// When a frame could not be written, the file could not be completed, or another program has removed,
    /// moved or replaced it ([`StoreError::Displaced`]), or has written to it ([`StoreError::Overwritten`]).
    pub fn finish(mut self) -> Result<Summary> {
        self.complete()?;
        Ok(Summary {
            path: self.room.path.clone(),
            stored_frames: self.stored_frames(),
            frames: self.room.frames,
            stats: self.stats(),
        })
    }

    /// The index of the next frame.
    pub fn next_frame(&self) -> u64 {
        self.next
    }

    /// How many frames the file has room for.
    pub fn frames(&self) -> u64 {
        self.room.frames
    }

    /// How many frames the file holds: those are acknowledged.
    pub fn stored_frames(&self) -> u64 {
        self.meter.stored()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.room.path
    }

    /// The statistics until now.
    pub fn stats(&self) -> Stats {
        self.meter.snapshot()
    }

    /// A view of this writer's progress for other threads, such as one that draws a progress bar.
    pub fn monitor(&self) -> Monitor {
        Monitor(self.meter.clone())
    }

    /// Sets whether a call has returned the error of a frame to the program, where [`append`](Self::append)
    /// has returned it to the I/O thread.
    pub(crate) fn set_returned(&mut self, returned: bool) {
        self.returned = returned;
    }

    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Completes the file, once. Returns the error of a frame rather than that of the completion.
    fn complete(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.completed, true) {
            return Ok(());
        }
        self.meter.begin_write();
        let state = self.file.finish().and_then(|()| self.file.state(&self.place));
        self.meter.end_write(None);
        self.meter.close();
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let (path, stored) = (self.room.path.clone(), self.meter.stored());
        match state {
            Ok(State::Intact) => Ok(()),
            Ok(State::Displaced) => Err(StoreError::Displaced { path, stored }),
            Ok(State::Overwritten) => Err(StoreError::Overwritten { path, stored }),
            Err(source) => Err(StoreError::Finish { path, stored, source: Arc::new(source) }),
        }
    }
}

impl<T: Element> Drop for Writer<T> {
    fn drop(&mut self) {
        let returned = self.error.is_some() && self.returned;
        if let Err(error) = self.complete()
            && !returned
        {
            // Not `eprintln!`, which panics where standard error cannot be written.
            let _ = writeln!(
                io::stderr(),
                "anabranch-store: a writer was dropped, but no call has returned its failure: {error}; call `finish` \
                 to get it as an error"
            );
        }
    }
}

impl<T: Element> fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Writer");
        out.field("path", &self.room.path)
            .field("next", &self.next)
            .field("frames", &self.room.frames)
            .finish()
    }
}

/// The room of a file for frames.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    pub(crate) path: PathBuf,
    pub(crate) frames: u64,
    /// The shape of a frame.
    pub(crate) shape: Vec<usize>,
}

impl Room {
    /// Elements of a frame.
    pub(crate) fn frame_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// An error unless a frame of `len` elements may become frame `index`.
    pub(crate) fn check(&self, index: u64, len: usize) -> Result<()> {
        let expected = self.frame_len();
        if len != expected {
            let (path, shape) = (self.path.clone(), self.shape.clone());
            return Err(StoreError::WrongLength { path, shape, expected, found: len });
        }
        if index >= self.frames {
            return Err(StoreError::TooManyFrames { path: self.path.clone(), frames: self.frames });
        }
        Ok(())
    }
}

/// The result of a finished writer.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The file.
    pub path: PathBuf,
    /// Frames that it holds.
    pub stored_frames: u64,
    /// Frames that it has room for.
    pub frames: u64,
    /// The statistics of the writer.
    pub stats: Stats,
}

impl Summary {
    /// Whether the file holds all the frames that it has room for.
    pub fn is_complete(&self) -> bool {
        self.stored_frames == self.frames
    }
}
