//! The region slots of a pool, and which of them are open.
//!
//! One word has a bit for each slot that may be joined, so an idle worker reads one word to find a region.

use super::{
    body::ErasedBody,
    claims::Counters,
    slot::{Joined, Slot},
};
use crate::sync::atomic::{AtomicU64, Ordering::*};
use crossbeam_utils::CachePadded;

/// How many regions can be open at a time; the bits of a word must suffice. Further regions are run by their
/// openers alone.
const SLOTS: usize = 32;

#[derive(Debug)]
pub(crate) struct RegionSlots {
    open: CachePadded<AtomicU64>,
    slots: Box<[CachePadded<RegionSlot>]>,
}

/// The place of one region at a time.
#[derive(Debug)]
pub(crate) struct RegionSlot {
    pub(super) slot: Slot<ErasedBody>,
    pub(super) counters: Counters,
}

impl RegionSlots {
    /// The slots of a pool with `workers` workers.
    pub(crate) fn new(workers: usize) -> Self {
        let slots = if workers == 0 { 0 } else { SLOTS };
        let slot =
            |_| CachePadded::new(RegionSlot { slot: Slot::new(), counters: Counters::new(workers + 1) });
        Self { open: CachePadded::new(AtomicU64::new(0)), slots: (0..slots).map(slot).collect() }
    }

    /// Claims a free slot for a region that the calling thread is about to open; `None` if none is free.
    pub(super) fn claim(&self) -> Option<usize> {
        self.slots.iter().position(|place| place.slot.try_claim())
    }

    pub(super) fn get(&self, slot: usize) -> &RegionSlot {
        &self.slots[slot]
    }

    /// Shows the slot, which has been opened, to idle workers. One of them must be woken afterwards.
    pub(super) fn show(&self, slot: usize) {
        // Release: a worker that sees the bit sees the slot open.
        self.open.fetch_or(1 << slot, Release);
    }

    /// Hides the slot from idle workers.
    pub(super) fn hide(&self, slot: usize) {
        if self.open.load(Relaxed) & 1 << slot != 0 {
            self.open.fetch_and(!(1 << slot), Relaxed);
        }
    }

    /// Whether a slot is shown (a hint, for one load).
    pub(crate) fn any_shown(&self) -> bool {
        self.open.load(Relaxed) != 0
    }

    /// Whether a thread could join a region, the slots whose bits are set in `except` left out.
    pub(crate) fn any_joinable(&self, except: u64) -> bool {
        let mut open = self.open.load(Acquire) & !except;
        while open != 0 {
            let slot = open.trailing_zeros() as usize;
            if self.slots[slot].slot.is_joinable() {
                return true;
            }
            open &= open - 1;
        }
        false
    }

    /// Joins an open region, if there is one. Also returns the number of its slot.
    pub(super) fn join(&self) -> Option<(usize, Joined<'_, ErasedBody>)> {
        let mut open = self.open.load(Acquire);
        while open != 0 {
            let slot = open.trailing_zeros() as usize;
            open &= open - 1;
            if let Some(joined) = self.slots[slot].slot.join() {
                return Some((slot, joined));
            }
        }
        None
    }
}
