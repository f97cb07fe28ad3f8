//! A queue that allocates nothing once it is warm.
//!
//! An entry goes into a ring. If the ring is full, the entry goes to a list behind a lock, and so do later
//! entries until that list is empty. A thread that finds the ring empty takes from the list, and moves more
//! of it to the ring, so that the lock is seldom taken. Under the lock it looks into the ring first. So of
//! the entries that one thread has added, none is taken before an earlier one.

use crossbeam_queue::ArrayQueue;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    fmt,
    sync::atomic::{AtomicUsize, Ordering::*},
};

/// The capacity of the ring.
const RING: usize = 256;

/// The number of entries that are moved from the list to the ring at a time.
const MOVED: usize = RING / 2;

pub(crate) struct Fifo<T> {
    ring: ArrayQueue<T>,
    overflow: Mutex<VecDeque<T>>,
    /// The length of `overflow`; written under its lock.
    overflow_len: AtomicUsize,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { ring: ArrayQueue::new(RING), overflow: Mutex::default(), overflow_len: AtomicUsize::new(0) }
    }
}

impl<T> Fifo<T> {
    #[inline]
    pub(crate) fn push(&self, entry: T) {
        // A thread that has added an entry to the list sees that the list is not empty until that entry has
        // left it. Acquire: then the entry that it adds to the ring comes after those that were moved there.
        let full = if self.overflow_len.load(Acquire) == 0 { self.ring.push(entry) } else { Err(entry) };
        if let Err(entry) = full {
            let mut overflow = self.overflow.lock();
            overflow.push_back(entry);
            self.overflow_len.store(overflow.len(), Relaxed);
        }
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        let entry = self.ring.pop();
        if entry.is_some() || self.overflow_len.load(Relaxed) == 0 {
            return entry;
        }
        let mut overflow = self.overflow.lock();
        // An entry in the list is younger than the entries that its thread has in the ring, so the ring comes
        // first.
        let entry = self.ring.pop().or_else(|| overflow.pop_front());
        self.refill(&mut overflow);
        entry
    }

    /// Moves entries from the list to the ring.
    #[cold]
    fn refill(&self, overflow: &mut VecDeque<T>) {
        for _ in 0..MOVED {
            let Some(entry) = overflow.pop_front() else { break };
            if let Err(entry) = self.ring.push(entry) {
                overflow.push_front(entry);
                break;
            }
        }
        // Release: see `push`.
        self.overflow_len.store(overflow.len(), Release);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.overflow_len.load(Relaxed) == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.overflow_len.load(Relaxed)
    }
}

impl<T> fmt::Debug for Fifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fifo").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Fifo, RING};
    use std::thread;

    #[test]
    fn entries_that_do_not_fit_into_the_ring_come_after_it() {
        let _deadline = testing::deadline();
        let fifo = Fifo::default();
        (0..3 * RING).for_each(|i| fifo.push(i));
        assert_eq!(fifo.len(), 3 * RING);
        assert_eq!(fifo.pop(), Some(0));
        fifo.push(3 * RING);
        assert!((1..=3 * RING).all(|i| fifo.pop() == Some(i)));
        assert!(fifo.is_empty() && fifo.pop().is_none());
    }

    /// Each consumer sees the entries of each producer in their order.
    #[test]
    fn the_order_of_one_thread_is_kept() {
        let _deadline = testing::deadline();
        let fifo = &Fifo::default();
        thread::scope(|threads| {
            let producers = [0, 1]
                .map(|producer| threads.spawn(move || (0..20_000).for_each(|i| fifo.push((producer, i)))));
            let consumers = [(); 2].map(|()| {
                threads.spawn(|| {
                    let mut last = [-1; 2];
                    for _ in 0..20_000 {
                        let (producer, i) = loop {
                            match fifo.pop() {
                                Some(entry) => break entry,
                                None => thread::yield_now(),
                            }
                        };
                        assert!(last[producer] < i);
                        last[producer] = i;
                    }
                })
            });
            producers.into_iter().for_each(|t| t.join().unwrap());
            consumers.into_iter().for_each(|t| t.join().unwrap());
        });
        assert!(fifo.is_empty());
    }
}
