//! [`FrameWriter`]: frames go in, and the computation goes on while they are written.

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::device::{Device, read_u64_at};
use crate::element::Element;
use crate::layout::{FramesAt, Layout};
use crate::options::{FileOptions, SyncLevel};
use crate::queue::{Observe, Queue};
use crate::sink::{Stamp, sink};
use crate::space::{Partial, occupied_bytes};
use crate::stats::Stats;
use crate::{Result, StoreError};

/// Writes frames to a file, in the order of the calls, beside the computation.
///
/// Made by [`FileOptions::create`] or [`FileOptions::resume`]. There are three ways to hand over a
/// frame, which can be mixed:
///
/// - [`append`](Self::append) copies it into recycled memory and queues it;
/// - [`frame`](Self::frame) gives out recycled memory to compute into, and
///   [`submit`](Self::submit) queues it: no copy;
/// - [`store`](Self::store) writes straight from the caller's slice, on the calling thread, and
///   returns when the frame is acknowledged: no copy, no queue.
///
/// When the I/O thread fails to write a frame, the next call reports it; all later frames are refused, and
/// what is stored stays. [`finish`](Self::finish) reports whatever is still unreported. Dropping
/// the writer without it writes what is queued and loses the error.
pub struct FrameWriter<T: Element> {
    queue: Arc<Queue<T>>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
    frames: u64,
    frame_shape: Vec<usize>,
    frame_len: usize,
    next: u64,
}

impl<T: Element> FrameWriter<T> {
    pub(crate) fn create(options: &FileOptions) -> Result<Self> {
        let partial = Partial::create(&options.path)?;
        options.check_space::<T>(options.frames, occupied_bytes(&options.path))?;
        let layout = Layout::create::<T>(options, partial.temporary())?;
        let file = open_for_writing(partial.temporary())?;
        let durable = options.sync != SyncLevel::None;
        if durable {
            file.sync_all().map_err(|e| StoreError::io("synchronise", &options.path, e))?;
        }
        partial.place(durable)?;
        Self::over(Box::new(file), options, &layout, 0, 0)
    }

    pub(crate) fn resume(options: &FileOptions, from: u64) -> Result<Self> {
        let path = &options.path;
        let hdf5 = crate::reader::open_hdf5(path)?;
        let layout = Layout::read_matching::<T>(&hdf5, options)?;
        hdf5.close().map_err(|e| StoreError::hdf5("close", path, e))?;
        let file = open_for_writing(path)?;
        let stored = read_u64_at(&file, layout.count_at).map_err(|e| StoreError::io("read", path, e))?;
        let frames = layout.frames;
        if stored > frames {
            return Err(StoreError::format(path, format!("it counts {stored} frames and has {frames}")));
        }
        if from > stored {
            return Err(StoreError::NotStored { path: path.clone(), frame: from - 1, stored, frames });
        }
        // What a compressed file will need cannot be known, whatever the options say now.
        if matches!(layout.frames_at, FramesAt::Contiguous(_)) {
            options.check_space::<T>(frames - stored, 0)?;
        }
        Self::over(Box::new(file), options, &layout, stored, from)
    }

    /// A writer to a file that is laid out, holds `stored` frames, and goes on with frame `next`.
    pub(crate) fn over(
        device: Box<dyn Device>,
        options: &FileOptions,
        layout: &Layout,
        stored: u64,
        next: u64,
    ) -> Result<Self> {
        let path = options.path.clone();
        let sink =
            sink(device, layout, options.sync, stored).map_err(|e| StoreError::io("read", &path, e))?;
        let frame_len = layout.frame_shape.iter().product();
        let queue = Queue::new(sink, options.queue, frame_len, stored, path.clone());
        let thread = std::thread::Builder::new().name("anabranch-store".into()).spawn({
            let queue = queue.clone();
            move || queue.run()
        });
        let thread = Some(thread.map_err(|e| StoreError::io("start the I/O thread for", &path, e))?);
        let (frames, frame_shape) = (layout.frames, layout.frame_shape.clone());
        Ok(Self { queue, thread, path, frames, frame_shape, frame_len, next })
    }

    /// Copies a frame into recycled memory and queues it; waits while the queue is full.
    ///
    /// # Errors
    /// When the slice has another length than a frame, the file is full, or an earlier frame
    /// could not be written.
    pub fn append(&mut self, data: &[T], stamp: Stamp) -> Result<()> {
        self.check(data.len())?;
        let mut frame = self.frame()?;
        frame.copy_from_slice(data);
        self.queue.copied(size_of_val(data));
        self.submit(frame, stamp)
    }

