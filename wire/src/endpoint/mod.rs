//! One node's end of the wire: what a program uses.
//!
//! # How a message goes
//! 1. A transfer is sent in messages, or announced by one (`outbox`, `header`). What leaves goes through the
//!    [`Link`].
//! 2. [`Endpoint::poll`] reads what has arrived. A message waits for its expectation, or its expectation is
//!    there already (`inbox`); an announcement makes this node take the bytes into their place.
//! 3. When the last byte of a part of an expectation is there, the program gets an event (`parts`).
//! 4. When the last byte of an expectation is there, its owner goes on: the program gets an event, a
//!    collective pattern sends its next messages (`collective`).
//!
//! How an endpoint ends, and what the other nodes see then, is in `end`.

mod collective;
mod end;
mod flow_control;
mod header;
mod heartbeat;
mod inbox;
mod link;
mod notes;
mod options;
mod outbox;
mod parts;
mod patterns;
mod posts;
mod transfers_in_place;

use crate::{
    Layout, Memory, MemoryMut, Place, Tag, Transport, WireError,
    tag::{Begun, Event, Key, Owner, Ticket},
    transport::Arrival,
};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

use self::{
    collective::Collective,
    header::{Header, Kind},
    heartbeat::{Due, Heartbeat},
    inbox::Inbox,
    link::Link,
    notes::Note,
    outbox::{Outbox, Parcel},
    parts::Parts,
    posts::Posts,
};

/// The largest [`post`](Endpoint::post), in bytes.
pub const POST: usize = header::PAYLOAD;

/// The largest [note](Endpoint::send_note), in bytes.
pub const NOTE: usize = notes::NOTE;

pub use self::options::Options;

/// One node's end of the wire.
///
/// Nothing here waits for another node, except [`finish`](Self::finish). What is begun makes progress when
/// [`poll`](Self::poll) is called, from any thread.
///
/// ```
/// use anabranch_wire::{Begun, Event, Layout, MemoryMut, Memory, Pace, Tag, local::Network};
///
/// let sums = Network::new(2).run(|mut wire| {
///     let (mine, mut theirs) = ([1_u64 + u64::from(wire.place().node)], [0_u64]);
///     let other = 1 - wire.place().node;
///     let tag = Tag::new(7, 0, 0);
///     // SAFETY: both arrays live, untouched, until the transfers are done.
///     let (from, into) = unsafe {
///         (Memory::new(mine.as_ptr().cast(), 8), MemoryMut::new(theirs.as_mut_ptr().cast(), 8))
///     };
///     // Either side may come first.
///     let arrival = wire.expect(tag, into, 8)?;
///     let _ = wire.send(other, tag, from, &[Layout::contiguous(0, 8)])?;
///     let (mut events, mut pace) = (Vec::new(), Pace::new());
///     if let Begun::Later(ticket) = arrival {
///         while !events.contains(&Event::Done(ticket)) {
///             pace.after(wire.poll(&mut events)?);
///         }
///     }
///     wire.finish()?;
///     Ok::<_, anabranch_wire::WireError>(mine[0] + theirs[0])
/// });
/// assert_eq!(sums, [Ok(3), Ok(3)]);
/// ```
pub struct Endpoint {
    link: Link,
    inbox: Inbox,
    outbox: Outbox,
    posts: Posts,
    collectives: FxHashMap<Ticket, Collective>,
    /// Events for the next poll: of transfers that had complete parts, or were complete with notes, when they
    /// began.
    due: Vec<Event>,
    /// The first message that does not fit what is expected, and when it came.
    wrong: Option<(WireError, Instant)>,
    heartbeat: Heartbeat,
    next_ticket: u64,
    /// Communicators that are being made.
    communicators: usize,
    /// Reused by `poll`.
    arrivals: Vec<Arrival>,
    state: State,
}

enum State {
    Open,
    Finished,
    Failed(WireError),
}

impl Endpoint {
    /// This node's end of a network.
    pub fn new(transport: impl Transport + 'static, options: &Options) -> Self {
        Self::boxed(Box::new(transport), options)
    }

    pub(crate) fn boxed(transport: Box<dyn Transport>, options: &Options) -> Self {
        let link = Link::new(transport);
        let nodes = link.place.nodes;
        Self {
            heartbeat: Heartbeat::new(link.place, options.timeout, Instant::now()),
            link,
            inbox: Inbox::default(),
            wrong: None,
            outbox: Outbox::new(options.eager.min(header::PAYLOAD)),
            posts: Posts::new(nodes),
            collectives: FxHashMap::default(),
            due: Vec::new(),
            next_ticket: 0,
            communicators: 0,
            arrivals: Vec::new(),
            state: State::Open,
        }
    }

