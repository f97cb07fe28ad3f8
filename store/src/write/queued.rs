//! [`QueuedWriter`]: the computation goes on while frames are written.

use crate::{
    Result, StoreError,
    element::Element,
    file::ledger::Stamp,
    write::{
        queue::Queue,
        stats::{Meter, Monitor, Stats},
        writer::{Room, Summary, Writer},
    },
};
use std::{
    fmt,
    ops::{Deref, DerefMut},
    panic::resume_unwind,
    path::Path,
    sync::Arc,
    thread::JoinHandle,
};

impl<T: Element> Writer<T> {
    /// Puts a queue of `capacity` frames and an I/O thread in front of this writer.
    ///
    /// With a capacity of 0, [`QueuedWriter::append`] returns when the I/O thread has taken the frame (and
    /// still writes it beside the computation). The memory for frames is that of `capacity + 2` frames,
    /// unless the program keeps [`FrameBuffer`]s.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn queued(mut self, capacity: usize) -> Result<QueuedWriter<T>> {
        let (room, meter, next) = (self.room().clone(), self.meter().clone(), self.next_frame());
        let queue = Arc::new(Queue::new(capacity, room.frame_len(), meter.clone()));
        let thread = std::thread::Builder::new().name("anabranch-store".into()).spawn({
            let queue = queue.clone();
            move || {
                queue.write_to(&mut self);
                self
            }
        });
        let thread = thread.map_err(|e| StoreError::io("start the I/O thread for", &room.path, e))?;
        Ok(QueuedWriter { queue, thread: Some(thread), room, meter, next })
    }
}

/// A [`Writer`] with a bounded queue in front: an I/O thread writes the frames, in the order of the calls,
/// beside the computation.
///
/// Made by [`Writer::queued`]. There are two ways to hand over a frame, which can be mixed:
///
/// - [`append`](Self::append) copies it into recycled memory and queues it;
/// - [`frame`](Self::frame) gives out recycled memory to compute into, and
///   [`submit`](Self::submit) queues it: no copy.
///
/// When the I/O thread fails to write a frame, the next call reports it; all later frames are refused, and
/// the stored frames stay. [`finish`](Self::finish) reports an error that is still unreported. Dropping the
/// writer without it writes the queued frames, and prints an error that no call has returned to standard
/// error.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("output.h5");
/// use anabranch_store::{FileOptions, Stamp};
///
/// let options = FileOptions::new(&path).frames(10).frame_shape(&[4, 6]);
/// let mut writer = options.create::<f32>()?.queued(2)?;
/// writer.append(&[0.5; 24], Stamp::default())?;
/// assert_eq!(writer.finish()?.stored_frames, 1);
/// # Ok::<(), anabranch_store::StoreError>(())
/// ```
pub struct QueuedWriter<T: Element> {
    queue: Arc<Queue<T>>,
    /// The I/O thread, which gives its writer back when it ends.
    thread: Option<JoinHandle<Writer<T>>>,
    room: Room,
    meter: Arc<Meter>,
    /// The index of the next frame.
    next: u64,
}

impl<T: Element> QueuedWriter<T> {
    /// Copies a frame into recycled memory and queues it; waits while the queue is full.
    ///
    /// # Errors
    /// When the slice has another length than a frame, the file is full, or an earlier frame
    /// could not be written.
    pub fn append(&mut self, data: &[T], stamp: Stamp) -> Result<()> {
        self.check(data.len())?;
        let mut frame = self.frame()?;
        frame.copy_from_slice(data);
        self.meter.copied(size_of_val(data));
        self.submit(frame, stamp)
    }

    /// Memory for one frame, to be filled and handed to [`submit`](Self::submit); waits while all
    /// of it is on its way to the file. It still holds the values of an earlier frame.
    ///
    /// # Errors
    /// When an earlier frame could not be written.
    pub fn frame(&mut self) -> Result<FrameBuffer<T>> {
        Ok(FrameBuffer { data: self.queue.buffer()?, queue: self.queue.clone() })
    }

    /// Queues a frame from [`frame`](Self::frame); waits while the queue is full.
    ///
    /// # Errors
    /// When the file is full, or an earlier frame could not be written.
    pub fn submit(&mut self, mut frame: FrameBuffer<T>, stamp: Stamp) -> Result<()> {
        self.check(frame.len())?;
        self.queue.put(std::mem::take(&mut frame.data), stamp)?;
        self.next += 1;
        Ok(())
    }

    /// Waits for all queued frames, then completes the file as [`Writer::finish`].
    ///
    /// # Errors
    /// When a frame could not be written, or the file could not be completed.
    pub fn finish(mut self) -> Result<Summary> {
        self.join().expect("nothing else ends the thread").finish()
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

    fn check(&self, len: usize) -> Result<()> {
        self.queue.check()?;
        self.room.check(self.next, len)
    }

    /// Lets the I/O thread write the queued frames and end. `None` if it has ended before.
    fn join(&mut self) -> Option<Writer<T>> {
        let thread = self.thread.take()?;
        self.queue.close();
        // The writer turns panics into errors, so the thread itself does not panic.
        Some(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl<T: Element> Drop for QueuedWriter<T> {
    fn drop(&mut self) {
        // Dropping the writer completes the file.
        if let Some(mut writer) = self.join() {
            writer.set_returned(self.queue.error_was_returned());
        }
    }
}

impl<T: Element> fmt::Debug for QueuedWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("QueuedWriter");
        out.field("path", &self.room.path)
            .field("next", &self.next)
            .field("frames", &self.room.frames)
            .finish()
    }
}

/// Memory of one frame, from [`QueuedWriter::frame`]: a slice to fill. Dropping it without submitting it
/// gives the memory back.
pub struct FrameBuffer<T: Element> {
    data: Vec<T>,
    /// The queue that gave it out.
    queue: Arc<Queue<T>>,
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
            self.queue.recycle(data);
        }
    }
}

impl<T: Element> fmt::Debug for FrameBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameBuffer({} × {})", self.data.len(), T::NAME)
    }
}
