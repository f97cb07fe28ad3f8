//! Schedules and splits of loops: plain data and arithmetic.

use std::{
    iter::StepBy,
    ops::{Index, Range},
};

/// How the participants of a loop claim its items.
///
/// Results never depend on it. Under every schedule except `Serial`, a participant that has nothing left to
/// do takes over items that have not begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// The calling thread does everything, and wakes no other thread.
    Serial,
    /// Every participant has its own part, the same in every loop of the same shape, so that caches stay
    /// warm. A participant that has done its part takes over items of the other parts.
    Static(Split),
    /// Chunks of equal length. A participant that is free claims the next one.
    Dynamic,
    /// Chunks that become shorter towards the end: there are few of them, and yet all participants finish
    /// together.
    #[default]
    Guided,
    /// One item at a time. A participant that is free claims the next one; tiny items are claimed several at
    /// a time, as many as take some microseconds.
    Greedy,
}

/// How items are split among participants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Split {
    /// A block of consecutive items for each participant: see [`Consecutive`].
    #[default]
    Consecutive,
    /// Every n-th item for each of n participants: see [`RoundRobin`]. All get the same share of the work
    /// where the work per item grows or falls along the loop.
    RoundRobin,
}

/// `0..len` cut into chunks of consecutive numbers.
///
/// ```
/// use anabranch_par::Consecutive;
///
/// let chunks: Vec<_> = Consecutive::by_count(10, 3).iter().collect();
/// assert_eq!(chunks, [0..4, 4..7, 7..10]);
/// let chunks: Vec<_> = Consecutive::by_size(10, 4).iter().collect();
/// assert_eq!(chunks, [0..4, 4..8, 8..10]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Consecutive {
    len: usize,
    /// The length of each chunk, or the number of chunks.
    by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum By {
    Size(usize),
    Count(usize),
}

impl Consecutive {
    /// Cuts into `count` chunks (at least 1), whose lengths differ by one at most. No chunk is empty: if
    /// `len` is smaller than `count`, there are `len` chunks.
    pub fn by_count(len: usize, count: usize) -> Self {
        Self { len, by: By::Count(count.max(1).min(len.max(1))) }
    }

    /// Cuts into chunks of `size` (at least 1); the last one may be shorter.
    #[inline]
    pub fn by_size(len: usize, size: usize) -> Self {
        Self { len, by: By::Size(size.max(1)) }
    }

    /// The number of items.
    #[inline]
    pub(crate) fn items(&self) -> usize {
        self.len
    }

    /// The number of chunks.
    #[inline]
    pub fn chunks(&self) -> usize {
        match self.by {
            By::Size(size) => self.len.div_ceil(size),
            By::Count(count) => count.min(self.len),
        }
    }

    /// Chunk number `i`.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn chunk(&self, i: usize) -> Range<usize> {
        assert!(i < self.chunks(), "chunk {i} of {}", self.chunks());
        self.start(i)..self.start(i + 1)
    }

    /// All chunks, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
        let split = *self;
        (0..self.chunks()).map(move |i| split.chunk(i))
    }

    /// The numbers in the chunks `chunks`, of which there is at least one.
    #[inline]
    pub(crate) fn span(&self, chunks: &Range<usize>) -> Range<usize> {
        self.start(chunks.start)..self.start(chunks.end)
    }

    /// A chunk number from which on all chunks begin at or behind item `item`.
    #[inline]
    pub(crate) fn limit(&self, item: usize) -> usize {
        match self.by {
            _ if item >= self.len => usize::MAX,
            // The loop is interrupted, so no chunk may begin.
            _ if item == 0 => 0,
            By::Size(size) => item.div_ceil(size),
            By::Count(count) => (item as u128 * count as u128).div_ceil(self.len as u128) as usize + 1,
        }
    }

    #[inline]
    fn start(&self, i: usize) -> usize {
        match self.by {
            By::Size(size) => i.saturating_mul(size).min(self.len),
            By::Count(count) => {
                let (each, longer) = (self.len / count, self.len % count);
                each * i + longer.min(i)
            }
        }
    }
}

/// `0..len` split into `parts`, where part i has every `parts`-th number from i on.
///
/// ```
/// use anabranch_par::RoundRobin;
///
/// let split = RoundRobin::new(10, 3);
/// assert_eq!(split.part(0).collect::<Vec<_>>(), [0, 3, 6, 9]);
/// assert_eq!(split.part(2).collect::<Vec<_>>(), [2, 5, 8]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoundRobin {
    len: usize,
    parts: usize,
}

impl RoundRobin {
    /// Splits into `parts` parts (at least 1).
    pub fn new(len: usize, parts: usize) -> Self {
        Self { len, parts: parts.max(1) }
    }

    /// The number of parts. Some may be empty.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The numbers in part `i`.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn part(&self, i: usize) -> StepBy<Range<usize>> {
        assert!(i < self.parts, "part {i} of {}", self.parts);
        (i.min(self.len)..self.len).step_by(self.parts)
    }

    /// The elements of `values` that are in part `i`.
    ///
    /// # Panics
    /// If there is no such part, or `values` has fewer than `len` elements.
    pub fn select<'a, V: Index<usize> + ?Sized>(
        &self,
        values: &'a V,
        i: usize,
    ) -> impl Iterator<Item = &'a V::Output> {
        self.part(i).map(|k| &values[k])
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_everything_once() {
        for len in 0..40 {
            for n in 1..12 {
                for split in [Consecutive::by_count(len, n), Consecutive::by_size(len, n)] {
                    assert!(split.iter().all(|chunk| !chunk.is_empty()));
                    assert!(split.iter().flatten().eq(0..len));
                }
                let mut all: Vec<_> = (0..n).flat_map(|i| RoundRobin::new(len, n).part(i)).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..len));
            }
        }
    }

    #[test]
    fn every_chunk_with_an_item_before_the_stop_is_below_the_limit() {
        for len in 1..40 {
            for n in 1..12 {
                for split in [Consecutive::by_count(len, n), Consecutive::by_size(len, n)] {
                    for item in 0..len + 2 {
                        let limit = split.limit(item);
                        assert!((0..split.chunks()).all(|i| split.chunk(i).start >= item || i < limit));
                        assert!(item > 0 || limit == 0);
                    }
                }
            }
        }
    }
}
