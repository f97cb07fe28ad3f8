//! Which batches go together: the device thread encodes a group of batches into one submission.
//!
//! A driver takes longer for a submission than for a launch in it (60 us and 16 us on an NVIDIA H100). So a group takes all batches that are there. While the
//! device has [`AHEAD`] submissions before it, the group stays open for more: it could not begin yet. A group ends with a batch that the host waits for.

use super::receive::next;
use crate::memory::copies;
use anabranch::device::{Batch, DeviceStep, Download, Upload};
use std::sync::mpsc::Receiver;

/// The most batches of a group: the first of them is done when the last one is.
const MOST: usize = 64;

/// While the device has so many submissions, another one need not go at once. It takes two, so that the device always has one while the end of the other
/// gets known and the next one is encoded.
const AHEAD: usize = 2;

/// A batch, and the value of the timeline when it is done.
pub(crate) type Numbered = (u64, Batch);

/// What the device thread gets.
pub(crate) enum Message {
    Batch(Numbered),
    /// The device has done a group, which the completion thread says.
    Done,
    /// No batch comes any more.
    Close,
}

/// The groups of the batches that come.
pub(super) struct Groups<'a> {
    messages: &'a Receiver<Message>,
    /// The batch that begins the next group.
    held: Option<Numbered>,
    /// The groups that the device has not done.
    in_flight: usize,
    is_closed: bool,
}

impl<'a> Groups<'a> {
    pub(super) fn new(messages: &'a Receiver<Message>) -> Self {
        Self { messages, held: None, in_flight: 0, is_closed: false }
    }

    /// The first batch of a group, for which this waits.
    fn first(&mut self) -> Option<Numbered> {
        while self.held.is_none() && !self.is_closed {
            let message = next(self.messages, || ());
            self.held = self.receive(message);
        }
        self.held.take()
    }

    /// The batch of a message.
    fn receive(&mut self, message: Option<Message>) -> Option<Numbered> {
        match message {
            Some(Message::Batch(batch)) => return Some(batch),
            Some(Message::Done) => self.in_flight -= 1,
            Some(Message::Close) | None => self.is_closed = true,
        }
        None
    }
}

impl Iterator for Groups<'_> {
    type Item = Vec<Numbered>;

    /// Waits for batches, until no more can come.
    fn next(&mut self) -> Option<Vec<Numbered>> {
        let mut group = vec![self.first()?];
        while !self.is_closed && group.len() < MOST && !group.last().is_some_and(|(_, batch)| ends(batch)) {
            let message = if self.in_flight < AHEAD {
                let Ok(message) = self.messages.try_recv() else { break };
                Some(message)
            } else {
                self.messages.recv().ok()
            };
            match self.receive(message) {
                Some(batch) if is_large(&batch.1) => {
                    self.held = Some(batch);
                    break;
                }
                batch => group.extend(batch),
            }
        }
        self.in_flight += 1;
        Some(group)
    }
}

/// Whether a batch is the last one of its group. What comes behind must not delay bytes that the host waits for.
fn ends(batch: &Batch) -> bool {
    batch.steps.iter().any(|step| matches!(step, DeviceStep::Download(_))) || is_large(batch)
}

