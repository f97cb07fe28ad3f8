//! When to wake a worker for loops that are too short to wake one for each of them.
//!
//! To wake a worker costs more than such a loop. But a worker that is awake looks for work for a while, so it
//! helps with all loops that follow each other closely. How many will follow is not known. So the opener does
//! them alone until it has spent as much time on them as one must last to be worth a wake-up, and then wakes
//! a worker: it never loses more than about twice what the best choice would have cost (the *ski rental*
//! problem: A. R. Karlin, M. S. Manasse, L. Rudolph, D. D. Sleator, [*Competitive snoopy
//! caching*](https://doi.org/10.1007/BF01762111), Algorithmica 3, 1988). Loops that are so far apart that the
//! worker would sleep again in between never wake one.

use super::claims::{Stopwatch, WORTH_WAKING};
use std::{cell::Cell, time::Duration};

/// The loops that a thread has done alone while workers slept, and that followed each other closely.
#[derive(Clone, Copy)]
struct Alone {
    /// How long they took, in nanoseconds.
    took: u64,
    /// When the last one ended, in ticks of the stopwatch.
    end: u64,
}

thread_local! {
    /// Without a destructor, so that it may be used at any time.
    static ALONE: Cell<Alone> = const { Cell::new(Alone { took: 0, end: 0 }) };
}

/// Whether it is time to wake a worker. If so, the next time is as far away as at the beginning. `awake` is
/// how long a worker looks for work.
#[inline]
pub(super) fn is_due(stopwatch: &Stopwatch, awake: Duration) -> bool {
    ALONE.with(|alone| {
        let Alone { took, end } = alone.get();
        if took < WORTH_WAKING {
            return false;
        }
        alone.set(Alone { took: 0, end });
        is_close(stopwatch, end, Stopwatch::now(), awake)
    })
}

/// Notes a loop that the thread has done alone, by the stopwatch that has measured it. If it `is_open` for
/// other threads after all, it has woken a worker.
#[inline]
pub(super) fn note(stopwatch: &Stopwatch, awake: Duration, is_open: bool) {
    ALONE.with(|alone| {
        let Alone { took, end: before } = alone.get();
        let Some((begin, end)) = stopwatch.readings() else { return };
        let took = if is_close(stopwatch, before, begin, awake) { took } else { 0 };
        let took = if is_open { 0 } else { took + stopwatch.nanos(begin, end) };
        alone.set(Alone { took, end });
    });
}

/// Whether a worker that began to look for work at the end of a loop still does so at the beginning of the
/// next one.
#[inline]
fn is_close(stopwatch: &Stopwatch, end: u64, begin: u64, awake: Duration) -> bool {
    u128::from(stopwatch.nanos(end, begin)) < awake.as_nanos()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{super::claims::stopped, *};

    const AWAKE: Duration = Duration::from_micros(50);

    /// Whether a worker is to be woken after this number of loops that take 5 µs each, with pauses between.
    fn is_due_after(loops: u64, pause: Duration) -> bool {
        ALONE.set(Alone { took: 0, end: 0 });
        let mut stopwatch = stopped::stopwatch();
        for _ in 0..loops {
            stopped::advance(pause);
            stopwatch.start();
            stopped::advance(Duration::from_micros(5));
            stopwatch.lap();
            note(&stopwatch, AWAKE, false);
        }
        is_due(&stopwatch, AWAKE)
    }

    #[test]
    fn a_worker_is_woken_for_many_loops_that_follow_each_other() {
        let _deadline = testing::deadline();
        for pause in [Duration::ZERO, AWAKE - Duration::from_micros(1)] {
            assert!(!is_due_after(9, pause) && is_due_after(10, pause), "{pause:?}");
            assert!(!is_due(&stopped::stopwatch(), AWAKE), "the worker is awake now");
        }
        assert!(!is_due_after(1000, AWAKE + Duration::from_micros(1)));
    }

    #[test]
    fn loops_of_another_time_wake_no_worker() {
        let _deadline = testing::deadline();
        let many = || {
            assert!(!is_due_after(9, Duration::ZERO));
            let mut stopwatch = stopped::go_on();
            stopwatch.start();
            stopped::advance(Duration::from_micros(5));
            stopwatch.lap();
            stopwatch
        };
        let stopwatch = many();
        note(&stopwatch, AWAKE, false);
        stopped::advance(2 * AWAKE);
        assert!(!is_due(&stopwatch, AWAKE), "the worker would sleep again before the loop after this one");
        let stopwatch = many();
        note(&stopwatch, AWAKE, true);
        assert!(!is_due(&stopwatch, AWAKE), "the loop has woken a worker itself");
    }
}
