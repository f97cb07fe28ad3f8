//! The names of transfers and of what waits for them.

use crate::MpiComm;
use std::fmt;

/// The name of a transfer, the same on both sides.
///
/// At any time a node has at most one transfer of each name to receive. The three numbers mean what the
/// program wants; the words are those of its first user.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Tag {
    /// The task that needs the bytes.
    pub task: u64,
    /// The buffer that they belong to.
    pub buffer: u64,
    /// What they are, of several things that one task needs of one buffer.
    pub kind: u16,
}

impl Tag {
    /// A name.
    pub const fn new(task: u64, buffer: u64, kind: u16) -> Self {
        Self { task, buffer, kind }
    }

    /// The only name that a program must not use.
    pub const FINISH: Self = Self::new(u64::MAX, u64::MAX, u16::MAX);
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the transfer of kind {} of buffer {} for task {}", self.kind, self.buffer, self.task)
    }
}

/// Names something that is under way at one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ticket(pub(crate) u64);

/// Whether what was begun is over already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the memory is in use until `Event::Done` if the answer is `Later`"]
pub enum Begun {
    /// It is over, and there was no note: there will be no event.
    Done,
    /// An [`Event::Done`] with this ticket will come.
    Later(Ticket),
}

/// What [`Endpoint::poll`](crate::Endpoint::poll) reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// What has this ticket is over: what was expected is in place, or the memory of what was sent is free.
    Done(Ticket),
    /// All bytes of a part of what was [expected](crate::Endpoint::expect_parts) are in place, and some of
    /// the others are not. This comes before the [`Done`](Self::Done) of the same ticket.
    Part {
        /// What was begun.
        ticket: Ticket,
        /// The number of the part.
        part: usize,
    },
    /// A node has given a note in place of some of what was expected, or of its part of a gather. This comes
    /// before the [`Done`](Self::Done) of the same ticket.
    Note {
        /// What was begun.
        ticket: Ticket,
        /// The node that has given the note.
        node: u16,
        /// The bytes of the note.
        note: Vec<u8>,
    },
    /// A [communicator](crate::Endpoint::make_communicator) is made.
    Communicator(MpiComm),
    /// A message from another node. The messages of one node come in the order in which it posted them.
    Post {
        /// The sender.
        from: u16,
        /// What it posted.
        message: Vec<u8>,
    },
}

/// A tag and the step of a collective pattern; 0 for transfers of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub tag: Tag,
    pub step: u8,
}

/// What waits for the end of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// The program.
    Program(Ticket),
    /// A collective pattern, for what it receives in this step.
    Step(Ticket, u8),
    /// A collective pattern, for something that it sent.
    Sent(Ticket),
}