/// Whether a batch copies in several pieces. Such a batch goes alone: its pieces are submitted before it ends.
fn is_large(batch: &Batch) -> bool {
    batch.steps.iter().any(|step| match step {
        DeviceStep::Upload(Upload { runs, .. }) | DeviceStep::Download(Download { runs, .. }) => {
            copies::is_large(runs)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::{super::receive::SPIN, *};
    use anabranch::device::{DeviceMemory, Run};
    use std::{sync::mpsc, thread};
    use testing::deadline;

    fn memory() -> DeviceMemory {
        DeviceMemory::new(1 << 30, ())
    }

    fn runs(bytes: u64) -> Vec<Run> {
        vec![Run { offset: 0, bytes }]
    }

    /// A batch that copies so many bytes to the device.
    fn upload(bytes: u64) -> Batch {
        let fill = Box::new(|_: &mut dyn FnMut(&[u8])| ());
        Batch { steps: vec![DeviceStep::Upload(Upload { to: memory(), runs: runs(bytes), fill })] }
    }

    /// A batch that copies so many bytes from the device.
    fn download(bytes: u64) -> Batch {
        let take = Box::new(|_: &mut dyn FnMut(&mut [u8])| ());
        Batch { steps: vec![DeviceStep::Download(Download { from: memory(), runs: runs(bytes), take })] }
    }

    const LARGE: u64 = 64 << 20;

    /// The numbers of the batches of a group.
    fn numbers(group: Option<Vec<Numbered>>) -> Vec<u64> {
        group.into_iter().flatten().map(|(number, _)| number).collect()
    }

    #[test]
    fn batches_that_are_there_go_together_until_the_host_waits_for_one() {
        let _deadline = deadline();
        let (send, messages) = mpsc::channel();
        let batches = [
            upload(4),
            upload(4),
            download(4),
            upload(4),
            upload(LARGE),
            upload(4),
            download(LARGE),
            upload(4),
        ];
        for (number, batch) in (1..).zip(batches) {
            send.send(Message::Batch((number, batch))).unwrap();
            // So that no group stays open.
            send.send(Message::Done).unwrap();
        }
        send.send(Message::Close).unwrap();
        let groups = Groups { in_flight: 8, ..Groups::new(&messages) };
        let groups = groups.map(|group| numbers(Some(group))).collect::<Vec<_>>();
        assert_eq!(groups, [vec![1, 2, 3], vec![4], vec![5], vec![6], vec![7], vec![8]]);
    }

    #[test]
    fn a_group_has_a_largest_number_of_batches() {
        let _deadline = deadline();
        let (send, messages) = mpsc::channel();
        for number in 0..MOST as u64 + 2 {
            send.send(Message::Batch((number, upload(4)))).unwrap();
        }
        send.send(Message::Close).unwrap();
        let lengths = Groups::new(&messages).map(|group| group.len()).collect::<Vec<_>>();
        assert_eq!(lengths, [MOST, 2]);
    }

    #[test]
    fn a_group_stays_open_while_the_device_has_others() {
        let _deadline = deadline();
        let (send, messages) = mpsc::channel();
        let (group, grouped) = mpsc::channel();
        let batch = |number| send.send(Message::Batch((number, upload(4)))).unwrap();
        let grouping = thread::spawn(move || {
            Groups::new(&messages).for_each(|of| group.send(numbers(Some(of))).unwrap());
        });
        // The device is idle, then it has one group: a batch does not wait.
        for number in [1, 2] {
            batch(number);
            assert_eq!(grouped.recv().unwrap(), [number]);
        }
        for number in [3, 4, 5] {
            batch(number);
            assert!(grouped.recv_timeout(5 * SPIN).is_err(), "a group with batch {number} has not waited");
        }
        send.send(Message::Done).unwrap();
        assert_eq!(grouped.recv().unwrap(), [3, 4, 5]);
        send.send(Message::Close).unwrap();
        grouping.join().unwrap();
    }

    #[test]
    fn an_open_group_goes_with_a_batch_that_the_host_waits_for_and_at_the_end() {
        let _deadline = deadline();
        let (send, messages) = mpsc::channel();
        let mut groups = Groups { in_flight: AHEAD, ..Groups::new(&messages) };
        for (number, batch) in
            [(1, upload(4)), (2, download(4)), (3, upload(4)), (4, upload(LARGE)), (5, upload(4))]
        {
            send.send(Message::Batch((number, batch))).unwrap();
        }
        // Nothing is done, and nothing waits for that.
        for group in [&[1, 2][..], &[3], &[4]] {
            assert_eq!(numbers(groups.next()), group);
        }
        send.send(Message::Close).unwrap();
        assert_eq!(numbers(groups.next()), [5]);
        assert!(groups.next().is_none());
    }
}
