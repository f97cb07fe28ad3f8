//! How messages are written: a header of 40 bytes, layouts of 48 bytes each, and a payload.

use crate::{Layout, Tag, tag::Key};

const HEADER: usize = 40;
const LAYOUT: usize = 48;

/// The largest payload of a message, in bytes. The rest of the message has room for the header and for
/// [`LAYOUTS`] layouts.
pub(super) const PAYLOAD: usize = 16 * 1024;

/// The largest number of layouts in a message.
pub(super) const LAYOUTS: usize = 20;

const _: () = assert!(HEADER + LAYOUTS * LAYOUT + PAYLOAD <= crate::transport::MESSAGE);

/// What a message is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Bytes of a transfer, with their layouts.
    Data,
    /// A layout for each of the transfers in place that follow, with consecutive numbers.
    Announcement,
    /// Notes in place of bytes of a transfer: see `notes`.
    Note,
    /// The sender takes the transfers in place that the receiver has announced. The payload has the number of
    /// their bytes.
    Taking,
    /// A message of the program.
    Post,
    /// The sender has freed memory of messages.
    Credit,
    /// The sender is alive.
    Beat,
    /// The sender has finished, together with all others.
    Finished,
    /// The sender's endpoint was dropped.
    Left,
    /// The sender gave up. The payload is the reason.
    Aborted,
    /// The sender has received no message of the node `number`. The payload is the time without one, in
    /// milliseconds.
    Lost,
}

const KINDS: [Kind; 11] = [
    Kind::Data,
    Kind::Announcement,
    Kind::Note,
    Kind::Taking,
    Kind::Post,
    Kind::Credit,
    Kind::Beat,
    Kind::Finished,
    Kind::Left,
    Kind::Aborted,
    Kind::Lost,
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub kind: Kind,
    pub from: u16,
    pub key: Key,
    /// The number of tokens. Each token counts as one byte. A step of a collective pattern has a token for
    /// each node whose part belongs to it, so the step arrives also if it has no bytes.
    pub tokens: u16,
    pub layouts: u16,
    pub payload: u32,
    /// For an announcement, the number of its first transfer. For a post, its place in the order of the
    /// posts.
    pub number: u32,
    /// The bytes of messages of the receiver that the sender of this message has freed since its last message
    /// to it with a credit.
    pub credit: u32,
}

impl Header {
    pub fn new(kind: Kind, from: u16, key: Key) -> Self {
        Self { kind, from, key, tokens: 0, layouts: 0, payload: 0, number: 0, credit: 0 }
    }

    /// A message that belongs to no transfer.
    pub fn control(kind: Kind, from: u16) -> Self {
        Self::new(kind, from, Key { tag: Tag::new(0, 0, 0), step: 0 })
    }

    /// The number of bytes of the whole message.
    pub fn len(&self) -> usize {
        HEADER + usize::from(self.layouts) * LAYOUT + self.payload as usize
    }

    /// Begins a message; the payload follows.
    pub fn write(&self, layouts: &[Layout], message: &mut Vec<u8>) {
        debug_assert_eq!(layouts.len(), usize::from(self.layouts));
        let Self { kind, from, key, tokens, layouts: count, payload, number, credit } = *self;
        message.clear();
        let place = KINDS.iter().position(|&other| other == kind).expect("all kinds are listed");
        // The fourth byte belongs to the transport.
        message.extend([place as u8, key.step, 0, 0]);
        message.extend(from.to_le_bytes());
        message.extend(count.to_le_bytes());
        message.extend(payload.to_le_bytes());
        message.extend(number.to_le_bytes());
        message.extend(credit.to_le_bytes());
        message.extend(key.tag.kind.to_le_bytes());
        message.extend(tokens.to_le_bytes());
        message.extend(key.tag.task.to_le_bytes());
        message.extend(key.tag.buffer.to_le_bytes());
        for layout in layouts {
            for word in layout.to_words() {
                message.extend(word.to_le_bytes());
            }
        }
    }

    /// The header of a message.
    pub fn read(message: &[u8]) -> Option<Self> {
        let kind = *KINDS.get(usize::from(*message.first()?))?;
        let header = message.get(..HEADER)?;
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let header = Self {
            kind,
            from: u16_at(4),
            key: Key { tag: Tag::new(u64_at(24), u64_at(32), u16_at(20)), step: header[1] },
            tokens: u16_at(22),
            layouts: u16_at(6),
            payload: u32_at(8),
            number: u32_at(12),
            credit: u32_at(16),
        };
        (header.len() <= message.len()).then_some(header)
    }

    /// The layouts of a message with this header.
    pub fn read_layouts<'m>(&self, message: &'m [u8]) -> impl Iterator<Item = Option<Layout>> + 'm {
        let bytes = &message[HEADER..HEADER + usize::from(self.layouts) * LAYOUT];
        bytes.chunks_exact(LAYOUT).map(|layout| {
            let mut words = [0; 6];
            for (word, bytes) in words.iter_mut().zip(layout.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            }
            Layout::from_words(words)
        })
    }

    /// The payload of a message with this header.
    pub fn payload_of<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        &message[self.len() - self.payload as usize..self.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let layouts = [Layout::contiguous(3, 9), Layout::strided(1, 2, [3, 4], [5, 60])];
        for kind in KINDS {
            let header = Header {
                kind,
                from: 300,
                key: Key { tag: Tag::new(u64::MAX - 1, 7, 900), step: 3 },
                tokens: 0x0403,
                layouts: 2,
                payload: 3,
                number: 0x0102_0304,
                credit: 0x0506_0708,
            };
            let mut message = vec![0; 500];
            header.write(&layouts, &mut message);
            message.extend([1, 2, 3]);
            assert_eq!(message.len(), header.len());
            message.extend([9; 9]);
            assert_eq!(Header::read(&message), Some(header));
            let read: Vec<_> = header.read_layouts(&message).collect();
            assert_eq!(read, layouts.map(Some));
            assert_eq!(header.payload_of(&message), [1, 2, 3]);
        }
    }

    #[test]
    fn a_message_that_is_cut_off_is_not_read() {
        let mut message = Vec::new();
        Header { payload: 1, ..Header::control(Kind::Post, 1) }.write(&[], &mut message);
        assert_eq!(Header::read(&message), None);
        assert_eq!(Header::read(&[]), None);
        message[0] = KINDS.len() as u8;
        message.push(0);
        assert_eq!(Header::read(&message), None);
    }
}
