//! Buffers whose memory the program has given back. The next memory of the same size gets one of them: a
//! driver may take ten times longer to make a large buffer than a device to compute on it.
//!
//! With these buffers a device has hardly more memory than the program had at once, lately. They go back to
//! the driver when it runs out of memory, and when the device has nothing to do and has got nothing for a
//! while.

use std::{collections::VecDeque, mem};

/// After this many takes, the pool forgets how much memory the program had before.
const WINDOW: u32 = 1024;

/// The pool may keep this many bytes in any case, however little memory the program had.
const ALWAYS_KEPT: u64 = 1 << 20;

/// The largest number of buffers in the pool: a take looks through all of them.
const MOST_BUFFERS: usize = 256;

/// Unused buffers of type `B`.
#[derive(Debug)]
pub(super) struct Pool<B> {
    /// The buffers and their sizes, with the one first that was given back first.
    free: VecDeque<(u64, B)>,
    /// The bytes of all these buffers.
    bytes: u64,
    peak: Peak,
    /// Whether the device has nothing to do, and has got nothing for a while.
    is_resting: bool,
}

/// The most bytes that the program had at once.
#[derive(Debug, Default)]
struct Peak {
    /// The peak in this window.
    now: u64,
    /// The peak in the window before.
    before: u64,
    /// The number of takes in this window.
    takes: u32,
}

impl<B> Default for Pool<B> {
    fn default() -> Self {
        Self { free: VecDeque::new(), bytes: 0, peak: Peak::default(), is_resting: false }
    }
}

impl<B> Pool<B> {
    /// Takes a buffer of this size, if there is one. The program then has `used` bytes. If there is none, the
    /// pool makes room for a new buffer: the second part of the result goes back to the driver.
    pub(super) fn take(&mut self, size: u64, used: u64) -> (Option<B>, Vec<B>) {
        self.is_resting = false;
        self.peak.note(used);
        // The buffer that was given back last: more of it may be in the caches of the device.
        let at = self.free.iter().rposition(|&(of, _)| of == size);
        match at.and_then(|at| self.free.remove(at)) {
            Some((_, buffer)) => {
                self.bytes -= size;
                (Some(buffer), Vec::new())
            }
            None => (None, self.shrink(used)),
        }
    }

    /// Keeps a buffer that the program has given back. The program has `used` bytes without it. Returns the
    /// buffers that go back to the driver.
    pub(super) fn give_back(&mut self, size: u64, buffer: B, used: u64) -> Vec<B> {
        if self.is_resting {
            return vec![buffer];
        }
        self.bytes += size;
        self.free.push_back((size, buffer));
        self.shrink(used)
    }

    /// Takes all buffers, which go back to the driver.
    pub(super) fn clear(&mut self) -> Vec<B> {
        self.bytes = 0;
        mem::take(&mut self.free).into_iter().map(|(_, buffer)| buffer).collect()
    }

    /// Takes all buffers, which go back to the driver, and keeps no buffer until the next take.
    pub(super) fn rest(&mut self) -> Vec<B> {
        self.is_resting = true;
        self.clear()
    }

    /// Takes out the oldest buffers, until the device has no more memory than the program had at its peak.
    fn shrink(&mut self, used: u64) -> Vec<B> {
        let most = self.peak.bytes().saturating_sub(used).max(ALWAYS_KEPT);
        let mut surplus = Vec::new();
        while (self.bytes > most || self.free.len() > MOST_BUFFERS)
            && let Some((size, buffer)) = self.free.pop_front()
        {
            self.bytes -= size;
            surplus.push(buffer);
        }
        surplus
    }
}

impl Peak {
    /// Notes that the program has `used` bytes after a take.
    fn note(&mut self, used: u64) {
        if self.takes == WINDOW {
            *self = Self { now: 0, before: self.now, takes: 0 };
        }
        self.now = self.now.max(used);
        self.takes += 1;
    }

    fn bytes(&self) -> u64 {
        self.now.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::deadline;

    const LARGE: u64 = 100 << 20;

    #[test]
    fn a_buffer_goes_to_memory_of_its_size() {
        let _deadline = deadline();
        let mut pool = Pool::default();
        assert_eq!(pool.take(LARGE, LARGE), (None, vec![]));
        assert_eq!(pool.give_back(LARGE, 'a', 0), []);
        assert_eq!(
            pool.take(LARGE / 2, LARGE / 2),
            (None, vec!['a']),
            "both would be more than the program had"
        );
        assert_eq!(pool.take(8, LARGE / 2 + 8), (None, vec![]));
        assert_eq!(pool.give_back(8, 'b', LARGE / 2), []);
        assert_eq!(pool.give_back(LARGE / 2, 'c', 0), []);
        assert_eq!(pool.take(LARGE / 2, LARGE / 2), (Some('c'), vec![]));
        assert_eq!((pool.bytes, pool.take(8, LARGE / 2 + 8)), (8, (Some('b'), vec![])));
        assert_eq!(pool.bytes, 0);
    }

    #[test]
    fn a_device_that_rests_keeps_nothing() {
        let _deadline = deadline();
        let mut pool = Pool::default();
        assert_eq!(pool.take(LARGE, 2 * LARGE), (None, vec![]));
        assert_eq!(pool.give_back(LARGE, 'a', LARGE), []);
        assert_eq!(pool.rest(), ['a']);
        assert_eq!(pool.give_back(LARGE, 'b', 0), ['b']);
        assert_eq!(pool.take(LARGE, LARGE), (None, vec![]));
        assert_eq!(pool.give_back(LARGE, 'c', 0), []);
    }

    #[test]
    fn a_device_has_no_more_memory_than_the_program_had_lately() {
        let _deadline = deadline();
        let mut pool = Pool::default();
        for used in 1..=4 {
            assert_eq!(pool.take(LARGE, used * LARGE), (None, vec![]));
        }
        for buffer in 0..4 {
            assert_eq!(pool.give_back(LARGE, buffer, (3 - buffer) * LARGE), []);
        }
        let mut kept = vec![4];
        for take in 0..2 * u64::from(WINDOW) + 2 {
            let (taken, _) = pool.take(LARGE, LARGE);
            pool.give_back(LARGE, taken.unwrap_or(take), 0);
            kept.push(pool.free.len());
        }
        kept.dedup();
        assert_eq!(kept, [4, 1], "two windows later it has forgotten the peak");
    }

    #[test]
    fn the_number_of_buffers_is_limited() {
        let _deadline = deadline();
        let mut pool = Pool::default();
        let surplus = (0..1000).flat_map(|at| pool.give_back(4, at, 0)).collect::<Vec<_>>();
        assert_eq!(surplus, (0..1000 - MOST_BUFFERS).collect::<Vec<_>>(), "the oldest ones go first");
        assert_eq!(pool.clear().len(), MOST_BUFFERS);
        assert_eq!(pool.bytes, 0);
    }
}
