//! How many units to claim at a time where their cost is not known.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

/// How long a batch should take: long beside the 30 ns that a claim costs.
const BATCH_TIME: Range<Duration> = Duration::from_micros(4)..Duration::from_micros(32);

/// A batch size that one participant adapts to the time that its last batch took.
#[derive(Debug)]
pub(crate) struct AdaptiveBatch {
    size: usize,
    /// When the last batch was claimed.
    claimed: Option<Instant>,
}

impl AdaptiveBatch {
    pub(crate) const fn new() -> Self {
        Self { size: 1, claimed: None }
    }

    /// The size of the next batch: twice the last one if that was too short, half of it if it was too long.
    /// At most `most`.
    pub(crate) fn next(&mut self, most: usize) -> usize {
        let now = Instant::now();
        if let Some(claimed) = self.claimed.replace(now) {
            let took = now - claimed;
            if took < BATCH_TIME.start {
                self.size = (self.size * 2).min(most);
            } else if took > BATCH_TIME.end {
                self.size = (self.size / 2).max(1);
            }
        }
        self.size
    }
}
