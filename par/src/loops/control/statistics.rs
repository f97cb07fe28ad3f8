//! Statistics of a loop, by participant.

use crate::current::participant;
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// How the work of a loop was shared: see [`Loop::statistics`](crate::Loop::statistics).
///
/// ```
/// use anabranch_par::{Statistics, prelude::*};
///
/// let statistics = Statistics::new();
/// (0..1000).par().statistics(&statistics).scratch(Vec::<u8>::new).for_each(|_, _| ());
/// let participants = statistics.participants();
/// assert_eq!(participants.iter().map(|p| p.items).sum::<usize>(), 1000);
/// assert!(statistics.scratch_initialisations() <= participants.len());
/// ```
#[derive(Debug, Default)]
pub struct Statistics(Mutex<Vec<ParticipantStatistics>>);

/// The work of one participant of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticipantStatistics {
    /// Its [index](crate::Participant::index).
    pub index: usize,
    /// The number of chunks that it claimed.
    pub chunks: usize,
    /// The number of items in these chunks.
    pub items: usize,
    /// How many times it made scratch.
    pub scratch_initialisations: usize,
    /// The time from its arrival until nothing was left to claim.
    pub time: Duration,
}

impl Statistics {
    /// Statistics of no loop yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The participants of the last loop, by index.
    pub fn participants(&self) -> Vec<ParticipantStatistics> {
        let mut all = self.0.lock().clone();
        all.sort_by_key(|p| p.index);
        all
    }

    /// The number of chunks.
    pub fn chunks(&self) -> usize {
        self.0.lock().iter().map(|p| p.chunks).sum()
    }

    /// How many times participants made scratch.
    pub fn scratch_initialisations(&self) -> usize {
        self.0.lock().iter().map(|p| p.scratch_initialisations).sum()
    }

    /// The longest time of a participant, as a multiple of the mean time: 1 if all worked for the same time,
    /// *n* if one of *n* did everything. 1 if there was no loop.
    pub fn imbalance(&self) -> f64 {
        let all = self.0.lock();
        let times = all.iter().map(|p| p.time.as_secs_f64());
        let (longest, sum) = times.fold((0.0_f64, 0.0), |(longest, sum), t| (longest.max(t), sum + t));
        // Rounding must not bring it below 1.
        if sum > 0.0 { (longest * all.len() as f64 / sum).max(1.0) } else { 1.0 }
    }

    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    pub(super) fn add(&self, participant: ParticipantStatistics) {
        self.0.lock().push(participant);
    }
}

/// The counts of one participant while it works.
pub(super) struct Tally {
    counts: ParticipantStatistics,
    start: Instant,
}

impl Tally {
    pub(super) fn new() -> Self {
        let counts = ParticipantStatistics {
            index: participant().map_or(0, |p| p.index()),
            chunks: 0,
            items: 0,
            scratch_initialisations: 0,
            time: Duration::ZERO,
        };
        Self { counts, start: Instant::now() }
    }

    /// Counts a chunk of `items` items.
    #[inline]
    pub(super) fn add_chunk(&mut self, items: usize) {
        self.counts.chunks += 1;
        self.counts.items += items;
    }

    #[inline]
    pub(super) fn add_scratch(&mut self) {
        self.counts.scratch_initialisations += 1;
    }

    pub(super) fn finish(self) -> ParticipantStatistics {
        ParticipantStatistics { time: self.start.elapsed(), ..self.counts }
    }
}
