//! The bounded queue between the producer and the I/O thread, and the frame memory that
//! circulates through it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::element::Element;
use crate::sink::{FrameSink, Stamp};
use crate::stats::{Meter, Stats};
use crate::{Result, StoreError};

/// A frame on its way to the file.
struct Queued<T> {
    index: u64,
    stamp: Stamp,
    data: Vec<T>,
}

struct State<T> {
    queue: VecDeque<Queued<T>>,
    free: Vec<Vec<T>>,
    /// Frame buffers that exist, wherever they are.
    buffers: usize,
    /// Frames that the I/O thread has taken.
    taken: u64,
    /// Frames put into the queue.
    put: u64,
    /// Someone is writing to the file.
    writing: bool,
    /// Nothing more is put into the queue.
    closed: bool,
    /// Frames in the file.
    stored: u64,
    error: Option<StoreError>,
    meter: Meter,
}

/// What the producer and the I/O thread share.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Something for the I/O thread to do.
    work: Condvar,
    /// Something for the producer to go on with.
    progress: Condvar,
    sink: Mutex<Box<dyn FrameSink>>,
    capacity: usize,
    frame_len: usize,
    path: PathBuf,
}

/// The state behind a lock is consistent between statements: a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<T> State<T> {
    fn check(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
}

impl<T: Element> Queue<T> {
    pub(crate) fn new(
        sink: Box<dyn FrameSink>,
        capacity: usize,
        frame_len: usize,
        stored: u64,
        path: PathBuf,
    ) -> Arc<Self> {
        let state = State {
            queue: VecDeque::with_capacity(capacity.clamp(1, 1024)),
            free: Vec::new(),
            buffers: 0,
            taken: 0,
            put: 0,
            writing: false,
            closed: false,
            stored,
            error: None,
            meter: Meter::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            progress: Condvar::new(),
            sink: Mutex::new(sink),
            capacity,
            frame_len,
            path,
        })
    }

    /// Waits until `ready`, charging the time to the producer; stops at an error.
    fn producer_waits<'a>(
        &self,
        mut state: MutexGuard<'a, State<T>>,
        ready: impl Fn(&State<T>) -> bool,
    ) -> Result<MutexGuard<'a, State<T>>> {
        state.check()?;
        if !ready(&state) {
            let began = Instant::now();
            while !ready(&state) && state.error.is_none() {
                state = wait(&self.progress, state);
            }
            state.meter.producer_waited += began.elapsed();
            state.check()?;
        }
        Ok(state)
    }

    /// Frame memory to fill: recycled, or new as long as there is little of it.
    ///
    /// One frame for each place in the queue, one being written and one being filled are enough. Only
    /// a producer that keeps them all to itself gets more, since waiting would then never end.
    pub(crate) fn buffer(&self) -> Result<Vec<T>> {
        let enough = self.capacity + 2;
        let mut state = self.producer_waits(lock(&self.state), |s| {
            !s.free.is_empty() || s.buffers < enough || (s.queue.is_empty() && !s.writing)
        })?;
        if let Some(buffer) = state.free.pop() {
            return Ok(buffer);
        }
        state.buffers += 1;
        drop(state);
        Ok(vec![T::zeroed(); self.frame_len])
    }

    /// Takes frame memory back.
    pub(crate) fn recycle(&self, buffer: Vec<T>) {
        lock(&self.state).free.push(buffer);
        self.progress.notify_all();
    }

    /// Queues a frame: returns when there is room for it or, with a capacity of 0, when the I/O
    /// thread has taken it.
    pub(crate) fn put(&self, index: u64, data: Vec<T>, stamp: Stamp) -> Result<()> {
        let room = self.capacity.max(1);
        let mut state = match self.producer_waits(lock(&self.state), |s| s.queue.len() < room) {
            Ok(state) => state,
            Err(error) => {
                self.recycle(data);
                return Err(error);
            }
        };
        state.queue.push_back(Queued { index, stamp, data });
        state.put += 1;
        let (ticket, depth) = (state.put, state.queue.len());
        state.meter.queued(depth);
        self.work.notify_one();
        if self.capacity == 0 {
            drop(self.producer_waits(state, |s| s.taken >= ticket)?);
        }
        Ok(())
    }

    /// Notes that frame data was copied on its way into the queue.
    pub(crate) fn copied(&self, bytes: usize) {
        lock(&self.state).meter.copied(bytes as u64);
    }

    /// Writes a frame on the calling thread, after everything that is queued.
    pub(crate) fn write_now(&self, index: u64, data: &[T], stamp: Stamp) -> Result<()> {
        let mut state = self.producer_waits(lock(&self.state), |s| s.queue.is_empty() && !s.writing)?;
        state.writing = true;
        state.meter.begin_write();
        drop(state);
        let state = self.write(index, data, stamp);
        state.check()
    }

    /// The I/O thread's life: writes frames until the queue is closed and empty, or a frame fails.
    pub(crate) fn run(&self) {
        let mut state = lock(&self.state);
        loop {
            let depth = state.queue.len();
            if let Some(Queued { index, stamp, data }) = state.queue.pop_front() {
                state.writing = true;
                state.taken += 1;
                state.meter.taken(depth);
                state.meter.begin_write();
                self.progress.notify_all();
                drop(state);
                state = self.write(index, &data, stamp);
                state.free.push(data);
            } else if state.closed {
                return;
            } else {
                state = wait(&self.work, state);
            }
        }
    }

    /// Writes a frame, with `writing` set and the state unlocked, and records what came of it.
    fn write(&self, index: u64, data: &[T], stamp: Stamp) -> MutexGuard<'_, State<T>> {
        let bytes = bytemuck::cast_slice(data);
        let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            lock(&self.sink).write_frame(index, bytes, stamp)
        }))
        .unwrap_or_else(|_| Err(std::io::Error::other("the writing code panicked")));
        let mut state = lock(&self.state);
        state.writing = false;
        state.meter.end_write();
        match written {
            Ok(stored) => {
                state.stored = stored.count;
                state.meter.stored(bytes.len() as u64, stored.bytes);
                state.meter.copied(stored.copied);
            }
            Err(error) => {
                let (path, stored) = (self.path.clone(), state.stored);
                state.error = Some(StoreError::Write { frame: index, path, stored, source: Arc::new(error) });
                // What is queued would leave a gap: it is given up, and whoever waits learns of it.
                while let Some(queued) = state.queue.pop_front() {
                    state.free.push(queued.data);
                }
            }
        }
        self.progress.notify_all();
        state
    }

    /// Lets the I/O thread end after what is queued.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.work.notify_all();
    }

    /// Completes the file after the I/O thread has ended, and reports any error there was.
    pub(crate) fn complete(&self) -> Result<()> {
        lock(&self.state).meter.begin_write();
        let finished = lock(&self.sink).finish();
        let mut state = lock(&self.state);
        state.meter.end_write();
        state.meter.close();
        state.check()?;
        finished.map_err(|e| StoreError::Finish {
            path: self.path.clone(),
            stored: state.stored,
            source: Arc::new(e),
        })
    }

    /// The first error, if there was one.
    pub(crate) fn check(&self) -> Result<()> {
        lock(&self.state).check()
    }
}

/// What can be learnt about a queue whatever its elements.
pub(crate) trait Observe: Send + Sync {
    fn stored(&self) -> u64;
    fn stats(&self) -> Stats;
}

impl<T: Element> Observe for Queue<T> {
    fn stored(&self) -> u64 {
        lock(&self.state).stored
    }

    fn stats(&self) -> Stats {
        lock(&self.state).meter.snapshot()
    }
}
