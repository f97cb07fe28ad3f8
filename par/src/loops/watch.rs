//! What is looked at between the chunks of a loop: cancellation, deadlines, progress, statistics.

use crate::CancellationToken;
use parking_lot::Mutex;
use std::{
    fmt,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::*},
    time::{Duration, Instant},
};

/// How far a loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Items that are done.
    pub done: usize,
    /// All items.
    pub items: usize,
    /// The time since the loop began.
    pub elapsed: Duration,
}

/// Who is told of it.
#[derive(Clone, Copy)]
pub(super) enum Reporter<'a> {
    Call(&'a (dyn Fn(Progress) + Sync)),
    #[cfg(feature = "indicatif")]
    Bar(&'a indicatif::ProgressBar),
}

impl Reporter<'_> {
    fn report(self, progress: Progress) {
        match self {
            Self::Call(call) => call(progress),
            #[cfg(feature = "indicatif")]
            Self::Bar(bar) => {
                bar.set_length(progress.items as u64);
                bar.set_position(progress.done as u64);
            }
        }
    }
}

impl fmt::Debug for Reporter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}

/// What the program wants to be looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch<'a> {
    pub(super) token: Option<&'a CancellationToken>,
    pub(super) deadline: Option<Instant>,
    pub(super) progress: Option<(Duration, Reporter<'a>)>,
    pub(super) statistics: Option<&'a Statistics>,
}

/// Why a loop is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Cancelled,
    DeadlineExceeded,
}

impl Watch<'_> {
    /// Whether anything needs chunks to end often.
    pub(super) fn is_awake(&self) -> bool {
        self.token.is_some() || self.deadline.is_some() || self.progress.is_some()
    }

    /// Whether the loop is to go on.
    #[inline]
    pub(super) fn cut(&self) -> Option<Cut> {
        if self.token.is_some_and(CancellationToken::is_cancelled) {
            Some(Cut::Cancelled)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Cut::DeadlineExceeded)
        } else {
            None
        }
    }
}

/// What a watched loop counts.
#[derive(Debug)]
pub(super) struct Meter {
    begun: Instant,
    items: usize,
    pub(super) done: AtomicUsize,
    /// When progress was last told, in nanoseconds since the beginning.
    told: AtomicU64,
    telling: Mutex<()>,
}

impl Meter {
    pub(super) fn new(items: usize) -> Self {
        Self {
            begun: Instant::now(),
            items,
            done: AtomicUsize::new(0),
            told: AtomicU64::new(0),
            telling: Mutex::new(()),
        }
    }

    /// So many more items are done.
    pub(super) fn add(&self, items: usize, progress: Option<(Duration, Reporter<'_>)>) {
        let done = self.done.fetch_add(items, Relaxed) + items;
        let Some((every, reporter)) = progress else { return };
        let elapsed = self.begun.elapsed();
        let told = Duration::from_nanos(self.told.load(Relaxed));
        // The last item is always told. Otherwise one participant tells, and the others do not wait for it.
        if done == self.items {
            let _turn = self.telling.lock();
            reporter.report(Progress { done, items: self.items, elapsed });
        } else if elapsed >= told + every
            && let Some(_turn) = self.telling.try_lock()
        {
            self.told.store(elapsed.as_nanos() as u64, Relaxed);
            let done = self.done.load(Relaxed);
            if done < self.items {
                reporter.report(Progress { done, items: self.items, elapsed });
            }
        }
    }
}

/// How a loop went: see [`Loop::statistics`](crate::Loop::statistics).
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

/// What one participant did in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticipantStatistics {
    /// Its [index](crate::Participant::index).
    pub index: usize,
    /// How many chunks it took.
    pub chunks: usize,
    /// How many items were in them.
    pub items: usize,
    /// How many times it made scratch.
    pub scratch_initialisations: usize,
    /// The time from when it came to when nothing was left to take.
    pub time: Duration,
}

impl Statistics {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those that took part in the last loop, by index.
    pub fn participants(&self) -> Vec<ParticipantStatistics> {
        let mut all = self.0.lock().clone();
        all.sort_by_key(|p| p.index);
        all
    }

    /// The number of chunks.
    pub fn chunks(&self) -> usize {
        self.0.lock().iter().map(|p| p.chunks).sum()
    }

    /// How many times scratch was made.
    pub fn scratch_initialisations(&self) -> usize {
        self.0.lock().iter().map(|p| p.scratch_initialisations).sum()
    }

    /// The longest time of a participant, as a multiple of the mean time: 1 where all worked for the same time, *n* where
    /// one of *n* did everything. 1 where there was no loop.
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

    pub(super) fn enter(&self, participant: ParticipantStatistics) {
        self.0.lock().push(participant);
    }
}
