//! How long units of less than a microsecond take.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// A stopwatch that subtracts the time that it takes to read the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    /// How long one reading takes.
    reading: Duration,
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
        Self { reading, since: None }
    }

    pub(crate) fn start(&mut self) {
        self.since = Some(Instant::now());
    }

    /// The time since the start or the last call; `None` if the stopwatch was not started.
    pub(crate) fn lap(&mut self) -> Option<Duration> {
        let since = self.since?;
        let now = Instant::now();
        self.since = Some(now);
        Some((now - since).saturating_sub(self.reading))
    }
}
