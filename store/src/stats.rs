//! Where the time went, on both sides of the queue.

use std::time::{Duration, Instant};

/// A snapshot of what a [`FrameWriter`](crate::FrameWriter) has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stats {
    /// Frames written by this writer.
    pub frames: u64,
    /// Bytes of those frames in memory.
    pub bytes: u64,
    /// Bytes of those frames in the file; fewer than `bytes` with compression.
    pub bytes_in_file: u64,
    /// Bytes of frame data that were copied in memory on their way to the file: by [`append`](crate::FrameWriter::append), and
    /// for compressed chunks that reach over a frame's edge. The system's own copy, in `write`, is not among them.
    pub bytes_copied: u64,
    /// Time since the file was opened, or until it was finished.
    pub elapsed: Duration,
    /// Time for which the producer had to wait: for room in the queue or for free frame memory.
    /// Large: storage is the limit.
    pub producer_waited: Duration,
    /// Time spent writing frames, on the I/O thread or in [`store`](crate::FrameWriter::store),
    /// synchronisation and compression included.
    pub writing: Duration,
    /// Time in which there was no frame to write. Large: the computation is the limit.
    pub idle: Duration,
    /// The longest that the queue has been.
    pub max_queue_depth: usize,
    /// The queue's mean length, as the I/O thread found it when it took a frame.
    pub mean_queue_depth: f64,
}

impl Stats {
    /// Bytes of frame data per second of writing; 0 before the first frame.
    pub fn bytes_per_second(&self) -> f64 {
        let seconds = self.writing.as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 / seconds } else { 0.0 }
    }
}

/// What the statistics are made of.
#[derive(Debug)]
pub(crate) struct Meter {
    opened: Instant,
    closed: Option<Instant>,
    write_began: Option<Instant>,
    written: Duration,
    pub(crate) producer_waited: Duration,
    frames: u64,
    bytes: u64,
    bytes_in_file: u64,
    bytes_copied: u64,
    max_depth: usize,
    depth_sum: u64,
    depth_samples: u64,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            opened: Instant::now(),
            closed: None,
            write_began: None,
            written: Duration::ZERO,
            producer_waited: Duration::ZERO,
            frames: 0,
            bytes: 0,
            bytes_in_file: 0,
            bytes_copied: 0,
            max_depth: 0,
            depth_sum: 0,
            depth_samples: 0,
        }
    }

    pub(crate) fn queued(&mut self, depth: usize) {
        self.max_depth = self.max_depth.max(depth);
    }

    pub(crate) fn taken(&mut self, depth: usize) {
        self.depth_sum += depth as u64;
        self.depth_samples += 1;
    }

    pub(crate) fn begin_write(&mut self) {
        self.write_began = Some(Instant::now());
    }

    pub(crate) fn end_write(&mut self) {
        self.written += self.write_began.take().map_or(Duration::ZERO, |began| began.elapsed());
    }

    pub(crate) fn copied(&mut self, bytes: u64) {
        self.bytes_copied += bytes;
    }

    pub(crate) fn stored(&mut self, bytes: u64, bytes_in_file: u64) {
        self.frames += 1;
        self.bytes += bytes;
        self.bytes_in_file += bytes_in_file;
    }

    pub(crate) fn close(&mut self) {
        self.closed.get_or_insert_with(Instant::now);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let elapsed = self.closed.unwrap_or_else(Instant::now) - self.opened;
        let writing = self.written + self.write_began.map_or(Duration::ZERO, |began| began.elapsed());
        Stats {
            frames: self.frames,
            bytes: self.bytes,
            bytes_in_file: self.bytes_in_file,
            bytes_copied: self.bytes_copied,
            elapsed,
            producer_waited: self.producer_waited,
            writing,
            idle: elapsed.saturating_sub(writing),
            max_queue_depth: self.max_depth,
            mean_queue_depth: self.depth_sum as f64 / self.depth_samples.max(1) as f64,
        }
    }
}
