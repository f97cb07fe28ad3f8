//! Where threads offer halves of their joins to others.
//!
//! Every worker has a cell; a few more are lent to threads from outside. Only the owner of a cell puts something in, one
//! thing at a time; whoever exchanges it for nothing has it. A word of bits says which cells are worth a look. Only the owner changes its
//! bit: it may be set where the cell is empty (somebody has taken the offer), but never the other way round for long.

use super::half::Head;
use crate::sync::{
    Padded,
    atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*},
};
use std::ptr;

/// How many threads from outside can offer something at a time. One bit each in a word.
const GUESTS: usize = if cfg!(loom) { 1 } else { 32 };

#[derive(Debug)]
pub(crate) struct Board {
    /// A bit for every cell.
    raised: Box<[Padded<AtomicU64>]>,
    /// Those of the workers, then those of the guests.
    cells: Box<[Padded<Cell>]>,
    /// A bit for every guest's cell that is lent.
    lent: Padded<AtomicU64>,
}

#[derive(Debug)]
struct Cell {
    offer: AtomicPtr<Head>,
    /// How many threads wait for something that the owner runs, and would take its offers.
    waiting: AtomicU32,
}

impl Board {
    pub(crate) fn new(workers: usize) -> Self {
        // Where there are no workers, nobody would take anything.
        let cells = if workers == 0 { 0 } else { workers + GUESTS };
        let cell = |_| Padded(Cell { offer: AtomicPtr::new(ptr::null_mut()), waiting: AtomicU32::new(0) });
        Self {
            raised: (0..cells.div_ceil(64)).map(|_| Padded(AtomicU64::new(0))).collect(),
            cells: (0..cells).map(cell).collect(),
            lent: Padded(AtomicU64::new(0)),
        }
    }

    /// Lends a cell to a thread that is no worker, if one is left.
    pub(crate) fn lend(&self) -> Option<usize> {
        let mut lent = self.lent.load(Relaxed);
        loop {
            let guest = lent.trailing_ones() as usize;
            if guest >= GUESTS || self.cells.is_empty() {
                return None;
            }
            // Acquire: the cell is as its former owner has left it.
            match self.lent.compare_exchange_weak(lent, lent | 1 << guest, Acquire, Relaxed) {
                Ok(_) => return Some(self.cells.len() - GUESTS + guest),
                Err(now) => lent = now,
            }
        }
    }

    /// Takes a lent cell back; it is empty.
    pub(crate) fn give_back(&self, cell: usize) {
        debug_assert!(self.is_empty(cell));
        self.lent.fetch_and(!(1 << (cell + GUESTS - self.cells.len())), Release);
    }

    /// Whether the cell is empty: for its owner, who alone may fill it.
    #[inline]
    pub(crate) fn is_empty(&self, cell: usize) -> bool {
        self.cells[cell].offer.load(Relaxed).is_null()
    }

    /// Puts an offer into the owner's empty cell. Sleepers have to be woken afterwards.
    pub(crate) fn offer(&self, cell: usize, what: *const Head) {
        // Release: whoever takes the offer sees what it points to.
        self.cells[cell].offer.store(what.cast_mut(), Release);
        let (word, bit) = self.bit(cell);
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Takes the owner's offer back; `false` where somebody has taken it.
    pub(crate) fn take_back(&self, cell: usize, what: *const Head) -> bool {
        // Relaxed: it was put here by this thread.
        let taken =
            self.cells[cell].offer.compare_exchange(what.cast_mut(), ptr::null_mut(), Relaxed, Relaxed);
        // The cell is empty either way: the owner offers one thing at a time.
        let (word, bit) = self.bit(cell);
        word.fetch_and(!bit, Relaxed);
        taken.is_ok()
    }

    /// Whether anything is offered.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.raised_cells(0).any(|cell| !self.is_empty(cell))
    }

    /// Takes an offer, if there is one, and looks at `first` and the cells after it first: so threads get in each other's way less.
    #[inline]
    pub(crate) fn take(&self, first: usize) -> Option<*const Head> {
        self.raised_cells(first).find_map(|cell| self.take_from(cell))
    }

    /// Takes the offer in a cell, if there is one.
    #[inline]
    pub(crate) fn take_from(&self, cell: usize) -> Option<*const Head> {
        let offer = &self.cells[cell].offer;
        let seen = offer.load(Relaxed);
        if seen.is_null() {
            return None;
        }
        // Acquire: pairs with the Release in `offer`.
        let taken = offer.compare_exchange(seen, ptr::null_mut(), Acquire, Relaxed);
        taken.ok().map(|half| half.cast_const())
    }

    /// Counts the calling thread among those that would take offers from the cell, or no longer.
    pub(crate) fn count_waiting(&self, cell: usize, waits: bool) {
        // Relaxed: a hint.
        self.cells[cell].waiting.fetch_add(if waits { 1 } else { u32::MAX }, Relaxed);
    }

    /// Whether somebody waits for what the owner of the cell runs.
    pub(crate) fn has_waiting(&self, cell: usize) -> bool {
        self.cells[cell].waiting.load(Relaxed) > 0
    }

    fn bit(&self, cell: usize) -> (&AtomicU64, u64) {
        (&self.raised[cell / 64].0, 1 << (cell % 64))
    }

    /// The cells whose bits are set, beginning with the word of cell `first` and the bits from it on.
    fn raised_cells(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        let words = self.raised.len();
        (0..words).flat_map(move |i| {
            let word = (first / 64 + i) % words;
            let turn = (first % 64) as u32;
            // Relaxed: what matters is read from the cell.
            let mut bits = self.raised[word].load(Relaxed).rotate_right(turn);
            std::iter::from_fn(move || {
                let next = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (next < 64).then(|| word * 64 + ((next + turn) % 64) as usize)
            })
        })
    }
}
