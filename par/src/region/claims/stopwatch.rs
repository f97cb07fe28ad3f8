//! How long units of less than a microsecond take.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// A clock that takes longer to read is no use for loops of a microsecond.
const QUICK: Duration = Duration::from_nanos(100);

/// What a participant does between two runs takes about this long.
const CLAIM: Duration = Duration::from_nanos(15);

/// A stopwatch for runs of units. It subtracts the time that it takes to read the clock and to claim a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    /// How long one reading takes.
    reading: Duration,
    begin: Option<Instant>,
    /// When it was read last.
    since: Option<Instant>,
}

impl Stopwatch {
    /// Measures how long it takes to read the clock on this machine, which takes some microseconds.
    pub(crate) fn calibrated() -> Self {
        const READINGS: u32 = 16;
        let mean = || {
            let begin = Instant::now();
            (0..READINGS).for_each(|_| _ = black_box(Instant::now()));
            begin.elapsed() / (READINGS + 1)
        };
        // The least of several means: the thread may lose its processor.
        let reading = (0..4).map(|_| mean()).min().unwrap_or_default();
        Self { reading, begin: None, since: None }
    }

    /// Whether the clock can be read often.
    #[inline]
    pub(crate) fn is_quick(&self) -> bool {
        self.reading <= QUICK
    }

    pub(crate) fn start(&mut self) {
        self.begin = Some(now());
        self.since = self.begin;
    }

    /// The time from the start to the last call of [`lap`](Self::lap), readings included; zero if it was not
    /// started.
    pub(crate) fn total(&self) -> Duration {
        self.since.zip(self.begin).map_or(Duration::ZERO, |(since, begin)| since - begin)
    }

    /// The time of the units since the start or the last call; `None` if the stopwatch was not started.
    pub(crate) fn lap(&mut self) -> Option<Duration> {
        let since = self.since?;
        let now = now();
        self.since = Some(now);
        Some((now - since).saturating_sub(self.reading + CLAIM))
    }
}

/// The time now; in a test that has stopped the clock of its thread, the time that the test says.
#[inline]
fn now() -> Instant {
    #[cfg(test)]
    if let Some(now) = stopped::now() {
        return now;
    }
    Instant::now()
}

/// A clock that goes on only when a test says so: how fast a machine is, also under a sanitizer, does not
/// matter then.
#[cfg(test)]
pub(crate) mod stopped {
    use super::{Duration, Instant, Stopwatch};
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
    }

    pub(super) fn now() -> Option<Instant> {
        NOW.get()
    }

    /// Stops the clock of this thread, and gives a stopwatch that reads it, each time for 20 ns.
    pub(crate) fn stopwatch() -> Stopwatch {
        NOW.set(Some(Instant::now()));
        Stopwatch { reading: Duration::from_nanos(20), begin: None, since: None }
    }

    /// Lets the clock of this thread, which is stopped, go on by this time.
    pub(crate) fn advance(time: Duration) {
        NOW.set(Some(NOW.get().expect("the clock is stopped") + time));
    }
}
