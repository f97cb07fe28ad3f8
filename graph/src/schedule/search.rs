//! From open tasks to the set that is started: in blocks of as many tasks as [`largest`] takes.

use super::{
    ConflictScheduler,
    largest::{BLOCK, largest},
    queue::Key,
};
use crate::task::TaskId;

/// The tasks of a search that have an effect on an object, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bits {
    search: u64,
    relaxed: u64,
    exclusive: u64,
}

impl ConflictScheduler {
    /// Starts a large set of the open tasks; the others wait.
    pub(super) fn choose(&mut self, start: &mut Vec<TaskId>) {
        let mut open = std::mem::take(&mut self.open);
        if let [(_, slot)] = open[..] {
            self.start(slot, start);
        } else if open.len() <= BLOCK {
            open.sort_unstable();
            std::mem::swap(&mut open, &mut self.block);
            self.choose_in_block(start);
        } else {
            self.sort_by_conflicts(&mut open);
            for (key, slot) in open.drain(..) {
                // What earlier blocks have started may be in the way.
                if !self.waits(key, slot) {
                    self.block.push((key, slot));
                }
                if self.block.len() == BLOCK {
                    self.choose_in_block(start);
                }
            }
            self.choose_in_block(start);
        }
        open.clear();
        self.open = open;
    }

    /// Sorts tasks by the number of their conflicts, as far as it is known for little, then by age.
    fn sort_by_conflicts(&mut self, open: &mut Vec<(Key, u32)>) {
        const MOST: usize = 511;
        open.sort_unstable();
        let mut ends = [0; MOST + 2];
        for (_, slot) in open.iter() {
            let explicit = &self.explicit[*slot as usize];
            let named = match explicit.named as usize {
                0 => 0,
                named => self.objects.conflicts(&self.tasks[*slot as usize].members[..named]),
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

    /// Starts the largest conflict-free set of the block that is found; the others wait.
    fn choose_in_block(&mut self, start: &mut Vec<TaskId>) {
        let mut rows = [0; BLOCK];
        let rows = &mut rows[..self.block.len()];
        self.conflicts(rows);
        let set = largest(rows, self.candidates);
        let mut block = std::mem::take(&mut self.block);
        for (i, &(_, slot)) in block.iter().enumerate() {
            if set >> i & 1 == 1 {
                self.start(slot, start);
            }
        }
        for (i, (key, slot)) in block.drain(..).enumerate() {
            if set >> i & 1 == 0 {
                let waits = self.waits(key, slot);
                assert!(waits, "a conflict-free set could be larger: that is a bug in the search");
            }
        }
        self.block = block;
    }

    /// The adjacency matrix of the block.
    fn conflicts(&mut self, rows: &mut [u64]) {
        self.searches += 1;
        self.bits.resize(self.objects.slots(), Bits::default());
        for (i, &(_, slot)) in self.block.iter().enumerate() {
            for member in &self.tasks[slot as usize].members {
                let bits = &mut self.bits[member.object()];
                if bits.search != self.searches {
                    *bits = Bits { search: self.searches, ..Bits::default() };
                }
                if member.exclusive() {
                    rows[i] |= bits.exclusive | bits.relaxed;
                    bits.exclusive |= 1 << i;
                } else {
                    rows[i] |= bits.exclusive;
                    bits.relaxed |= 1 << i;
                }
            }
        }
        // So far each knows the older ones.
        for i in 0..rows.len() {
            let mut older = rows[i] & ((1 << i) - 1);
            while older != 0 {
                rows[older.trailing_zeros() as usize] |= 1 << i;
                older &= older - 1;
            }
        }
    }
}
