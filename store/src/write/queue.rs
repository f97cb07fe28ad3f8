//! The bounded queue between the producer and the I/O thread, and the frame memory that circulates through
//! it.
//!
//! A frame's memory is in one of four places: *free*, with the *producer* that fills it, in the *queue*, or
//! with the *I/O thread* that writes it. One frame for each place in the queue, one with the producer and one
//! with the I/O thread are enough, so the memory is bounded. When a frame fails, its memory and that of all
//! queued frames become free, and every thread that waits gets the error.

use crate::{
    Result, StoreError,
    element::Element,
    file::ledger::Stamp,
    write::{stats::Meter, writer::Writer},
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{collections::VecDeque, sync::Arc, time::Instant};

/// A frame that waits for the I/O thread.
struct Queued<T> {
    stamp: Stamp,
    data: Vec<T>,
}

struct State<T> {
    queue: VecDeque<Queued<T>>,
    free: Vec<Vec<T>>,
    /// Frame buffers that exist, in whichever place.
    buffers: usize,
    /// Frames that the I/O thread has taken.
    taken: u64,
    /// Frames that were put into the queue.
    put: u64,
    /// The I/O thread is writing a frame.
    writing: bool,
    /// The producer puts nothing more into the queue.
    closed: bool,
    error: Option<StoreError>,
    /// A call has returned the error to the producer.
    returned: bool,
}

/// The state that the producer and the I/O thread share.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Wakes the I/O thread: there is a frame, or the queue is closed.
    work: Condvar,
    /// Wakes the producer: there is room, free memory or an error.
    progress: Condvar,
    capacity: usize,
    frame_len: usize,
    meter: Arc<Meter>,
}

impl<T> State<T> {
    /// Returns the error to the producer, if there is one.
    fn check(&mut self) -> Result<()> {
        self.returned = self.error.is_some();
        self.error.clone().map_or(Ok(()), Err)
    }
}

impl<T: Element> Queue<T> {
    pub(super) fn new(capacity: usize, frame_len: usize, meter: Arc<Meter>) -> Self {
        meter.add_queue();
        Self {
            state: Mutex::new(State {
                queue: VecDeque::with_capacity(capacity.clamp(1, 1024)),
                free: Vec::new(),
                buffers: 0,
                taken: 0,
                put: 0,
                writing: false,
                closed: false,
                error: None,
                returned: false,
            }),
            work: Condvar::new(),
            progress: Condvar::new(),
            capacity,
            frame_len,
            meter,
        }
    }

    /// Frame memory to fill: recycled, or new as long as there is little of it.
    ///
    /// A producer that keeps all the memory to itself gets more, since it would otherwise wait for ever.
    pub(super) fn buffer(&self) -> Result<Vec<T>> {
        let enough = self.capacity + 2;
        let mut state = self.wait_until(self.state.lock(), |s| {
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
    pub(super) fn recycle(&self, buffer: Vec<T>) {
        self.state.lock().free.push(buffer);
        self.progress.notify_all();
    }

    /// Queues a frame: returns when there is room for it or, with a capacity of 0, when the I/O
    /// thread has taken it.
    pub(super) fn put(&self, data: Vec<T>, stamp: Stamp) -> Result<()> {
        let room = self.capacity.max(1);
        let mut state = match self.wait_until(self.state.lock(), |s| s.queue.len() < room) {
            Ok(state) => state,
            Err(error) => {
                self.recycle(data);
                return Err(error);
            }
        };
        state.queue.push_back(Queued { stamp, data });
        state.put += 1;
        let (ticket, depth) = (state.put, state.queue.len());
        self.meter.queued(depth);
        self.work.notify_one();
        if self.capacity == 0 {
            drop(self.wait_until(state, |s| s.taken >= ticket)?);
        }
        Ok(())
    }

    /// The producer waits until `ready` or an error, and the time counts as the producer's.
    fn wait_until<'a>(
        &self,
        mut state: MutexGuard<'a, State<T>>,
        ready: impl Fn(&State<T>) -> bool,
    ) -> Result<MutexGuard<'a, State<T>>> {
        state.check()?;
        if !ready(&state) {
            let began = Instant::now();
            while !ready(&state) && state.error.is_none() {
                self.progress.wait(&mut state);
            }
            self.meter.producer_waited(began.elapsed());
            state.check()?;
        }
        Ok(state)
    }

    /// The main loop of the I/O thread: writes frames until the queue is closed and empty.
    pub(super) fn write_to(&self, writer: &mut Writer<T>) {
        let mut state = self.state.lock();
        loop {
            let depth = state.queue.len();
            if let Some(Queued { stamp, data }) = state.queue.pop_front() {
                state.writing = true;
                state.taken += 1;
                self.meter.taken(depth);
                self.progress.notify_all();
                let written = MutexGuard::unlocked(&mut state, || writer.append(&data, stamp));
                state.writing = false;
                state.free.push(data);
                if let Err(error) = written {
                    self.fail(&mut state, error);
                }
                self.progress.notify_all();
            } else if state.closed {
                return;
            } else {
                self.work.wait(&mut state);
            }
        }
    }

    /// Gives up the queued frames, which would leave a gap after the frame that failed.
    fn fail(&self, state: &mut State<T>, error: StoreError) {
        state.error = Some(error);
        while let Some(queued) = state.queue.pop_front() {
            state.free.push(queued.data);
        }
    }

    /// Lets the I/O thread end after the queued frames.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.work.notify_all();
    }

    /// The error of the frame that failed, if one has.
    pub(super) fn check(&self) -> Result<()> {
        self.state.lock().check()
    }

    /// Whether a call has returned that error.
    pub(super) fn error_was_returned(&self) -> bool {
        self.state.lock().returned
    }
}
