//! What this node sends.
//!
//! Up to 16 KiB (or less: see `Options::eager`) go in one message together with their layouts, and the memory
//! is free at once. Larger transfers are announced by a message, and each box then goes from place to place.
//! Boxes of short rows are packed into several messages, up to a size, because that is faster than a transfer
//! of many short pieces. A receiver that has not yet placed many messages gets announcements only (see
//! `flow_control`).
//!
//! An announcement is sent when the memory is ready, and not before, although the program knows the transfer
//! earlier. So every announced transfer takes place. Between two processes this costs 2 to 3 µs for 32 to 256
//! KiB, against MPI with a receive that is posted before, and nothing from 1 MiB on.

use super::{
    header::{Header, Kind, LAYOUTS, PAYLOAD},
    link::Link,
};
use crate::{
    Layout, Memory, WireError,
    tag::{Key, Owner},
    transport::TRANSFER,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Boxes whose rows are shorter than this number of bytes are packed …
const SHORT_ROW: usize = 256;
/// … if all of them together have at most this number of bytes.
const PACKED: usize = 128 * 1024;

/// Something to send to one node.
pub(super) struct Parcel {
    pub to: u16,
    pub key: Key,
    /// See [`Header::tokens`].
    pub tokens: u16,
    pub memory: Memory,
    pub owner: Owner,
}

#[derive(Default)]
pub(super) struct Outbox {
    /// See [`Options::eager`](super::Options::eager).
    eager: usize,
    next_number: u32,
    next_parcel: u64,
    /// The parcel of each transfer in place.
    puts: FxHashMap<u32, u64>,
    /// The transfers in place that each parcel still waits for.
    parcels: FxHashMap<u64, (usize, Owner)>,
    /// Announcements that wait for numbers.
    waiting: VecDeque<(Parcel, u64, Vec<Layout>)>,
}

impl Outbox {
    pub fn new(eager: usize) -> Self {
        Self { eager, ..Self::default() }
    }

    /// Whether every transfer is over.
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }

    /// Whether a transfer in place is under way.
    pub fn is_offering(&self) -> bool {
        !self.puts.is_empty()
    }

    /// Sends the bytes of the layouts. The answer says whether the memory is free at once.
    pub fn send(&mut self, link: &mut Link, parcel: Parcel, layouts: &[Layout]) -> Result<bool, WireError> {
        let bytes: usize = layouts.iter().map(Layout::bytes).sum();
        let short = layouts.iter().all(|layout| layout.row() < SHORT_ROW);
        let packed = bytes <= self.eager || (short && self.eager == PAYLOAD && bytes <= PACKED);
        // A part of a message is header and layouts.
        if packed && link.flow_control.permits(parcel.to, bytes + bytes / 8 + LAYOUTS * 64) {
            pack(link, &parcel, layouts)?;
            return Ok(true);
        }
        self.announce_all(link, parcel, layouts)?;
        Ok(false)
    }

    fn announce_all(&mut self, link: &mut Link, parcel: Parcel, layouts: &[Layout]) -> Result<(), WireError> {
        let id = self.next_parcel;
        self.next_parcel += 1;
        let pieces: Vec<_> = layouts.iter().flat_map(|layout| layout.pieces(TRANSFER)).collect();
        self.parcels.insert(id, (pieces.len(), parcel.owner));
        for (i, pieces) in pieces.chunks(LAYOUTS).enumerate() {
            let parcel = Parcel { tokens: if i == 0 { parcel.tokens } else { 0 }, ..parcel };
            if self.waiting.is_empty()
                && let Some(number) = self.numbers(link, pieces.len())
            {
                self.announce(link, &parcel, id, number, pieces)?;
            } else {
                self.waiting.push_back((parcel, id, pieces.to_vec()));
            }
        }
        Ok(())
    }

    fn announce(
        &mut self,
        link: &mut Link,
        parcel: &Parcel,
        id: u64,
        number: u32,
        pieces: &[Layout],
    ) -> Result<(), WireError> {
        let header = Header { number, tokens: parcel.tokens, ..link.header(Kind::Announcement, parcel.key) };
        link.send(parcel.to, header, pieces, |_| {})?;
        for (number, piece) in (number..).zip(pieces) {
            self.puts.insert(number, id);
            link.transport.put(parcel.to, number, parcel.memory, *piece)?;
        }
        Ok(())
    }

    /// This number of consecutive numbers that are free, if there are some.
    fn numbers(&mut self, link: &Link, count: usize) -> Option<u32> {
        let (all, count) = (link.transport.numbers(), count as u32);
        let mut tried = 0;
        while tried < all {
            if self.next_number + count > all {
                self.next_number = 0;
            }
            let first = self.next_number;
            self.next_number += count;
            tried += count;
            if (first..first + count).all(|number| !self.puts.contains_key(&number)) {
                return Some(first);
            }
        }
        None
    }

    /// A transfer in place is over. The answer is the owner of the parcel, if it was the last one of the
    /// parcel.
    pub fn put(&mut self, link: &mut Link, number: u32) -> Result<Option<Owner>, WireError> {
        let id = self.puts.remove(&number).expect("a put is reported once");
        while let Some((_, _, pieces)) = self.waiting.front() {
            let Some(number) = self.numbers(link, pieces.len()) else { break };
            let (parcel, id, pieces) = self.waiting.pop_front().expect("it is there");
            self.announce(link, &parcel, id, number, &pieces)?;
        }
        let (left, owner) = self.parcels.get_mut(&id).expect("its parcel is not over");
        let owner = *owner;
        *left -= 1;
        if *left > 0 {
            return Ok(None);
        }
        self.parcels.remove(&id);
        Ok(Some(owner))
    }
}

/// Sends the bytes in messages.
fn pack(link: &mut Link, parcel: &Parcel, layouts: &[Layout]) -> Result<(), WireError> {
    let mut pieces = layouts.iter().flat_map(|layout| layout.pieces(PAYLOAD)).peekable();
    let mut batch = [Layout::contiguous(0, 0); LAYOUTS];
    let mut tokens = parcel.tokens;
    while tokens > 0 || pieces.peek().is_some() {
        let (mut count, mut payload) = (0, 0);
        while count < LAYOUTS
            && let Some(piece) = pieces.next_if(|piece| payload + piece.bytes() <= PAYLOAD)
        {
            batch[count] = piece;
            count += 1;
            payload += piece.bytes();
        }
        let layouts = &batch[..count];
        let header = Header {
            tokens,
            payload: payload as u32,
            layouts: count as u16,
            ..link.header(Kind::Data, parcel.key)
        };
        link.flow_control.sent(parcel.to, header.len());
        link.send(parcel.to, header, layouts, |message| {
            for layout in layouts {
                parcel.memory.append_to(layout, message);
            }
        })?;
        tokens = 0;
    }
    Ok(())
}
