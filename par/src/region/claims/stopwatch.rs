//! How long units of less than a microsecond take.

use super::ticks;
use std::{hint::black_box, ops::RangeInclusive, time::Instant};

/// A clock that takes longer to read, in nanoseconds, is no use for loops of a microsecond.
const QUICK: u64 = 100;

/// The lengths of a tick that a clock may have: those of clocks of 10 MHz to 16 GHz.
const TICK: RangeInclusive<u64> = 1 << (FRACTION - 4)..=100 << FRACTION;

/// What a participant does between two runs takes about so many nanoseconds.
const CLAIM: u64 = 15;

/// The fraction of a nanosecond in which the length of a tick is given, as a power of two.
const FRACTION: u32 = 20;

/// A stopwatch for runs of units. It subtracts the time that it takes to read the clock and to claim a run.
/// Times are in nanoseconds: arithmetic of [`Duration`](std::time::Duration) takes as long as a reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    /// The length of a tick, in nanoseconds / 2^[`FRACTION`].
    tick: u64,
    /// How long one reading takes.
    reading: u64,
    /// When it was started, and when it was read last, in ticks.
    readings: Option<(u64, u64)>,
}

impl Stopwatch {
    /// Measures on this machine how long a tick is, and how long it takes to read the clock. That takes some
    /// microseconds. `None` if the clock is too slow, or does not go as a clock should.
    pub(crate) fn calibrated() -> Option<Self> {
        const READINGS: u64 = 64;
        let mean = || {
            let begin = ticks::now();
            (0..READINGS).for_each(|_| _ = black_box(ticks::now()));
            ticks::now().saturating_sub(begin) / (READINGS + 1)
        };
        let (begin, first) = moment()?;
        // The least of several means: the thread may lose its processor.
        let reading = (0..4).map(|_| mean()).min()?;
        let (end, last) = moment()?;
        let nanos = (end - begin).as_nanos() as u64;
        let tick = (nanos << FRACTION).checked_div(last.saturating_sub(first))?;
        let reading = reading.saturating_mul(tick) >> FRACTION;
        (TICK.contains(&tick) && reading <= QUICK).then_some(Self { tick, reading, readings: None })
    }

    /// The time now, in ticks.
    #[inline]
    pub(crate) fn now() -> u64 {
        now()
    }

    /// Starts the stopwatch, and returns the time now, in ticks.
    #[inline]
    pub(crate) fn start(&mut self) -> u64 {
        let now = now();
        self.readings = Some((now, now));
        now
    }

    /// The time from the start to the last call of [`lap`](Self::lap), readings included; zero if it was not
    /// started.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        self.readings.map_or(0, |(begin, since)| self.nanos(begin, since))
    }

    /// The time of the units since the start or the last call; `None` if the stopwatch was not started.
    #[inline]
    pub(crate) fn lap(&mut self) -> Option<u64> {
        let (begin, since) = self.readings?;
        let now = now();
        self.readings = Some((begin, now));
        Some(self.nanos(since, now).saturating_sub(self.reading + CLAIM))
    }

    /// When it was started, and when it was read last, in ticks; `None` if it was not started.
    #[inline]
    pub(crate) fn readings(&self) -> Option<(u64, u64)> {
        self.readings
    }

    /// The time between two readings; zero if the thread has gone on to a processor whose clock is behind.
    #[inline]
    pub(crate) fn nanos(&self, begin: u64, end: u64) -> u64 {
        ((u128::from(end.saturating_sub(begin)) * u128::from(self.tick)) >> FRACTION) as u64
    }
}

/// The time by both clocks. Of several attempts it is the one that took the shortest time: the thread may
/// lose its processor between two readings. `None` if the clock goes backwards.
fn moment() -> Option<(Instant, u64)> {
    let attempt = || {
        let before = ticks::now();
        let now = Instant::now();
        let took = ticks::now().checked_sub(before)?;
        Some((took, (now, before + took / 2)))
    };
    let shortest = (0..8).filter_map(|_| attempt()).min_by_key(|&(took, _)| took);
    shortest.map(|(_, moment)| moment)
}

/// The time now; in a test that has stopped the clock of its thread, the time that the test says.
#[inline]
fn now() -> u64 {
    #[cfg(test)]
    if let Some(now) = stopped::now() {
        return now;
    }
    ticks::now()
}

/// A clock that goes on only when a test says so: how fast a machine is, also under a sanitizer, does not
/// matter then.
#[cfg(test)]
pub(crate) mod stopped {
    use super::{FRACTION, Stopwatch};
    use std::{cell::Cell, time::Duration};

    thread_local! {
        static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    }

    pub(super) fn now() -> Option<u64> {
        NOW.get()
    }

    /// Stops the clock of this thread, and gives a stopwatch that reads it, each time for 20 ns.
    pub(crate) fn stopwatch() -> Stopwatch {
        NOW.set(Some(0));
        go_on()
    }

    /// Gives another stopwatch that reads the clock, which is stopped.
    pub(crate) fn go_on() -> Stopwatch {
        Stopwatch { tick: 1 << FRACTION, reading: 20, readings: None }
    }

    /// Lets the clock of this thread, which is stopped, go on by this time.
    pub(crate) fn advance(time: Duration) {
        NOW.set(Some(NOW.get().expect("the clock is stopped") + time.as_nanos() as u64));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::{
        io::{Write as _, stderr},
        time::Duration,
    };

    /// The two clocks agree, however often the thread loses its processor.
    #[test]
    fn times_are_in_nanoseconds() {
        let _deadline = testing::deadline();
        let stopwatches: Vec<_> = (0..20).filter_map(|_| Stopwatch::calibrated()).collect();
        if stopwatches.is_empty() {
            // Not `eprintln!`, which the test harness captures.
            let _ = writeln!(stderr(), "skipped: loops that are too short to share (the clock is slow)");
        }
        for mut stopwatch in stopwatches {
            let outer = Instant::now();
            stopwatch.start();
            let inner = Instant::now();
            while inner.elapsed() < Duration::from_millis(1) {}
            let inner = inner.elapsed().as_nanos() as u64;
            stopwatch.lap();
            let (total, outer) = (stopwatch.total(), outer.elapsed().as_nanos() as u64);
            assert!(inner <= total + total / 4 && total <= outer + outer / 4, "{inner} {total} {outer}");
        }
    }
}
