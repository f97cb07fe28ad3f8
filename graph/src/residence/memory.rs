//! Memories, sets of memories, and copies between two of them.

use anabranch_grid::Region;
use std::fmt;

/// A memory: the host's or that of a device. A residence tells [`MemoryId::COUNT`] memories apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryId(pub u16);

impl MemoryId {
    /// The memory of the host.
    pub const HOST: Self = Self(0);

    /// The number of memories, the host's included: the largest id is one less.
    pub const COUNT: u16 = 64;
}

impl fmt::Display for MemoryId {
    /// `the host`, or `memory 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::HOST => f.write_str("the host"),
            Self(id) => write!(f, "memory {id}"),
        }
    }
}

/// A copy of a part of one version of a buffer, from one memory to another at the same place. One of the two
/// is the host's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryCopy {
    /// The memory that is read.
    pub from: MemoryId,
    /// The memory that is written.
    pub to: MemoryId,
    /// The elements.
    pub region: Region<3>,
}

impl fmt::Display for MemoryCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "copy of {} from {} to {}", self.region, self.from, self.to)
    }
}

/// A set of memories, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memories(u64);

impl Memories {
    /// # Panics
    /// If the id of the memory is too large.
    #[inline]
    #[track_caller]
    pub(super) fn only(memory: MemoryId) -> Self {
        let MemoryId(id) = memory;
        assert!(
            id < MemoryId::COUNT,
            "a residence tells {} memories apart, with ids below that: there is no {memory}",
            MemoryId::COUNT
        );
        Self(1 << id)
    }

    #[inline]
    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The memory with the smallest id.
    pub(super) fn first(self) -> Option<MemoryId> {
        (self.0 != 0).then(|| MemoryId(self.0.trailing_zeros() as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_memories_are_told_apart() {
        let all = (0..MemoryId::COUNT).map(|id| Memories::only(MemoryId(id)));
        let sum = all.clone().fold(Memories(0), Memories::union);
        assert_eq!(sum, Memories(u64::MAX));
        assert!(all.enumerate().all(|(id, memory)| memory.first() == Some(MemoryId(id as u16))));
    }

    #[test]
    #[should_panic(
        expected = "a residence tells 64 memories apart, with ids below that: there is no memory 64"
    )]
    fn one_memory_more_is_refused() {
        let _ = Memories::only(MemoryId(64));
    }
}
