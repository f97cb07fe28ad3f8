//! The description of a file that its writer gives to other processes, so that they can write parts of its
//! frames.

use crate::{
    Result, StoreError, SyncLevel,
    element::Element,
    file::{holder::Holder, immutable_part::ImmutablePart, layout::Layout},
};
use std::path::Path;

/// The first number of every announcement: changes when the meaning of the others does.
const MARK: u64 = 0x616e_6162_7061_7274;

/// The description of a file that is being written: see [`Writer::announce`](crate::Writer::announce).
///
/// It is a few numbers, which a program hands to its other processes in whatever way it has, such as a
/// message or a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcement {
    /// The name of the element type, in the bytes of a number.
    element: u64,
    pub(super) frames: u64,
    pub(super) frame_bytes: u64,
    /// The position of frame 0.
    pub(super) start: u64,
    /// The position of the count.
    pub(super) count_at: u64,
    pub(super) sync: SyncLevel,
    /// The length and the checksum of the immutable part of the file.
    immutable: [u32; 2],
    /// The writer's process, and the checksum of its host's name.
    holder: [u32; 2],
}

impl Announcement {
    /// The number of numbers in an announcement.
    pub const WORDS: usize = 9;

    /// The announcement of a file of elements `T` that this process writes.
    pub(super) fn new<T: Element>(
        layout: &Layout,
        start: u64,
        sync: SyncLevel,
        immutable: &ImmutablePart,
    ) -> Self {
        Self {
            element: name_of::<T>(),
            frames: layout.frames,
            frame_bytes: layout.frame_bytes,
            start,
            count_at: layout.count_at,
            sync,
            immutable: immutable.fingerprint(),
            holder: fingerprint(&Holder::this_process()),
        }
    }

    /// The announcement as numbers.
    pub fn to_words(self) -> [u64; Self::WORDS] {
        let sync = match self.sync {
            SyncLevel::None => 0,
            SyncLevel::End => 1,
            SyncLevel::Frame => 2,
        };
        let (immutable, holder) = (pair(self.immutable), pair(self.holder));
        let (element, frames, bytes) = (self.element, self.frames, self.frame_bytes);
        [MARK, element, frames, bytes, self.start, self.count_at, sync, immutable, holder]
    }

    /// The announcement that [`to_words`](Self::to_words) has given; `None` for other numbers.
    pub fn from_words(words: [u64; Self::WORDS]) -> Option<Self> {
        let [MARK, element, frames, frame_bytes, start, count_at, sync, immutable, holder] = words else {
            return None;
        };
        let sync = [SyncLevel::None, SyncLevel::End, SyncLevel::Frame]
            .into_iter()
            .nth(usize::try_from(sync).ok()?)?;
        let (immutable, holder) = (halves(immutable), halves(holder));
        Some(Self { element, frames, frame_bytes, start, count_at, sync, immutable, holder })
    }

    /// An error unless the file has elements of this type.
    pub(super) fn check_element<T: Element>(&self, path: &Path) -> Result<()> {
        if self.element == name_of::<T>() {
            return Ok(());
        }
        let bytes = self.element.to_le_bytes();
        let found = String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned();
        let what = "the element type".into();
        Err(StoreError::Mismatch { path: path.into(), what, found, expected: T::NAME.into() })
    }

    /// The bytes of the immutable part of the file.
    pub(super) fn immutable_len(&self) -> usize {
        self.immutable[0] as usize
    }

    /// An error unless the file at `path` has this immutable part, and the lock file beside it names this
    /// holder: then it is the file that was announced, and it is still being written.
    pub(super) fn check_identity(
        &self,
        path: &Path,
        immutable: &ImmutablePart,
        holder: Option<&Holder>,
    ) -> Result<()> {
        let reason = match holder {
            None => "no process is writing it".to_owned(),
            Some(holder) if fingerprint(holder) != self.holder => format!("it is being written by {holder}"),
            Some(_) if immutable.fingerprint() != self.immutable => {
                "its layout or its attributes differ".to_owned()
            }
            Some(_) => return Ok(()),
        };
        Err(StoreError::NotAnnounced { path: path.into(), reason })
    }
}

/// The name of an element type, of at most eight letters.
fn name_of<T: Element>() -> u64 {
    let mut bytes = [0; 8];
    bytes[..T::NAME.len()].copy_from_slice(T::NAME.as_bytes());
    u64::from_le_bytes(bytes)
}

fn fingerprint(holder: &Holder) -> [u32; 2] {
    [holder.process, crc32fast::hash(holder.host.as_bytes())]
}

fn pair([high, low]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn halves(pair: u64) -> [u32; 2] {
    [(pair >> 32) as u32, pair as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_read_back_from_its_numbers() {
        for sync in [SyncLevel::None, SyncLevel::End, SyncLevel::Frame] {
            let announcement = Announcement {
                element: name_of::<f32>(),
                frames: 7,
                frame_bytes: 1 << 40,
                start: 4096,
                count_at: 800,
                sync,
                immutable: [4096, u32::MAX],
                holder: [u32::MAX, 3],
            };
            let words = announcement.to_words();
            assert_eq!(Announcement::from_words(words), Some(announcement));
            for at in [0, 6] {
                let mut other = words;
                other[at] += 3;
                assert_eq!(Announcement::from_words(other), None);
            }
        }
    }
}
