//! How a thread waits before it parks: it spins, then yields its processor to other threads, then parks.
//!
//! Spinning finds an event soonest, if another processor brings it about. On a machine with one processor no
//! other thread can run meanwhile, so there a thread begins with yielding.

use std::{
    num::NonZero,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// How long a thread spins.
const SPIN: Duration = Duration::from_micros(20);

/// How often it yields after that.
const YIELDS: u32 = if cfg!(loom) { 0 } else { 4 };

/// How long a thread spins and yields that may wait for a device: longer than a small launch takes.
const FOR_DEVICES: Duration = Duration::from_micros(200);

/// How a thread that waits goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    may_spin: bool,
    /// How long it spins and yields at least.
    least: Duration,
    /// When it began to spin.
    since: Option<Instant>,
    yields: u32,
}

impl Patience {
    /// The patience of a thread that begins to wait, or has just done something useful.
    pub(crate) fn new() -> Self {
        Self::on(processors())
    }

    /// The same for a thread that may wait for a device.
    pub(crate) fn for_devices() -> Self {
        Self { least: FOR_DEVICES, ..Self::new() }
    }

    /// The same as [`new`](Self::new), on a machine with this number of processors.
    fn on(processors: usize) -> Self {
        Self { may_spin: processors > 1 && cfg!(not(loom)), least: SPIN, since: None, yields: 0 }
    }

    /// Pauses for a moment. Returns `false`, without a pause, if it is time to park.
    pub(crate) fn pause(&mut self) -> bool {
        if self.may_spin {
            let waited = self.since.get_or_insert_with(Instant::now).elapsed();
            if waited < SPIN {
                std::hint::spin_loop();
                return true;
            }
            if waited < self.least {
                thread::yield_now();
                return true;
            }
        }
        // The clock need not be read again.
        self.may_spin = false;
        self.yields += 1;
        let yields = self.yields <= YIELDS;
        if yields {
            thread::yield_now();
        }
        yields
    }
}

/// The number of processors that this process may use.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_spins_then_yields_then_parks() {
        let mut patience = Patience::on(2);
        let begin = Instant::now();
        while patience.pause() {}
        assert!(begin.elapsed() >= SPIN);
        assert!(!patience.may_spin && patience.yields > YIELDS);
    }

    #[test]
    fn a_thread_that_may_wait_for_a_device_parks_later() {
        let (mut patience, begin) = (Patience { least: FOR_DEVICES, ..Patience::on(2) }, Instant::now());
        while patience.pause() {}
        assert!(begin.elapsed() >= FOR_DEVICES);
    }

    #[test]
    fn no_thread_spins_on_one_processor() {
        let mut patience = Patience::on(1);
        let pauses = (0..).take_while(|_| patience.pause()).count();
        assert_eq!(pauses, YIELDS as usize);
        assert!(patience.since.is_none(), "it has not spun");
    }
}
