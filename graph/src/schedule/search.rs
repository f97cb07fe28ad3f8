//! From open tasks to the set that starts, in blocks of as many tasks as [`largest`] takes.

use super::{
    cover::Cover,
    largest::{BLOCK, largest},
    queue::Key,
    tasks::{Contender, Tasks},
};

/// The tasks of a block that use an object, as bits.
#[derive(Clone, Copy, Debug, Default)]
struct Bits {
    search: u64,
    relaxed: u64,
    exclusive: u64,
}

/// The search for a large set of tasks without a conflict.
#[derive(Debug)]
pub(super) struct Search {
    candidates: usize,
    /// The number of blocks that were searched.
    searches: u64,
    /// By object; valid if `search` is the current search.
    bits: Vec<Bits>,
    // The rest is empty between calls and kept for its memory.
    sorted: Vec<(Key, u32)>,
    counts: Vec<u32>,
    block: Vec<(Key, u32)>,
}

impl Search {
    pub(super) fn new(candidates: usize) -> Self {
        let (bits, sorted, counts, block) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { candidates, searches: 0, bits, sorted, counts, block }
    }

    /// Starts a large set of the open tasks; the rest waits. Leaves `open` empty.
    pub(super) fn choose(
        &mut self,
        tasks: &mut Tasks,
        cover: &Cover,
        open: &mut Vec<(Key, u32)>,
        start: &mut Vec<Contender>,
    ) {
        if open.is_empty() {
            return;
        }
        if let [(_, slot)] = open[..] {
            tasks.start(slot, start);
        } else if open.len() <= BLOCK {
            open.sort_unstable();
            std::mem::swap(open, &mut self.block);
            self.choose_in_block(tasks, start);
        } else {
            self.sort_by_conflicts(tasks, cover, open);
            for (key, slot) in open.drain(..) {
                // Tasks that earlier blocks have started may be in conflict with this one.
                if !tasks.wait(key, slot) {
                    self.block.push((key, slot));
                }
                if self.block.len() == BLOCK {
                    self.choose_in_block(tasks, start);
                }
            }
            self.choose_in_block(tasks, start);
        }
        open.clear();
    }

    /// Sorts tasks by the number of their conflicts, as far as it is cheap to know, then by age.
    fn sort_by_conflicts(&mut self, tasks: &Tasks, cover: &Cover, open: &mut Vec<(Key, u32)>) {
        const MOST: usize = 511;
        open.sort_unstable();
        let mut ends = [0; MOST + 2];
        for &(_, slot) in open.iter() {
            let explicit = cover.of(slot);
            let named = match explicit.named as usize {
                0 => 0,
                named => tasks.objects.conflicts(&tasks[slot as usize].uses[..named]),
            };
            let conflicts = (named + explicit.partners as usize).min(MOST);
            self.counts.push(conflicts as u32);
            ends[conflicts + 1] += 1;
        }
        (0..=MOST).for_each(|n| ends[n + 1] += ends[n]);
        self.sorted.resize(open.len(), (Key::default(), 0));
        for (&task, conflicts) in open.iter().zip(self.counts.drain(..)) {
            let end = &mut ends[conflicts as usize];
            self.sorted[*end] = task;
            *end += 1;
        }
        std::mem::swap(open, &mut self.sorted);
        self.sorted.clear();
    }

    /// Starts the largest conflict-free set of the block that is found; the rest waits.
    fn choose_in_block(&mut self, tasks: &mut Tasks, start: &mut Vec<Contender>) {
        let mut rows = [0; BLOCK];
        let rows = &mut rows[..self.block.len()];
        self.find_conflicts(tasks, rows);
        let set = largest(rows, self.candidates);
        let mut block = std::mem::take(&mut self.block);
        for (i, &(_, slot)) in block.iter().enumerate() {
            if set >> i & 1 == 1 {
                tasks.start(slot, start);
            }
        }
        for (i, (key, slot)) in block.drain(..).enumerate() {
            if set >> i & 1 == 0 {
                let waits = tasks.wait(key, slot);
                assert!(waits, "a conflict-free set could be larger: that is a bug in the search");
            }
        }
        self.block = block;
    }

    /// Fills the adjacency matrix of the block.
    fn find_conflicts(&mut self, tasks: &Tasks, rows: &mut [u64]) {
        self.searches += 1;
        self.bits.resize(tasks.objects.slots(), Bits::default());
        for (i, &(_, slot)) in self.block.iter().enumerate() {
            for used in &tasks[slot as usize].uses {
                let bits = &mut self.bits[used.object()];
                if bits.search != self.searches {
                    *bits = Bits { search: self.searches, ..Bits::default() };
                }
                if used.exclusive() {
                    rows[i] |= bits.exclusive | bits.relaxed;
                    bits.exclusive |= 1 << i;
                } else {
                    rows[i] |= bits.exclusive;
                    bits.relaxed |= 1 << i;
                }
            }
        }
        // So far each row holds only the older tasks.
        for i in 0..rows.len() {
            let mut older = rows[i] & ((1 << i) - 1);
            while older != 0 {
                rows[older.trailing_zeros() as usize] |= 1 << i;
                older &= older - 1;
            }
        }
    }
}
