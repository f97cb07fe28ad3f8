//! A clock for work on any number of threads.

use parking_lot::Mutex;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Measures the time in which at least one thread is at work. Clones share the measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Stopwatch(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    threads: usize,
    since: Option<Instant>,
    total: Duration,
}

impl Stopwatch {
    /// Measures until the guard is dropped. Guards may overlap; time in which several exist counts once.
    pub(super) fn start(&self) -> impl Drop + use<> {
        struct Guard(Stopwatch);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.count(|running| running.threads -= 1);
            }
        }
        self.count(|running| running.threads += 1);
        Guard(self.clone())
    }

    fn count(&self, change: impl FnOnce(&mut Running)) {
        let mut running = self.0.lock();
        change(&mut running);
        match (running.threads, running.since) {
            (0, Some(since)) => {
                running.total += since.elapsed();
                running.since = None;
            }
            (1.., None) => running.since = Some(Instant::now()),
            _ => {}
        }
    }

    /// The time measured so far, except that of guards that still exist.
    pub(super) fn total(&self) -> Duration {
        self.0.lock().total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watch_runs_while_a_guard_exists() {
        let watch = Stopwatch::default();
        let (first, second) = (watch.start(), watch.start());
        drop(first);
        assert_eq!(watch.total(), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        drop(second);
        let total = watch.total();
        assert!(total >= Duration::from_millis(2));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(watch.total(), total);
    }
}
