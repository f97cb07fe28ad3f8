//! The public part of the lists of halves: cells in which threads offer halves of joins to each other.
//!
//! Every worker owns a cell, and a few more cells are lent to threads from outside. Only the owner of a cell
//! puts a half into it, one at a time. The thread that exchanges the half for null has it. A word of bits
//! says which cells to look at. Only the owner of a cell changes its bit. The bit may be set while the cell
//! is empty (the half was stolen). It is clear while the cell is full only between the two stores of
//! [`offer`](Offers::offer).

use super::{
    half::{Head, Share},
    latch::{Latch, Outcome},
};
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use crossbeam_utils::CachePadded;
use std::ptr;

/// How many threads from outside can offer halves at a time; the bits of a word must suffice.
const GUESTS: usize = if cfg!(loom) { 1 } else { 32 };

#[derive(Debug)]
pub(crate) struct Offers {
    /// A bit for every cell.
    full: Box<[CachePadded<AtomicU64>]>,
    /// The cells of the workers, then those of threads from outside.
    cells: Box<[CachePadded<Cell>]>,
    /// A bit for every cell that is lent to a thread from outside.
    lent: CachePadded<AtomicU64>,
}

#[derive(Debug)]
struct Cell {
    offer: AtomicPtr<Head>,
    /// How many threads wait for halves that the owner runs, and would take its offers.
    waiters: AtomicU32,
}

impl Offers {
    pub(crate) fn new(workers: usize) -> Self {
        // Without workers no thread would take an offer.
        let cells = if workers == 0 { 0 } else { workers + GUESTS };
        let cell =
            |_| CachePadded::new(Cell { offer: AtomicPtr::new(ptr::null_mut()), waiters: AtomicU32::new(0) });
        Self {
            full: (0..cells.div_ceil(64)).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
            cells: (0..cells).map(cell).collect(),
            lent: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// Lends a cell to the calling thread, which is no worker, if one is left.
    pub(crate) fn lend(&self) -> Option<usize> {
        let mut lent = self.lent.load(Relaxed);
        loop {
            let guest = lent.trailing_ones() as usize;
            if guest >= GUESTS || self.cells.is_empty() {
                return None;
            }
            // Acquire: the cell is as its former owner left it.
            match self.lent.compare_exchange_weak(lent, lent | 1 << guest, Acquire, Relaxed) {
                Ok(_) => return Some(self.cells.len() - GUESTS + guest),
                Err(now) => lent = now,
            }
        }
    }

    /// Takes back a lent cell, which is empty.
    pub(crate) fn give_back(&self, cell: usize) {
        debug_assert!(self.is_empty(cell));
        self.lent.fetch_and(!(1 << (cell + GUESTS - self.cells.len())), Release);
    }

    /// Whether the cell is empty. Its owner calls this: only the owner may fill it.
    #[inline]
    pub(crate) fn is_empty(&self, cell: usize) -> bool {
        self.cells[cell].offer.load(Relaxed).is_null()
    }

    /// Offers a half in the calling thread's own, empty cell. A sleeping worker must be woken afterwards.
    pub(crate) fn offer(&self, cell: usize, half: *const Head) {
        // Release: the thread that takes the offer sees the half.
        self.cells[cell].offer.store(half.cast_mut(), Release);
        let (word, bit) = self.bit(cell);
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Takes the calling thread's own offer back; `false` if it was stolen.
    pub(crate) fn take_back(&self, cell: usize, half: *const Head) -> bool {
        // Relaxed: this thread has put it here.
        let taken =
            self.cells[cell].offer.compare_exchange(half.cast_mut(), ptr::null_mut(), Relaxed, Relaxed);
        // The cell is empty either way, because the owner offers one half at a time.
        let (word, bit) = self.bit(cell);
        word.fetch_and(!bit, Relaxed);
        taken.is_ok()
    }

    /// Whether a half is offered.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.marked_cells(0).any(|cell| !self.is_empty(cell))
    }

    /// Steals a half, if one is offered. It looks at the cell `first` and those after it first, so threads
    /// get in each other's way less.
    #[inline]
    pub(crate) fn steal(&self, first: usize) -> Option<*const Head> {
        self.marked_cells(first).find_map(|cell| self.steal_from(cell))
    }

    /// Steals the half in a cell, if there is one.
    #[inline]
    pub(crate) fn steal_from(&self, cell: usize) -> Option<*const Head> {
        let offer = &self.cells[cell].offer;
        let seen = offer.load(Relaxed);
        if seen.is_null() {
            return None;
        }
        // Acquire: pairs with the Release in `offer`.
        let taken = offer.compare_exchange(seen, ptr::null_mut(), Acquire, Relaxed);
        taken.ok().map(|half| half.cast_const())
    }

    /// Steals a half from the thief of another half (`share`), if what the thief offers descends from that
    /// half. The owner of that half calls this while it waits.
    ///
    /// A thread takes a half only when all of its own halves are done, so its cell is empty then. A half that
    /// is found there while it runs the stolen one was therefore put there by the stolen one. Whether the
    /// stolen one was still running is looked up *afterwards*: if the thief made the offer after its end,
    /// then stealing the offer (Acquire) has made the outcome visible. Such an offer is not ours to run, and
    /// is returned to its owner.
    pub(crate) fn steal_descendant(&self, share: &Share, thief: usize) -> Option<*const Head> {
        let stolen = self.steal_from(thief)?;
        if share.latch.outcome().is_none() {
            return Some(stolen);
        }
        // SAFETY: this thread alone has stolen the half, and sets its outcome once.
        unsafe { Latch::set(&raw const (*Head::share(stolen)).latch, Outcome::Returned) };
        None
    }

    /// Counts the calling thread as waiting for offers from the cell, or no longer.
    pub(crate) fn count_waiter(&self, cell: usize, waits: bool) {
        // Relaxed: a hint.
        self.cells[cell].waiters.fetch_add(if waits { 1 } else { u32::MAX }, Relaxed);
    }

    /// Whether a thread waits for offers from the cell (a hint).
    pub(crate) fn has_waiters(&self, cell: usize) -> bool {
        self.cells[cell].waiters.load(Relaxed) > 0
    }

    fn bit(&self, cell: usize) -> (&AtomicU64, u64) {
        (&self.full[cell / 64], 1 << (cell % 64))
    }

    /// The cells whose bits are set, beginning with the word of cell `first` and the bits from it on.
    fn marked_cells(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        let words = self.full.len();
        (0..words).flat_map(move |i| {
            let word = (first / 64 + i) % words;
            let turn = (first % 64) as u32;
            // Relaxed: a hint. The half is read from its cell.
            let mut bits = self.full[word].load(Relaxed).rotate_right(turn);
            std::iter::from_fn(move || {
                let next = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (next < 64).then(|| word * 64 + ((next + turn) % 64) as usize)
            })
        })
    }
}