    /// Memory for one frame, to be filled and handed to [`submit`](Self::submit); waits while all
    /// of it is on its way to the file. What it holds is left over from an earlier frame.
    ///
    /// # Errors
    /// When an earlier frame could not be written.
    pub fn frame(&mut self) -> Result<FrameBuffer<T>> {
        Ok(FrameBuffer { data: self.queue.buffer()?, home: self.queue.clone() })
    }

    /// Queues a frame from [`frame`](Self::frame); waits while the queue is full.
    ///
    /// # Errors
    /// When the file is full, or an earlier frame could not be written.
    pub fn submit(&mut self, mut frame: FrameBuffer<T>, stamp: Stamp) -> Result<()> {
        self.check(frame.len())?;
        self.queue.put(self.next, std::mem::take(&mut frame.data), stamp)?;
        self.next += 1;
        Ok(())
    }

    /// Writes a frame straight from the slice, on this thread, after everything that is queued, and returns
    /// when it is acknowledged.
    ///
    /// # Errors
    /// When the slice has another length than a frame, the file is full, or this or an earlier
    /// frame could not be written.
    pub fn store(&mut self, data: &[T], stamp: Stamp) -> Result<()> {
        self.check(data.len())?;
        self.queue.write_now(self.next, data, stamp)?;
        self.next += 1;
        Ok(())
    }

    /// Waits for all queued frames, does what the [`SyncLevel`] asks for, and says how it went.
    ///
    /// # Errors
    /// When a frame could not be written, or the file could not be completed.
    pub fn finish(mut self) -> Result<Summary> {
        self.end()?;
        Ok(Summary {
            path: self.path.clone(),
            stored_frames: self.stored_frames(),
            frames: self.frames,
            stats: self.stats(),
        })
    }

    /// The index of the frame that is written next.
    pub fn next_frame(&self) -> u64 {
        self.next
    }

    /// How many frames the file has room for.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// How many frames the file holds: those are acknowledged.
    pub fn stored_frames(&self) -> u64 {
        self.queue.stored()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the time went until now.
    pub fn stats(&self) -> Stats {
        self.queue.stats()
    }

    /// A view of this writer's progress for other threads, as for a progress bar.
    pub fn monitor(&self) -> Monitor {
        Monitor(self.queue.clone())
    }

    fn check(&self, len: usize) -> Result<()> {
        self.queue.check()?;
        if len != self.frame_len {
            let (shape, expected) = (self.frame_shape.clone(), self.frame_len);
            return Err(StoreError::WrongLength { shape, expected, found: len });
        }
        if self.next >= self.frames {
            return Err(StoreError::TooManyFrames { path: self.path.clone(), frames: self.frames });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.queue.close();
        // A panic of the I/O thread has been turned into an error before.
        let _ = thread.join();
        self.queue.complete()
    }
}

impl<T: Element> Drop for FrameWriter<T> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl<T: Element> std::fmt::Debug for FrameWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("FrameWriter");
        out.field("path", &self.path).field("next", &self.next).field("frames", &self.frames).finish()
    }
}

fn open_for_writing(path: &Path) -> Result<File> {
    let file = File::options().read(true).write(true).open(path);
    file.map_err(|e| StoreError::io("open for writing", path, e))
}

/// Memory of one frame, from [`FrameWriter::frame`]: a slice to fill. Unless it is submitted, it goes
/// back to be given out again.
pub struct FrameBuffer<T: Element> {
    data: Vec<T>,
    home: Arc<Queue<T>>,
}

impl<T: Element> Deref for FrameBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.data
    }
}

impl<T: Element> DerefMut for FrameBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data
    }
}

impl<T: Element> Drop for FrameBuffer<T> {
    fn drop(&mut self) {
        let data = std::mem::take(&mut self.data);
        if !data.is_empty() {
            self.home.recycle(data);
        }
    }
}

impl<T: Element> std::fmt::Debug for FrameBuffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FrameBuffer({} × {})", self.data.len(), T::NAME)
    }
}

/// A writer's progress, seen from any thread; outlives the writer.
#[derive(Clone)]
pub struct Monitor(Arc<dyn Observe>);

impl Monitor {
    /// How many frames the file holds.
    pub fn stored_frames(&self) -> u64 {
        self.0.stored()
    }

    /// Where the time went until now.
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Monitor({:?})", self.stats())
    }
}

/// What [`FrameWriter::finish`] leaves behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The file.
    pub path: PathBuf,
    /// Frames it holds.
    pub stored_frames: u64,
    /// Frames it has room for.
    pub frames: u64,
    /// Where the time went.
    pub stats: Stats,
}

impl Summary {
    /// Whether the file holds all the frames it was made for.
    pub fn is_complete(&self) -> bool {
        self.stored_frames == self.frames
    }
}
