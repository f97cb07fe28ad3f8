//! How the items of a region are dealt out to its participants: from shared cursors, in runs of a *grain*.
//!
//! With [`Schedule::Cursor`] there is one cursor. With [`Schedule::Static`] there is one per block: a participant
//! empties its own block first (the same block for the same worker in every region, so that caches stay warm) and
//! then helps with the others, because a worker that is late must not hold the region up.

use crate::sync::{
    Padded,
    atomic::{AtomicUsize, Ordering::*},
};
use std::ops::Range;

/// How the items of a region are dealt out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// One shared cursor: whoever is free takes the next items, in ascending order.
    #[default]
    Cursor,
    /// As many blocks of consecutive items as the region has participants. A worker takes the same block in every
    /// region of the same shape, and what others have not begun when its own is done.
    Static,
}

/// A cursor over runs of items; it counts runs, so that it passes its end by no more than the number of participants.
#[derive(Debug, Default)]
struct Block {
    next: AtomicUsize,
    end: AtomicUsize,
}

/// The cursors of one slot; reused for every region that is opened there.
#[derive(Debug)]
pub(crate) struct Claims {
    blocks: Box<[Padded<Block>]>,
}

/// What the participants of one region need to know to claim items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deal {
    blocks: usize,
    items: usize,
    grain: usize,
}

impl Claims {
    /// For regions of up to `participants` participants.
    pub(crate) fn new(participants: usize) -> Self {
        Self { blocks: (0..participants).map(|_| Padded::default()).collect() }
    }

    /// Lays out `items` for a new region. Nobody else may be using these cursors.
    pub(crate) fn deal(&self, items: usize, schedule: Schedule, participants: usize, grain: usize) -> Deal {
        let blocks = match schedule {
            Schedule::Cursor => 1,
            Schedule::Static => participants.min(self.blocks.len()),
        };
        let runs = items.div_ceil(grain);
        let (each, longer) = (runs / blocks, runs % blocks);
        let begin = |i: usize| each * i + longer.min(i);
        for (i, block) in self.blocks[..blocks].iter().enumerate() {
            // Relaxed: the region is opened with Release afterwards.
            block.next.store(begin(i), Relaxed);
            block.end.store(begin(i + 1), Relaxed);
        }
        Deal { blocks, items, grain }
    }

    /// The claims of a participant whose own block is `home`.
    pub(crate) fn of(&self, deal: Deal, home: usize) -> impl FnMut() -> Option<Range<usize>> + '_ {
        let mut visited = 0;
        move || {
            while visited < deal.blocks {
                let block = &self.blocks[(home + visited) % deal.blocks];
                let end = block.end.load(Relaxed);
                // The look before the increment bounds how far a cursor runs past its end.
                if block.next.load(Relaxed) < end {
                    let run = block.next.fetch_add(1, Relaxed);
                    if run < end {
                        let start = run * deal.grain;
                        return Some(start..start + deal.grain.min(deal.items - start));
                    }
                }
                visited += 1;
            }
            None
        }
    }

    /// Whether an item is left that nobody has claimed (a hint).
    pub(crate) fn surplus(&self, deal: Deal) -> bool {
        self.blocks[..deal.blocks].iter().any(|b| b.next.load(Relaxed) < b.end.load(Relaxed))
    }
}
