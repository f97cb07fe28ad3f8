//! Which batches go together: the device thread encodes a group of batches into one submission.
//!
//! A driver takes longer for a submission than for a launch in it (60 us and 16 us on an NVIDIA H100). So a
//! group takes all batches that are there. While the device has [`AHEAD`] groups to do, the device thread
//! looks a moment longer for more, because the group would only wait in the driver. A group ends with a batch
//! that copies to the host.

use super::receive::next_or_idle;
use crate::memory::pieces;
use anabranch::device::{Batch, DeviceStep, Download, Upload};
use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::Receiver,
    },
    thread,
    time::{Duration, Instant},
};

/// The largest number of batches in a group: the first of them is done when the last one is.
const MOST: usize = 64;

/// A device that has this number of groups to do need not get another one at once. They are two, so that the
/// device still has one while the host receives the completion of the other.
const AHEAD: usize = 2;

/// How long a group then waits for its next batch: longer than a program takes to submit one, and shorter
/// than a driver takes for a submission.
const MOMENT: Duration = Duration::from_micros(50);

/// How long the device thread waits for a batch until it calls what it was given for that.
const IDLE: Duration = Duration::from_secs(1);

/// A batch, and the value of the timeline when it is done.
pub(crate) type Numbered = (u64, Batch);

/// The groups of the batches that come.
pub(super) struct Groups<'a, I> {
    batches: &'a Receiver<Numbered>,
    /// The groups that the device has to do.
    in_flight: &'a AtomicUsize,
    /// The batch that begins the next group.
    held: Option<Numbered>,
    /// What the device thread calls when no batch has come for [`IDLE`], again and again until it returns
    /// `true`.
    idle: I,
}

impl<'a, I: Fn() -> bool> Groups<'a, I> {
    pub(super) fn new(batches: &'a Receiver<Numbered>, in_flight: &'a AtomicUsize, idle: I) -> Self {
        Self { batches, in_flight, held: None, idle }
    }

    /// A batch that is there, or comes in a moment while the device has enough to do.
    fn another(&self) -> Option<Numbered> {
        let begin = Instant::now();
        loop {
            let batch = self.batches.try_recv().ok();
            // Relaxed: nothing else depends on it.
            let is_busy = self.in_flight.load(Ordering::Relaxed) >= AHEAD;
            if batch.is_some() || !is_busy || begin.elapsed() >= MOMENT {
                return batch;
            }
            thread::yield_now();
        }
    }
}

impl<I: Fn() -> bool> Iterator for Groups<'_, I> {
    type Item = Vec<Numbered>;

    /// Waits for batches, until no more can come.
    fn next(&mut self) -> Option<Vec<Numbered>> {
        let mut group = vec![self.held.take().or_else(|| next_or_idle(self.batches, IDLE, &self.idle))?];
        while group.len() < MOST && !group.last().is_some_and(|(_, batch)| ends(batch)) {
            let Some(batch) = self.another() else { break };
            if is_large(&batch.1) {
                self.held = Some(batch);
                break;
            }
            group.push(batch);
        }
        Some(group)
    }
}

/// Whether a batch is the last one of its group. What comes behind must not delay bytes that the host waits
/// for.
fn ends(batch: &Batch) -> bool {
    batch.steps.iter().any(|step| matches!(step, DeviceStep::Download(_))) || is_large(batch)
}

/// Whether a batch copies in several pieces. Such a batch goes alone: its pieces are submitted before it
/// ends.
fn is_large(batch: &Batch) -> bool {
    batch.steps.iter().any(|step| match step {
        DeviceStep::Upload(Upload { runs, .. }) | DeviceStep::Download(Download { runs, .. }) => {
            pieces::is_large(runs)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch::device::{DeviceMemory, Run};
    use std::sync::mpsc;
    use testing::deadline;

    fn memory() -> DeviceMemory {
        DeviceMemory::new(1 << 30, ())
    }

    fn runs(bytes: u64) -> Vec<Run> {
        vec![Run { offset: 0, bytes }]
    }

    /// A batch that copies this number of bytes to the device.
    fn upload(bytes: u64) -> Batch {
        let fill = Box::new(|_: &mut dyn FnMut(&[u8])| ());
        Batch::from([DeviceStep::Upload(Upload { to: memory(), runs: runs(bytes), fill })])
    }

    /// A batch that copies this number of bytes from the device.
    fn download(bytes: u64) -> Batch {
        let take = Box::new(|_: &mut dyn FnMut(&mut [u8])| ());
        Batch::from([DeviceStep::Download(Download { from: memory(), runs: runs(bytes), take })])
    }

    const LARGE: u64 = 64 << 20;

    /// The numbers of the batches of each group.
    fn numbers(groups: Groups<'_, impl Fn() -> bool>) -> Vec<Vec<u64>> {
        groups.map(|group| group.into_iter().map(|(number, _)| number).collect()).collect()
    }

    #[test]
    fn batches_that_are_there_go_together_until_one_copies_to_the_host() {
        let _deadline = deadline();
        for in_flight in [0, AHEAD] {
            let (send, batches) = mpsc::channel();
            let all = [
                upload(4),
                upload(4),
                download(4),
                upload(4),
                upload(LARGE),
                upload(4),
                download(LARGE),
                upload(4),
            ];
            (1..).zip(all).for_each(|batch| send.send(batch).unwrap());
            drop(send);
            let groups = numbers(Groups::new(&batches, &AtomicUsize::new(in_flight), || true));
            assert_eq!(groups, [vec![1, 2, 3], vec![4], vec![5], vec![6], vec![7], vec![8]]);
        }
    }

    #[test]
    fn a_group_has_a_largest_number_of_batches() {
        let _deadline = deadline();
        let (send, batches) = mpsc::channel();
        (0..MOST as u64 + 2).for_each(|number| send.send((number, upload(4))).unwrap());
        drop(send);
        let in_flight = AtomicUsize::new(0);
        let lengths = Groups::new(&batches, &in_flight, || true).map(|group| group.len()).collect::<Vec<_>>();
        assert_eq!(lengths, [MOST, 2]);
    }

    #[test]
    fn a_group_waits_for_more_only_while_the_device_has_enough_to_do_and_not_for_long() {
        let _deadline = deadline();
        let (send, batches) = mpsc::channel();
        let in_flight = AtomicUsize::new(AHEAD);
        let mut groups = Groups::new(&batches, &in_flight, || true);
        let mut group_of = |number| {
            send.send((number, upload(4))).unwrap();
            let begin = Instant::now();
            assert_eq!(groups.next().map(|group| group.len()), Some(1));
            begin.elapsed()
        };
        // Nothing else comes, and nothing tells the device thread so.
        assert!(group_of(1) >= MOMENT);
        // The thread may lose its processor now and then.
        in_flight.store(AHEAD - 1, Ordering::Relaxed);
        assert!((2..1000).any(|number| group_of(number) < MOMENT), "each group has waited");
    }
}
