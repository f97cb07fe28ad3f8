//! Notes, which a node sends in place of bytes that it does not have.
//!
//! A note counts as the bytes that it takes the place of, and in a collective pattern as the token of its
//! node. So what is expected is complete when all of it has come, as bytes or as notes, and nothing writes
//! into its memory afterwards. A message holds as many notes as fit.

use super::{
    header::{Header, Kind, PAYLOAD},
    link::Link,
};
use crate::{WireError, tag::Key};

/// The bytes in front of each note in a message: its node, the number of bytes that it takes the place of,
/// and its length.
const ENTRY: usize = 14;

/// The largest note, in bytes: with its entry it fits in one message.
pub(super) const NOTE: usize = PAYLOAD - ENTRY;

/// A note, which a node sends in place of bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Note {
    /// The node that does not have these bytes. Other nodes may have passed the note on.
    pub node: u16,
    /// The number of bytes that it takes the place of.
    pub bytes: u64,
    pub text: Vec<u8>,
}

/// Sends notes. Each takes the place of this number of tokens, too.
pub(super) fn send(link: &mut Link, to: u16, key: Key, tokens: u16, notes: &[Note]) -> Result<(), WireError> {
    let mut rest = notes;
    while !rest.is_empty() {
        let (mut count, mut payload) = (0, 0);
        while let Some(note) = rest.get(count)
            && payload + ENTRY + note.text.len() <= PAYLOAD
        {
            payload += ENTRY + note.text.len();
            count += 1;
        }
        let (these, others) = rest.split_at(count);
        rest = others;
        let tokens = tokens * count as u16;
        let header = Header { tokens, payload: payload as u32, ..link.header(Kind::Note, key) };
        link.send(to, header, &[], |message| these.iter().for_each(|note| note.write(message)))?;
    }
    Ok(())
}

/// The notes in the payload of a message; `None` if it is cut off.
pub(super) fn read(mut payload: &[u8]) -> Option<Vec<Note>> {
    let mut notes = Vec::new();
    while !payload.is_empty() {
        let (node, rest) = payload.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let (node, bytes) = (u16::from_le_bytes(*node), u64::from_le_bytes(*bytes));
        notes.push(Note { node, bytes, text: text.to_vec() });
        payload = rest;
    }
    Some(notes)
}

impl Note {
    fn write(&self, message: &mut Vec<u8>) {
        message.extend(self.node.to_le_bytes());
        message.extend(self.bytes.to_le_bytes());
        message.extend((self.text.len() as u32).to_le_bytes());
        message.extend(&self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let notes = [
            Note { node: 3, bytes: 1 << 40, text: b"no luck".to_vec() },
            Note { node: 4_000, bytes: 0, text: Vec::new() },
        ];
        let mut payload = Vec::new();
        notes.iter().for_each(|note| note.write(&mut payload));
        assert_eq!(payload.len(), 2 * ENTRY + 7);
        assert_eq!(read(&payload).unwrap(), notes);
        for len in (1..payload.len()).filter(|&len| len != ENTRY + 7) {
            assert_eq!(read(&payload[..len]), None, "{len}");
        }
    }
}
