//! Progress reports.

use parking_lot::Mutex;
use std::{
    fmt,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::*},
    time::{Duration, Instant},
};

/// How far a loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of items that are done.
    pub done: usize,
    /// The number of all items.
    pub items: usize,
    /// The time since the loop began.
    pub elapsed: Duration,
}

/// The receiver of progress reports.
#[derive(Clone, Copy)]
pub(in crate::loops) enum Reporter<'a> {
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

/// Counts the items that are done, and reports.
#[derive(Debug)]
pub(super) struct ProgressMeter {
    start: Instant,
    items: usize,
    done: AtomicUsize,
    /// The time of the last report, in nanoseconds since the start.
    reported: AtomicU64,
    /// Held by the participant that reports.
    reporting: Mutex<()>,
}

impl ProgressMeter {
    pub(super) fn new(items: usize) -> Self {
        Self {
            start: Instant::now(),
            items,
            done: AtomicUsize::new(0),
            reported: AtomicU64::new(0),
            reporting: Mutex::new(()),
        }
    }

    pub(super) fn done(&self) -> usize {
        self.done.load(Relaxed)
    }

    /// Counts `items` more items, and reports if it is time to.
    pub(super) fn add(&self, items: usize, progress: Option<(Duration, Reporter<'_>)>) {
        let done = self.done.fetch_add(items, Relaxed) + items;
        let Some((every, reporter)) = progress else { return };
        let elapsed = self.start.elapsed();
        let reported = Duration::from_nanos(self.reported.load(Relaxed));
        // The last item is always reported. Before that, participants do not wait for the one that reports.
        if done == self.items {
            let _turn = self.reporting.lock();
            reporter.report(Progress { done, items: self.items, elapsed });
        } else if elapsed >= reported + every
            && let Some(_turn) = self.reporting.try_lock()
        {
            self.reported.store(elapsed.as_nanos() as u64, Relaxed);
            let done = self.done.load(Relaxed);
            if done < self.items {
                reporter.report(Progress { done, items: self.items, elapsed });
            }
        }
    }
}
