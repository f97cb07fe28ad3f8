//! Statistics of a writer: how much it has written, and which side waited.

use crate::file::ledger::Written;
use parking_lot::Mutex;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// A snapshot of the work of a writer until now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stats {
    /// Frames written by this writer.
    pub frames: u64,
    /// Bytes of those frames in memory.
    pub bytes: u64,
    /// Bytes of those frames in the file; fewer than `bytes` with compression.
    pub bytes_in_file: u64,
    /// Bytes of frame data that were copied in memory on their way to the file: by
    /// [`QueuedWriter::append`](crate::QueuedWriter::append), and for compressed chunks that reach over a
    /// frame's edge, and for frames in memory from which the device does not take them. The system's own
    /// copy, in `write`, is not among them.
    pub bytes_copied: u64,
    /// Time since the file was opened, or until it was finished.
    pub elapsed: Duration,
    /// Time spent writing frames, synchronisation and compression included.
    pub writing: Duration,
    /// Time in which no frame was being written. If it is long, the computation is the limit.
    pub idle: Duration,
    /// The work of the queue; `None` for a [`Writer`](crate::Writer) without one.
    pub queue: Option<QueueStats>,
}

/// A snapshot of the work of a [`QueuedWriter`](crate::QueuedWriter)'s queue until now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QueueStats {
    /// Time in which the producer waited: for room in the queue, or for free frame memory. If it is long,
    /// storage is the limit.
    pub producer_waited: Duration,
    /// The greatest length of the queue.
    pub max_depth: usize,
    /// The mean length of the queue, measured when the I/O thread takes a frame.
    pub mean_depth: f64,
}

impl Stats {
    /// Bytes of frame data per second of writing; 0 before the first frame.
    pub fn bytes_per_second(&self) -> f64 {
        let seconds = self.writing.as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 / seconds } else { 0.0 }
    }
}

/// A view of a writer's progress, for any thread. It outlives the writer.
#[derive(Clone)]
pub struct Monitor(pub(crate) Arc<Meter>);

impl Monitor {
    /// How many frames the file holds.
    pub fn stored_frames(&self) -> u64 {
        self.0.stored()
    }

    /// The statistics until now.
    pub fn stats(&self) -> Stats {
        self.0.snapshot()
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Monitor({:?})", self.stats())
    }
}

/// The counters of a writer, shared with its [`Monitor`]s.
pub(crate) struct Meter(Mutex<Counters>);

struct Counters {
    opened: Instant,
    closed: Option<Instant>,
    write_began: Option<Instant>,
    writing: Duration,
    /// Frames in the file.
    stored: u64,
    frames: u64,
    bytes: u64,
    bytes_in_file: u64,
    bytes_copied: u64,
    queue: Option<QueueCounters>,
}

#[derive(Default)]
struct QueueCounters {
    producer_waited: Duration,
    max_depth: usize,
    depth_sum: u64,
    depth_samples: u64,
}

impl Meter {
    /// Counters of a file that holds `stored` frames and has just been opened.
    pub(crate) fn new(stored: u64) -> Self {
        Self(Mutex::new(Counters {
            opened: Instant::now(),
            closed: None,
            write_began: None,
            writing: Duration::ZERO,
            stored,
            frames: 0,
            bytes: 0,
            bytes_in_file: 0,
            bytes_copied: 0,
            queue: None,
        }))
    }

    /// The writer begins to write a frame, or to complete the file.
    pub(crate) fn begin_write(&self) {
        self.0.lock().write_began = Some(Instant::now());
    }

    /// The write has ended. `frame` is the size of the frame in memory and what became of it, if one was
    /// stored.
    pub(crate) fn end_write(&self, frame: Option<(u64, Written)>) {
        let mut counters = self.0.lock();
        if let Some(began) = counters.write_began.take() {
            counters.writing += began.elapsed();
        }
        if let Some((bytes, written)) = frame {
            counters.stored = written.count;
            counters.frames += 1;
            counters.bytes += bytes;
            counters.bytes_in_file += written.bytes;
            counters.bytes_copied += written.copied;
        }
    }

    /// The file is complete: time no longer counts.
    pub(crate) fn close(&self) {
        self.0.lock().closed.get_or_insert_with(Instant::now);
    }

    /// Frames in the file.
    pub(crate) fn stored(&self) -> u64 {
        self.0.lock().stored
    }

    /// Frame data was copied on its way into the queue.
    pub(crate) fn copied(&self, bytes: usize) {
        self.0.lock().bytes_copied += bytes as u64;
    }

    /// Counts the work of a queue from now on.
    pub(crate) fn add_queue(&self) {
        self.0.lock().queue = Some(QueueCounters::default());
    }

    /// A frame was put into the queue, which is `depth` frames long now.
    pub(crate) fn queued(&self, depth: usize) {
        self.with_queue(|queue| queue.max_depth = queue.max_depth.max(depth));
    }

    /// The I/O thread has taken a frame from a queue of `depth` frames.
    pub(crate) fn taken(&self, depth: usize) {
        self.with_queue(|queue| {
            queue.depth_sum += depth as u64;
            queue.depth_samples += 1;
        });
    }

    /// The producer has waited.
    pub(crate) fn producer_waited(&self, time: Duration) {
        self.with_queue(|queue| queue.producer_waited += time);
    }

    fn with_queue(&self, change: impl FnOnce(&mut QueueCounters)) {
        change(self.0.lock().queue.get_or_insert_default());
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let counters = self.0.lock();
        let elapsed = counters.closed.unwrap_or_else(Instant::now) - counters.opened;
        let writing = counters.writing + counters.write_began.map_or(Duration::ZERO, |began| began.elapsed());
        Stats {
            frames: counters.frames,
            bytes: counters.bytes,
            bytes_in_file: counters.bytes_in_file,
            bytes_copied: counters.bytes_copied,
            elapsed,
            writing,
            idle: elapsed.saturating_sub(writing),
            queue: counters.queue.as_ref().map(|queue| QueueStats {
                producer_waited: queue.producer_waited,
                max_depth: queue.max_depth,
                mean_depth: queue.depth_sum as f64 / queue.depth_samples.max(1) as f64,
            }),
        }
    }
}
