//! The thread of a simulated device, and what it shares with the handle.
//!
//! # Protocol
//! 1. A submission takes the lock of the queue, gets the value of its batch and queues both. So the queue has
//!    the order of the values.
//! 2. The thread takes the first batch and does it without the lock. It drops what is left of the batch,
//!    counts, and reports on the timeline that the batch is done, in this order: a thread that sees a batch
//!    done finds its memory free and its functions gone.
//! 3. When the device is to be lost, the thread sets `is_lost` under the lock, takes the queue and drops it.
//!    Only then it reports the loss to the timeline. A submission that finds `is_lost` drops its batch before
//!    it gets a value.
//! 4. The handle sets `is_closed` when it is dropped. The thread does what is in the queue, without delays,
//!    and ends.

use super::{
    launch,
    memory::{Block, Ledger},
    settings::Settings,
};
use crate::{
    device::{Batch, DeviceError, DeviceStep, Download, Timeline, Upload},
    random::Random,
};
use anabranch_kernel::Memory;
use anabranch_par::{Patience, discard_payload};
use parking_lot::{Condvar, Mutex};
use std::{
    any::Any,
    collections::VecDeque,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

/// What the thread and the handle share.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) timeline: Timeline,
    pub(super) ledger: Arc<Ledger>,
    queue: Mutex<Queue>,
    /// The queue has a batch, or is closed.
    change: Condvar,
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<(u64, Batch)>,
    is_closed: bool,
    is_lost: bool,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            timeline: Timeline::new(settings.name.clone()),
            settings,
            ledger: Arc::default(),
            queue: Mutex::default(),
            change: Condvar::new(),
        }
    }

    pub(super) fn refuse_if_lost(&self) -> Result<(), DeviceError> {
        self.timeline.is_lost().map_or(Ok(()), Err)
    }

    pub(super) fn submit(&self, batch: Batch) -> u64 {
        {
            let mut queue = self.queue.lock();
            if !queue.is_lost {
                let value = self.timeline.begin();
                queue.batches.push_back((value, batch));
                self.change.notify_all();
                return value;
            }
        }
        drop(batch);
        self.timeline.begin()
    }

    pub(super) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.change.notify_all();
    }

    /// Does batches until the handle is gone.
    pub(super) fn run(&self) {
        let mut worker =
            Worker { shared: self, memory: Memory::default(), random: Random::new(self.settings.seed) };
        let mut last = 0;
        while let Some((value, batch)) = self.next(last) {
            last = value;
            if self.settings.lost_after.is_some_and(|last| value > last) {
                return self.lose(batch);
            }
            if let Err(why) = worker.execute(value, batch) {
                let device = self.settings.name.clone();
                self.ledger.count(|counts| counts.failed += 1);
                self.timeline.fail(value, DeviceError::Failed { device, why });
            }
            self.timeline.advance(value);
        }
    }

    /// The batch after the `last` one; `None` if the handle is gone. The thread spins a little before it
    /// sleeps: a thread that submits batch after batch need not wake it for each of them, which takes longer
    /// than all else of a submission.
    fn next(&self, last: u64) -> Option<(u64, Batch)> {
        let mut patience = Patience::new();
        while self.timeline.submitted() == last && patience.pause() {}
        let mut queue = self.queue.lock();
        self.change.wait_while(&mut queue, |queue| queue.batches.is_empty() && !queue.is_closed);
        queue.batches.pop_front()
    }

    fn lose(&self, batch: Batch) {
        let batches = {
            let mut queue = self.queue.lock();
            queue.is_lost = true;
            mem::take(&mut queue.batches)
        };
        let _ = catching(|| {
            drop((batch, batches));
            Ok(())
        });
        self.timeline.lose("a test wants it so");
    }

    /// Waits for some time, or until the handle is gone.
    fn delay(&self, delay: Duration) {
        let mut queue = self.queue.lock();
        self.change.wait_while_for(&mut queue, |queue| !queue.is_closed, delay);
    }
}

/// The state of the thread.
struct Worker<'a> {
    shared: &'a Shared,
    memory: Memory,
    random: Random,
}

impl Worker<'_> {
    /// Does a batch, and drops what is left of it. Says why it has failed.
    fn execute(&mut self, value: u64, batch: Batch) -> Result<(), String> {
        catching(|| {
            if self.shared.settings.failing_batches.contains(&value) {
                return Err(format!("batch {value} is to fail"));
            }
            batch.steps.into_iter().try_for_each(|step| self.step(step))
        })
    }

    fn step(&mut self, step: DeviceStep) -> Result<(), String> {
        let longest = self.shared.settings.longest_delay;
        if !longest.is_zero() {
            let nanos = self.random.below(longest.as_nanos().try_into().unwrap_or(usize::MAX));
            self.shared.delay(Duration::from_nanos(nanos as u64));
        }
        let ledger = &self.shared.ledger;
        match step {
            DeviceStep::Upload(upload) => self.upload(upload),
            DeviceStep::Download(download) => self.download(download),
            DeviceStep::Launch(launch) => {
                launch::run(&launch, ledger, &mut self.memory)?;
                ledger.count(|counts| counts.launches += 1);
                Ok(())
            }
        }
    }

    fn upload(&self, upload: Upload) -> Result<(), String> {
        let Upload { to, runs, fill } = upload;
        let ledger = &self.shared.ledger;
        let block = Block::of(&to, ledger)?;
        let (ranges, total) = block.ranges(&runs)?;
        let mut new = Vec::with_capacity(total);
        // The function may call the device: no lock is held.
        fill(&mut |bytes| new.extend_from_slice(bytes));
        if new.len() != total {
            return Err(format!("a copy of {total} bytes was given {}", new.len()));
        }
        let mut words = block.words();
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let mut done = 0;
        for range in ranges {
            let end = done + range.len();
            bytes[range].copy_from_slice(&new[done..end]);
            done = end;
        }
        ledger.count(|counts| {
            counts.uploads += 1;
            counts.bytes_up += total as u64;
        });
        Ok(())
    }

    fn download(&self, download: Download) -> Result<(), String> {
        let Download { from, runs, take } = download;
        let ledger = &self.shared.ledger;
        let block = Block::of(&from, ledger)?;
        let (ranges, total) = block.ranges(&runs)?;
        let mut staged = Vec::with_capacity(total);
        {
            let words = block.words();
            let bytes: &[u8] = bytemuck::cast_slice(&words);
            ranges.into_iter().for_each(|range| staged.extend_from_slice(&bytes[range]));
        }
        let (mut rest, mut asked) = (&staged[..], 0);
        take(&mut |bytes| {
            asked += bytes.len();
            if let Some((these, others)) = rest.split_at_checked(bytes.len()) {
                bytes.copy_from_slice(these);
                rest = others;
            }
        });
        if asked > total {
            return Err(format!("{asked} bytes were taken of a copy of {total}"));
        }
        ledger.count(|counts| {
            counts.downloads += 1;
            counts.bytes_down += total as u64;
        });
        Ok(())
    }
}

/// Calls a function. A panic is an error.
fn catching(f: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let why = format!("it has panicked: {}", message(&*payload));
        discard_payload(payload);
        Err(why)
    })
}

/// The message of a panic.
fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}
