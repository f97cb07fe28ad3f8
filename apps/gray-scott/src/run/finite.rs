//! The check that a frame is finite.
//!
//! The tasks that compute a frame look at each row just after they have written it, while it is in the cache.
//! A device looks at its frames itself (`on_device/first.rs`). The task that stores the frame asks for their
//! findings. The lowest position wins, so that the answer does not depend on the order of the tasks.

use anabranch::prelude::*;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The findings of the tasks that compute one frame. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Findings(Arc<AtomicU64>);

impl Default for Findings {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl Findings {
    /// Records a value that is not finite: `cell` counts row after row. The parameters limit the cells of a
    /// grid to 63 bits.
    #[cold]
    pub(super) fn record(&self, cell: u64, in_v: bool) {
        // Relaxed: the task that asks depends on the tasks that record.
        self.0.fetch_min(cell << 1 | u64::from(in_v), Ordering::Relaxed);
    }

    /// The finding at the lowest position, U before V: the cell, and whether it is V.
    pub(super) fn first(&self) -> Option<(u64, bool)> {
        match self.lowest() {
            u64::MAX => None,
            found => Some((found >> 1, found & 1 == 1)),
        }
    }

    /// The finding at the lowest position as a number, for other tasks.
    pub(super) fn lowest(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes the lowest finding to the element of the first row of a tile, for the tasks that ask for it.
    pub(super) fn tell(&self, tile: &Tile<2>, found: &mut WriteView<'_, u64, 1>) {
        let (nothing, first) = (Self::default().lowest(), tile.rows().start);
        found.fill_with(|[row]| if row == first { self.lowest() } else { nothing });
    }

    /// The findings of all tiles, of each its lowest.
    pub(super) fn of_all(lowest: impl IntoIterator<Item = u64>) -> Self {
        Self(Arc::new(AtomicU64::new(lowest.into_iter().min().unwrap_or(u64::MAX))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_position_wins_in_any_order() {
        let _deadline = testing::deadline();
        let findings = Findings::default();
        assert_eq!(findings.first(), None);
        findings.clone().record(70, false);
        findings.record(7, true);
        findings.record(8, false);
        assert_eq!(findings.first(), Some((7, true)));
        findings.record(7, false);
        assert_eq!(findings.first(), Some((7, false)));
    }
}
