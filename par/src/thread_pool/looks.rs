//! How often an idle worker looks into the queue of jobs.
//!
//! If jobs come one by one, faster than the worker runs them, each look takes the cache lines of the queue
//! from the thread that brings the next one. So each time that the worker finds a job at its first look, it
//! waits twice as long the next time, and runs in one go the jobs that have come meanwhile. It looks for
//! other work in between.

use std::{
    cell::Cell,
    ops::Range,
    thread,
    time::{Duration, Instant},
};

/// When a worker looks into the queue next.
#[derive(Default)]
pub(super) struct LooksForJobs {
    /// How long the worker waits before its first look.
    pause: Cell<Duration>,
    /// When the worker has stopped running jobs from the queue.
    since: Cell<Option<Instant>>,
    /// Whether there was a look since.
    has_looked: Cell<bool>,
}

impl LooksForJobs {
    const PAUSE: Range<Duration> = Duration::from_micros(1)..Duration::from_micros(16);

    /// Whether to look now.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        let Some(since) = self.since.get() else { return true };
        if since.elapsed() < self.pause.get() {
            thread::yield_now();
            return false;
        }
        self.since.set(None);
        self.has_looked.set(false);
        true
    }

    /// Notes whether the look has found jobs that had not begun. They have been run.
    pub(super) fn note(&self, has_found: bool) {
        if has_found {
            let at_once = !self.has_looked.get();
            let pause = if at_once { self.pause.get() * 2 } else { Self::PAUSE.start };
            self.pause.set(pause.clamp(Self::PAUSE.start, Self::PAUSE.end));
            self.since.set(Some(Instant::now()));
        } else {
            self.has_looked.set(true);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::LooksForJobs;
    use std::iter;

    #[test]
    fn a_worker_waits_longer_only_while_jobs_come_faster_than_it_runs_them() {
        let _deadline = testing::deadline();
        let looks = LooksForJobs::default();
        assert!(looks.is_due(), "the first look comes at once");
        let pauses = iter::repeat_with(|| {
            looks.note(true);
            looks.pause.get().as_micros()
        });
        assert_eq!(pauses.take(6).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 16]);
        while !looks.is_due() {}
        looks.note(false);
        assert!(looks.is_due(), "later looks do not wait");
        looks.note(true);
        assert_eq!(looks.pause.get(), LooksForJobs::PAUSE.start);
    }
}
