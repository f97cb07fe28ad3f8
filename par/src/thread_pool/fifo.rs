//! A queue that allocates nothing once it is warm.
//!
//! A ring comes first; what does not fit there goes to a list behind a lock, and so does everything while that list is not
//! empty. Whoever takes from the list has looked into the ring under the lock. So of the entries that one thread has added,
//! none is taken before an earlier one.

use crossbeam_queue::ArrayQueue;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    fmt,
    sync::atomic::{AtomicUsize, Ordering::*},
};

/// How many entries the ring has.
const RING: usize = 256;

pub(crate) struct Fifo<T> {
    ring: ArrayQueue<T>,
    overflow: Mutex<VecDeque<T>>,
    /// How long `overflow` is; written under its lock.
    waiting: AtomicUsize,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { ring: ArrayQueue::new(RING), overflow: Mutex::default(), waiting: AtomicUsize::new(0) }
    }
}

impl<T> Fifo<T> {
    #[inline]
    pub(crate) fn push(&self, entry: T) {
        // Relaxed: a thread that has put something into the list sees that it is not empty until that has been taken.
        let full = if self.waiting.load(Relaxed) == 0 { self.ring.push(entry) } else { Err(entry) };
        if let Err(entry) = full {
            let mut overflow = self.overflow.lock();
            overflow.push_back(entry);
            self.waiting.store(overflow.len(), Relaxed);
        }
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        let entry = self.ring.pop();
        if entry.is_some() || self.waiting.load(Relaxed) == 0 {
            return entry;
        }
        let mut overflow = self.overflow.lock();
        // What is in the list came after what its thread had put into the ring: that must be gone.
        let entry = self.ring.pop().or_else(|| overflow.pop_front());
        self.waiting.store(overflow.len(), Relaxed);
        entry
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.waiting.load(Relaxed) == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.waiting.load(Relaxed)
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
    fn what_does_not_fit_into_the_ring_comes_after_it() {
        let fifo = Fifo::default();
        (0..3 * RING).for_each(|i| fifo.push(i));
        assert_eq!(fifo.len(), 3 * RING);
        assert_eq!(fifo.pop(), Some(0));
        fifo.push(3 * RING);
        assert!((1..=3 * RING).all(|i| fifo.pop() == Some(i)));
        assert!(fifo.is_empty() && fifo.pop().is_none());
    }

    /// Each taker sees the entries of each giver in their order.
    #[test]
    fn the_order_of_one_thread_is_kept() {
        let fifo = &Fifo::default();
        thread::scope(|threads| {
            let givers =
                [0, 1].map(|giver| threads.spawn(move || (0..20_000).for_each(|i| fifo.push((giver, i)))));
            let takers = [(); 2].map(|()| {
                threads.spawn(|| {
                    let mut last = [-1; 2];
                    for _ in 0..20_000 {
                        let (giver, i) = loop {
                            match fifo.pop() {
                                Some(entry) => break entry,
                                None => thread::yield_now(),
                            }
                        };
                        assert!(last[giver] < i);
                        last[giver] = i;
                    }
                })
            });
            givers.into_iter().for_each(|t| t.join().unwrap());
            takers.into_iter().for_each(|t| t.join().unwrap());
        });
        assert!(fifo.is_empty());
    }
}