    /// Which node this is, and of how many.
    pub fn place(&self) -> Place {
        self.link.place
    }

    /// How often [`poll`](Self::poll) must be called, at least, so that the other nodes do not lose this one.
    pub fn interval(&self) -> Option<Duration> {
        self.heartbeat.interval()
    }

    /// Whether a transfer or a pattern of this node is under way, or a communicator is being made.
    pub fn is_busy(&self) -> bool {
        let is_idle = self.outbox.is_empty() && self.inbox.is_empty() && self.collectives.is_empty();
        !(is_idle && self.due.is_empty() && self.wrong.is_none() && self.communicators == 0)
    }

    /// Sends the bytes of the layouts to the node that expects them under this tag, from `memory`.
    ///
    /// Several calls, also of several nodes, may send parts of what one node expects. Without layouts nothing
    /// is sent.
    ///
    /// # Errors
    /// An argument that is wrong is refused. Otherwise the communication has failed.
    pub fn send(
        &mut self,
        to: u16,
        tag: Tag,
        memory: Memory,
        layouts: &[Layout],
    ) -> Result<Begun, WireError> {
        self.check_open()?;
        self.check_node(to)?;
        check_layouts(tag, layouts, |layout| memory.holds(layout))?;
        let ticket = self.ticket();
        let key = Key { tag, step: 0 };
        let parcel = Parcel { to, key, tokens: 0, memory, owner: Owner::Program(ticket) };
        match self.outbox.send(&mut self.link, parcel, layouts) {
            Ok(done) => Ok(begun(done, ticket)),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Sends a note of at most [`NOTE`] bytes in place of `bytes` bytes, to the node that expects them under
    /// this tag.
    ///
    /// The receiver gets it as an [`Event::Note`]. The note counts as the bytes: what is expected is over
    /// when all of it has come, as bytes or as notes.
    ///
    /// # Errors
    /// An argument that is wrong is refused. Otherwise the communication has failed.
    pub fn send_note(&mut self, to: u16, tag: Tag, bytes: usize, note: &[u8]) -> Result<(), WireError> {
        self.check_open()?;
        self.check_node(to)?;
        check_note(note)?;
        if bytes == 0 {
            // The receiver expects nothing.
            return Ok(());
        }
        let note = Note { node: self.place().node, bytes: bytes as u64, text: note.to_vec() };
        notes::send(&mut self.link, to, Key { tag, step: 0 }, 0, &[note]).map_err(|error| self.fail(error))
    }

    /// Expects `bytes` bytes under this tag, from any nodes, in `memory`. Senders may give
    /// [notes](Self::send_note) in place of some of them.
    ///
    /// # Errors
    /// [`WireError::Repeated`] if the tag is expected already. Otherwise the communication has failed.
    pub fn expect(&mut self, tag: Tag, memory: MemoryMut, bytes: usize) -> Result<Begun, WireError> {
        self.expect_with(tag, memory, bytes, None)
    }

    /// Expects the bytes of all parts under this tag, as [`expect`](Self::expect) does. The bytes of the
    /// parts are disjoint. A part whose bytes are in place while others are not is reported by an
    /// [`Event::Part`].
    ///
    /// # Errors
    /// See [`expect`](Self::expect).
    pub fn expect_parts(
        &mut self,
        tag: Tag,
        memory: MemoryMut,
        parts: &[Vec<Layout>],
    ) -> Result<Begun, WireError> {
        for layouts in parts {
            check_layouts(tag, layouts, |layout| memory.holds(layout))?;
        }
        let bytes = parts.iter().flatten().map(Layout::bytes).sum();
        self.expect_with(tag, memory, bytes, Some(Parts::new(parts)))
    }

    fn expect_with(
        &mut self,
        tag: Tag,
        memory: MemoryMut,
        bytes: usize,
        parts: Option<Parts>,
    ) -> Result<Begun, WireError> {
        self.check_open()?;
        let key = Key { tag, step: 0 };
        if self.inbox.expects(&key) {
            return Err(WireError::Repeated { tag });
        }
        let ticket = self.ticket();
        let expected = self.inbox.expect(&mut self.link, key, bytes, memory, parts, Owner::Program(ticket));
        self.inbox.report_parts(&mut self.due);
        match expected {
            Ok(Some(notes)) => Ok(self.begun_with(notes, ticket)),
            Ok(None) => Ok(Begun::Later(ticket)),
            Err(error) => match self.is_wrong(error) {
                Ok(()) => Ok(Begun::Later(ticket)),
                Err(error) => Err(self.fail(error)),
            },
        }
    }

    /// Keeps the error of a message that does not fit what is expected. The transfer or pattern of that
    /// message never ends. The endpoint fails [later](GRACE).
    ///
    /// # Errors
    /// Any other error.
    fn is_wrong(&mut self, error: WireError) -> Result<(), WireError> {
        match error {
            WireError::Malformed { .. } => {
                self.wrong.get_or_insert_with(|| (error, Instant::now()));
                Ok(())
            }
            other => Err(other),
        }
    }

    /// What was begun is over already, with these notes.
    fn begun_with(&mut self, notes: Vec<Note>, ticket: Ticket) -> Begun {
        if notes.is_empty() {
            return Begun::Done;
        }
        report(ticket, notes, &mut self.due);
        Begun::Later(ticket)
    }

    /// Sends a small message, at most [`POST`] bytes, which the other node gets as an [`Event::Post`].
    ///
    /// # Errors
    /// An argument that is wrong is refused. Otherwise the communication has failed.
    pub fn post(&mut self, to: u16, message: &[u8]) -> Result<(), WireError> {
        self.check_open()?;
        self.check_node(to)?;
        if message.len() > POST {
            return Err(WireError::LongPost { bytes: message.len(), limit: POST });
        }
        let number = self.posts.number(to);
        self.link.control(to, Kind::Post, number, message).map_err(|error| self.fail(error))
    }

    /// Begins to make a communicator of all nodes, for MPI calls of the program. Returns whether there will
    /// be one: `false` if the transport is not MPI. [`Event::Communicator`] then brings it. All nodes must
    /// call this in the same order. The communicator is freed when this endpoint [finishes](Self::finish). An
    /// error in a call of MPI ends all processes, unless the program gives the communicator another handler.
    ///
    /// # Errors
    /// [`WireError::OneThreadAtATime`] unless the first endpoint of this process was connected with
    /// [`Options::communicators`], or the program has initialised MPI with `MPI_THREAD_MULTIPLE`: nothing is
    /// begun then. If the communication has failed.
    pub fn make_communicator(&mut self) -> Result<bool, WireError> {
        self.check_open()?;
        match self.link.transport.make_communicator() {
            Ok(begun) => {
                self.communicators += usize::from(begun);
                Ok(begun)
            }
            Err(refused @ WireError::OneThreadAtATime { .. }) => Err(refused),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Makes progress, and appends what has happened. The answer is for [`Pace::after`](crate::Pace::after):
    /// whether anything has happened, or large transfers move and need more polls, for at most 1 ms and the
    /// time that they take at 500 MB/s.
    ///
    /// # Errors
    /// If the communication has failed; then every later call fails in the same way.
    pub fn poll(&mut self, events: &mut Vec<Event>) -> Result<bool, WireError> {
        self.check_open()?;
        self.advance(events).map_err(|error| self.fail(error))
    }

    fn advance(&mut self, events: &mut Vec<Event>) -> Result<bool, WireError> {
        let before = events.len();
        events.append(&mut self.due);
        let mut arrivals = std::mem::take(&mut self.arrivals);
        self.link.transport.poll(&mut arrivals)?;
        let any = !arrivals.is_empty();
        let now = if self.heartbeat.is_watching() { Some(Instant::now()) } else { None };
        for arrival in arrivals.drain(..) {
            let over = match arrival {
                Arrival::Put(number) => {
                    self.outbox.put(&mut self.link, number)?.map(|owner| (owner, Vec::new()))
                }
                Arrival::Got(name) => self.inbox.got(name),
                Arrival::Communicator(comm) => {
                    self.communicators -= 1;
                    events.push(Event::Communicator(comm));
                    None
                }
                Arrival::Message(message) => {
                    let over = self.read(&message, now, events)?;
                    self.link.transport.recycle(message);
                    over
                }
            };
            self.inbox.report_parts(events);
            if let Some((owner, notes)) = over {
                self.ended(owner, notes, events)?;
            }
        }
        self.arrivals = arrivals;
        if let Some((error, came)) = &self.wrong
            && came.elapsed() >= if any { 10 * GRACE } else { GRACE }
        {
            return Err(error.clone());
        }
        match now.map_or(Due::Nothing, |now| self.heartbeat.due(now)) {
            Due::Nothing => {}
            Due::Beat => self.link.control(self.heartbeat.successor, Kind::Beat, 0, &[])?,
            Due::Lost(silence) => return Err(WireError::Lost { node: self.heartbeat.predecessor, silence }),
        }
        Ok(any || events.len() > before || self.hurries())
    }

    /// Whether transfers in place move.
    fn hurries(&mut self) -> bool {
        let in_place = &mut self.link.in_place;
        if !in_place.is_any() {
            return false;
        }
        if self.inbox.is_taking() || self.outbox.is_offering() {
            return in_place.hurries(Instant::now());
        }
        in_place.end();
        false
    }

    /// Reads a message. The answer is the owner of what is complete by it, and the notes.
    fn read(
        &mut self,
        message: &[u8],
        now: Option<Instant>,
        events: &mut Vec<Event>,
    ) -> Result<Option<(Owner, Vec<Note>)>, WireError> {
        let header = Header::read(message).ok_or_else(|| Link::malformed(u16::MAX, "no header"))?;
        let Header { from, kind, number, .. } = header;
        if from >= self.link.place.nodes {
            return Err(Link::malformed(from, "the sender does not exist"));
        }
        self.link.flow_control.returned(from, header.credit);
        if let Some(now) = now
            && from == self.heartbeat.predecessor
        {
            self.heartbeat.heard(now);
        }
        let payload = header.payload_of(message);
        match kind {
            Kind::Data | Kind::Announcement | Kind::Note => {
                let arrived = self.inbox.arrived(&mut self.link, &header, message);
                return arrived.or_else(|error| self.is_wrong(error).map(|()| None));
            }
            Kind::Post => self.posts.arrived(from, number, payload.to_vec(), events),
            Kind::Taking => {
                let bytes = payload.try_into().map_or(0, u64::from_le_bytes);
                self.link.in_place.begin(bytes, Instant::now());
            }
            Kind::Credit | Kind::Beat => {}
            Kind::Finished => self.heartbeat.forget(),
            Kind::Left => return Err(WireError::Left { node: from, panicked: number != 0 }),
            Kind::Aborted => {
                let why = String::from_utf8_lossy(payload).into_owned();
                return Err(WireError::Aborted { node: from, why });
            }
            Kind::Lost => {
                let milliseconds = payload.try_into().map_or(0, u64::from_le_bytes);
                let silence = Duration::from_millis(milliseconds);
                return Err(WireError::Lost { node: number as u16, silence });
            }
        }
        Ok(None)
    }

    /// Something is over: its owner goes on.
    fn ended(&mut self, owner: Owner, notes: Vec<Note>, events: &mut Vec<Event>) -> Result<(), WireError> {
        let ticket = match owner {
            Owner::Program(ticket) => {
                report(ticket, notes, events);
                return Ok(());
            }
            Owner::Step(ticket, _) | Owner::Sent(ticket) => ticket,
        };
        let mut collective = self.collectives.remove(&ticket).expect("it is not over");
        match owner {
            Owner::Step(_, step) => collective.arrived(step, notes),
            _ => collective.unfinished -= 1,
        }
        self.send_steps(ticket, &mut collective)?;
        if collective.unfinished == 0 {
            report(ticket, self.notes_of_others(collective), events);
        } else {
            self.collectives.insert(ticket, collective);
        }
        Ok(())
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    fn check_open(&self) -> Result<(), WireError> {
        match &self.state {
            State::Failed(error) => Err(error.clone()),
            State::Open | State::Finished => Ok(()),
        }
    }

    fn check_node(&self, node: u16) -> Result<(), WireError> {
        let nodes = self.place().nodes;
        if node < nodes { Ok(()) } else { Err(WireError::NoSuchNode { node, nodes }) }
    }
}

/// How long an endpoint goes on after a message that does not fit what is expected, and ten times as long if
/// it still receives messages. Most often the nodes run different programs. Then posts can say where the
/// programs differ, which helps the user more.
const GRACE: Duration = Duration::from_secs(1);

fn begun(done: bool, ticket: Ticket) -> Begun {
    if done { Begun::Done } else { Begun::Later(ticket) }
}

/// Reports the end of what has this ticket.
fn report(ticket: Ticket, notes: Vec<Note>, events: &mut Vec<Event>) {
    events.extend(notes.into_iter().map(|Note { node, text, .. }| Event::Note { ticket, node, note: text }));
    events.push(Event::Done(ticket));
}

fn check_note(note: &[u8]) -> Result<(), WireError> {
    match note.len() {
        0..=NOTE => Ok(()),
        bytes => Err(WireError::LongNote { bytes, limit: NOTE }),
    }
}

fn check_layouts(tag: Tag, layouts: &[Layout], holds: impl Fn(&Layout) -> bool) -> Result<(), WireError> {
    match layouts.iter().find(|layout| !holds(layout)) {
        Some(layout) => Err(WireError::Outside { tag, layout: format!("{layout:?}") }),
        None => Ok(()),
    }
}
