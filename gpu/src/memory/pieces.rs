//! How a copy is cut into pieces.

use anabranch::device::Run;
use std::vec;

/// The most bytes of a piece.
pub(super) const PIECE: u64 = 4 << 20;

/// Whether a copy has several pieces.
pub(crate) fn is_large(runs: &[Run]) -> bool {
    total(runs) > PIECE
}

pub(super) fn total(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.bytes).sum()
}

/// The runs that the next bytes of a copy belong to.
pub(super) struct Places {
    runs: vec::IntoIter<Run>,
    next: Run,
}

impl Places {
    pub(super) fn new(runs: Vec<Run>) -> Self {
        Self { runs: runs.into_iter(), next: Run { offset: 0, bytes: 0 } }
    }

    /// Takes the places of this many bytes.
    pub(super) fn take(&mut self, mut bytes: u64) -> Vec<Run> {
        let mut taken = Vec::new();
        while bytes > 0 {
            if self.next.bytes == 0 {
                let Some(next) = self.runs.next() else { break };
                self.next = next;
                continue;
            }
            let part = Run { offset: self.next.offset, bytes: self.next.bytes.min(bytes) };
            self.next = Run { offset: part.offset + part.bytes, bytes: self.next.bytes - part.bytes };
            bytes -= part.bytes;
            taken.push(part);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::deadline;

    #[test]
    fn places_are_taken_one_after_the_other() {
        let _deadline = deadline();
        let run = |(offset, bytes)| Run { offset, bytes };
        let mut places = Places::new([(4, 8), (16, 0), (24, 12)].map(run).to_vec());
        assert_eq!(places.take(4), [(4, 4)].map(run));
        assert_eq!(places.take(8), [(8, 4), (24, 4)].map(run));
        assert_eq!(places.take(100), [(28, 8)].map(run));
        assert_eq!(places.take(4), []);
    }
}
