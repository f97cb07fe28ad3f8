//! Copies between the memory of the host and that of a device: the bodies of tasks that
//! [`prepare`](mod@super::prepare) submits, and of steps on several nodes.

#![allow(
    unsafe_code,
    reason = "a copy reads or writes the memory of a buffer, which tasks share as the graph allows it"
)]

use super::{ended_copies::End, slot::Slot};
use crate::{
    data::stored::Stored,
    device::{Batch, DeviceError, DeviceStep, Download, Run, Upload},
    error::{Cause, Failure},
    execute::{
        Body, Compute,
        task::node::{Completion, Later},
    },
};
use anabranch_grid::Region;
use anabranch_wire::{Layout, Memory, MemoryMut};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// Says that the executor runs or skips a task once.
const ONCE: &str = "a copy is begun once";

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToDevice,
    ToHost,
}

/// The body of a copy.
pub(in crate::execute) struct CopyBody {
    parts: Option<Box<Parts>>,
    /// The end, for a task of a queue: the task may end later than the work of the device.
    end: Option<End>,
}

struct Parts {
    direction: Direction,
    buffer: Arc<dyn Stored>,
    version: u32,
    region: Region<3>,
    slot: Arc<Slot>,
    /// The end, for a task of no queue: the task ends with the work of the device.
    end: Option<End>,
}

/// The end of a copy that a device has got. The closure that copies and the callback of the timeline share
/// it, and the copy ends when both are gone. So a device that says too early that a batch is done cannot
/// reach the memory of a buffer that is gone or in use.
struct Ending {
    kept: Option<Kept>,
    has_copied: AtomicBool,
    /// What the timeline says.
    result: Mutex<Option<Result<(), DeviceError>>>,
}

struct Kept {
    buffer: Arc<dyn Stored>,
    slot: Arc<Slot>,
    end: Option<End>,
    completion: Completion,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(Kept { buffer, slot, end, completion }) = self.kept.take() else { return };
        let failed = |why: &str| {
            let device = slot.device.info().name.clone();
            Err(DeviceError::Failed { device, why: why.into() })
        };
        let result = match (self.result.get_mut().take(), *self.has_copied.get_mut()) {
            (Some(Ok(())), false) => failed("it says that a copy is done, and has not made it"),
            (Some(result), _) => result,
            (None, _) => failed("it has forgotten a copy"),
        };
        // Before the task ends: a later submission that finds the task closed must know how it has ended.
        match &result {
            Ok(()) => end.into_iter().for_each(End::well),
            Err(_) => drop(end),
        }
        let result = result.map_err(|error| Cause::Error(Arc::new(error)));
        completion.finish_after(|| drop((buffer, slot)), result);
    }
}

impl CopyBody {
    pub(super) fn new(
        direction: Direction,
        (buffer, version): (Arc<dyn Stored>, u32),
        region: Region<3>,
        slot: Arc<Slot>,
        end: End,
    ) -> Self {
        let parts = Box::new(Parts { direction, buffer, version, region, slot, end: Some(end) });
        Self { parts: Some(parts), end: None }
    }

    /// The body of a task of a [queue](crate::execute::task::queued), which may end later than the work of
    /// the device, and in another way.
    pub(super) fn on_queue(mut self) -> Self {
        self.end = self.parts.as_mut().and_then(|parts| parts.end.take());
        self
    }

    /// Removes an unwritten part from the copy. It is called before the copy begins.
    pub(in crate::execute) fn leave_out(&mut self, part: &Region<3>) {
        if let Some(parts) = &mut self.parts {
            parts.region = parts.region.difference(part);
        }
    }
}

impl Body for CopyBody {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a copy is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let Parts { direction, buffer, version, region, slot, end } = *self.parts.take().expect(ONCE);
        if region.is_empty() {
            end.into_iter().for_each(End::well);
            return Ok(());
        }
        let cause = |error| Cause::from(Box::new(error));
        let memory = slot.memory().map_err(cause)?;
        let start = buffer.memory(version).map_err(cause)?;
        let bytes = buffer.bytes();
        let layouts = buffer.layouts(&region);
        let rows = layouts.iter().flat_map(Layout::rows);
        let runs = rows.map(|(offset, bytes)| Run { offset: offset as u64, bytes: bytes as u64 }).collect();
        let device = Arc::clone(&slot.device);
        let ending = Arc::new(Ending {
            kept: Some(Kept { buffer, slot, end, completion: later.completion() }),
            has_copied: AtomicBool::new(false),
            result: Mutex::new(None),
        });
        let of_step = Arc::clone(&ending);
        let step = match direction {
            Direction::ToDevice => {
                // SAFETY: the memory stays as long as the buffer, which `of_step` keeps until the closure is
                // gone. Until then the copy has not ended, and the graph lets no task write the region,
                // because the copy reads it, or with several nodes the step that comes after the copy. A
                // download that writes parts of it has ended: this copy depends on it, and it comes from
                // another device. (The device of such a download is current in these parts until another
                // memory is written, and the task that writes waits for the end of the download.)
                let from = unsafe { Memory::new(start, bytes) };
                let fill = Box::new(move |put: &mut dyn FnMut(&[u8])| {
                    layouts.iter().for_each(|layout| from.read(layout, &mut *put));
                    of_step.has_copied.store(true, Relaxed);
                });
                DeviceStep::Upload(Upload { to: memory, runs, fill })
            }
            Direction::ToHost => {
                // SAFETY: as above, and no thread reads the region in this memory until the copy has ended.
                // It is not current here: tasks that read it here and were submitted after the last writer
                // depend on this copy. Tasks that were submitted before that writer have ended, because the
                // writer begins after them and this copy after the writer; or they are copies to or from the
                // device of this copy, which calls their functions before that of this one. If the writer
                // fails after this copy has begun, what the copy writes is not current, and no task reads it.
                let to = unsafe { MemoryMut::new(start, bytes) };
                let take = Box::new(move |get: &mut dyn FnMut(&mut [u8])| {
                    for layout in &layouts {
                        // SAFETY: the memory of a buffer begins with zeros. The device has no other way to
                        // it.
                        unsafe { to.write(layout, &mut *get) };
                    }
                    of_step.has_copied.store(true, Relaxed);
                });
                DeviceStep::Download(Download { from: memory, runs, take })
            }
        };
        let value = device.submit(Batch::from([step]));
        device.timeline().on_complete(value, move |result| *ending.result.lock() = Some(result));
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.parts = None;
    }

    /// Notes the end before the task ends, as above.
    fn end(&mut self, well: bool) {
        let end = self.end.take();
        if well {
            end.into_iter().for_each(End::well);
        }
    }
}
