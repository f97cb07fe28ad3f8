//! What this node receives: messages wait for their expectation, or expectations for their messages.
//!
//! An expectation is complete when all of its bytes are in place, or notes have come in their place.

use super::{
    header::{Header, Kind},
    link::Link,
    notes::{self, Note},
    parts::Parts,
};
use crate::{
    Event, Layout, MemoryMut, WireError,
    tag::{Key, Owner, Ticket},
    transport::Get,
};
use rustc_hash::FxHashMap;

struct Expected {
    memory: MemoryMut,
    /// The number of bytes and tokens that no message has brought or announced, and that no note covers.
    missing: usize,
    /// The number of bytes of transfers in place that are under way.
    coming: usize,
    /// The notes that have come in place of bytes.
    notes: Vec<Note>,
    /// The parts, if the program gets an event for each.
    parts: Option<Parts>,
    owner: Owner,
    /// Whether a message did not fit. Then it is never complete, and nothing more is written.
    is_wrong: bool,
}

#[derive(Default)]
pub(super) struct Inbox {
    expected: FxHashMap<Key, Expected>,
    /// Messages that came before they were expected.
    early: FxHashMap<Key, Vec<Vec<u8>>>,
    /// The key and the layout of each transfer in place.
    coming: FxHashMap<u64, (Key, Layout)>,
    next_name: u64,
    /// Parts that are in place and were not reported yet.
    parts: Vec<(Ticket, usize)>,
}

impl Expected {
    fn is_complete(&self) -> bool {
        self.missing == 0 && self.coming == 0 && !self.is_wrong
    }

    /// The bytes of a layout are in place.
    fn placed(&mut self, layout: &Layout) {
        if let Some(parts) = &mut self.parts {
            parts.placed(layout);
        }
    }

    /// The parts that are in place and were not reported. If everything is in place, there are none: the end
    /// reports it.
    fn parts_over(&mut self) -> impl Iterator<Item = (Ticket, usize)> {
        let ticket = match self.owner {
            Owner::Program(ticket) if !self.is_complete() => Some(ticket),
            _ => None,
        };
        let over = self.parts.as_mut().zip(ticket).map(|(parts, ticket)| (parts.over.drain(..), ticket));
        over.into_iter().flat_map(|(over, ticket)| over.map(move |part| (ticket, part)))
    }
}

impl Inbox {
    /// Whether a transfer in place is under way.
    pub fn is_taking(&self) -> bool {
        !self.coming.is_empty()
    }

    pub fn expects(&self, key: &Key) -> bool {
        self.expected.contains_key(key)
    }

    /// Whether nothing is expected that has not come.
    pub fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    /// Adds the parts that are in place and were not reported yet.
    pub fn report_parts(&mut self, events: &mut Vec<Event>) {
        events.extend(self.parts.drain(..).map(|(ticket, part)| Event::Part { ticket, part }));
    }

    /// Expects these numbers of bytes and tokens, perhaps in parts. The answer is the notes among them if all
    /// are there.
    pub fn expect(
        &mut self,
        link: &mut Link,
        key: Key,
        missing: usize,
        memory: MemoryMut,
        parts: Option<Parts>,
        owner: Owner,
    ) -> Result<Option<Vec<Note>>, WireError> {
        let (notes, is_wrong) = (Vec::new(), false);
        let mut expected = Expected { memory, missing, coming: 0, notes, parts, owner, is_wrong };
        let mut placed = Ok(());
        for message in self.early.remove(&key).unwrap_or_default() {
            let header = Header::read(&message).expect("it was read before");
            placed = placed.and_then(|()| self.place(link, &header, &message, &mut expected));
        }
        Ok(self.keep(key, expected, placed)?.map(|(_, notes)| notes))
    }

    /// Keeps the expectation if it is not complete. If it is, returns its owner and its notes. After an error
    /// an expectation is never complete.
    fn keep(
        &mut self,
        key: Key,
        mut expected: Expected,
        placed: Result<(), WireError>,
    ) -> Result<Option<(Owner, Vec<Note>)>, WireError> {
        if placed.is_err() {
            (expected.is_wrong, expected.parts) = (true, None);
        }
        if expected.is_complete() {
            return Ok(Some((expected.owner, expected.notes)));
        }
        self.parts.extend(expected.parts_over());
        self.expected.insert(key, expected);
        placed.map(|()| None)
    }

    /// A message has come. The answer is the owner of what it belongs to, and the notes, if that is complete
    /// now.
    pub fn arrived(
        &mut self,
        link: &mut Link,
        header: &Header,
        message: &[u8],
    ) -> Result<Option<(Owner, Vec<Note>)>, WireError> {
        let Some(mut expected) = self.expected.remove(&header.key) else {
            self.early.entry(header.key).or_default().push(message[..header.len()].to_vec());
            return Ok(None);
        };
        let placed = match expected.is_wrong {
            true => Ok(()),
            false => self.place(link, header, message, &mut expected),
        };
        self.keep(header.key, expected, placed)
    }

    fn place(
        &mut self,
        link: &mut Link,
        header: &Header,
        message: &[u8],
        expected: &mut Expected,
    ) -> Result<(), WireError> {
        let Header { from, key, tokens, .. } = *header;
        let wrong = |what: &str| Link::malformed(from, format!("{}: {what}", key.tag));
        let mut payload = header.payload_of(message);
        let mut bytes = usize::from(tokens);
        if header.kind == Kind::Note {
            let notes = notes::read(payload).ok_or_else(|| wrong("a note that is cut off"))?;
            bytes = notes.iter().fold(bytes, |bytes, note| bytes.saturating_add(note.bytes as usize));
            expected.notes.extend(notes);
        }
        let mut number = header.number;
        for layout in header.read_layouts(message) {
            let layout = layout.ok_or_else(|| wrong("a layout without an end"))?;
            bytes += layout.bytes();
            if bytes > expected.missing {
                return Err(wrong("more bytes than were expected"));
            }
            if !expected.memory.holds(&layout) {
                return Err(wrong(&format!("{layout:?} is outside of the memory of the receiver")));
            }
            if header.kind == Kind::Data {
                let Some((part, rest)) = payload.split_at_checked(layout.bytes()) else {
                    return Err(wrong("fewer bytes than its layouts say"));
                };
                expected.memory.fill(&layout, part);
                expected.placed(&layout);
                payload = rest;
            } else {
                expected.coming += layout.bytes();
                let name = self.next_name;
                self.next_name += 1;
                self.coming.insert(name, (key, layout));
                link.transport.get(Get { from, number, name, memory: expected.memory, layout })?;
                number += 1;
            }
        }
        let missing = expected.missing.checked_sub(bytes);
        expected.missing = missing.ok_or_else(|| wrong("more bytes than were expected"))?;
        match header.kind {
            Kind::Data => link.placed(from, header.len()),
            Kind::Note => Ok(()),
            _ => link.taking(from, bytes),
        }
    }

    /// A transfer in place is over. The answer is as for [`arrived`](Self::arrived).
    pub fn got(&mut self, name: u64) -> Option<(Owner, Vec<Note>)> {
        let (key, layout) = self.coming.remove(&name).expect("a get is reported once");
        let expected = self.expected.get_mut(&key).expect("it waits for its transfers in place");
        expected.coming -= layout.bytes();
        expected.placed(&layout);
        if !expected.is_complete() {
            self.parts.extend(expected.parts_over());
            return None;
        }
        self.expected.remove(&key).map(|expected| (expected.owner, expected.notes))
    }
}
