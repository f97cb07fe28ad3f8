//! A barrier for a fixed number of threads that breaks when one of them leaves: the threads that wait then
//! get an error instead of waiting forever.

use crate::{
    patience::Patience,
    sync::{
        atomic::{AtomicU64, AtomicUsize, Ordering::*},
        lock::{self, Condvar, Mutex},
    },
};

/// The barrier is broken. Also the payload with which a member unwinds from it.
#[derive(Debug)]
pub(crate) struct Broken;

/// A member that has arrived, in [`Barrier::arrivals`].
const ARRIVAL: u64 = 2;

/// In [`Barrier::arrivals`]: a member sleeps, or is about to.
const ASLEEP: u64 = 1;

/// In each round all members arrive once. The last one ends the round by its arrival, and wakes the members
/// that sleep, if there are any. All changes of `arrivals` have one order, so a member that goes to sleep
/// either sees the last arrival, or the last member sees that it sleeps:
///
/// 1. A member that goes to sleep locks `asleep`, and sets `ASLEEP`.
/// 2. It sleeps unless the round has ended. To sleep unlocks `asleep`.
/// 3. The last member arrives. If `ASLEEP` is set, it locks `asleep`, so that the other one sleeps by now,
///    clears the mark and wakes all. A member that sleeps for a later round sets the mark again.
#[derive(Debug)]
pub(crate) struct Barrier {
    pub(super) count: usize,
    /// Of a member that waits.
    patience: Patience,
    /// How often members have arrived, in units of [`ARRIVAL`], and [`ASLEEP`].
    arrivals: AtomicU64,
    /// How many members have left.
    left: AtomicUsize,
    asleep: Mutex<()>,
    wake: Condvar,
}

impl Barrier {
    pub(crate) fn new(count: usize, patience: Patience) -> Self {
        Self {
            count,
            patience,
            arrivals: AtomicU64::new(0),
            left: AtomicUsize::new(0),
            asleep: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits until all members are here.
    ///
    /// # Errors
    /// If a member has left and will not come.
    pub(crate) fn wait(&self) -> Result<(), Broken> {
        // A member has left, so this round will never be complete. The arrivals must stay as they are,
        // because a member that catches the unwinding may come again.
        if self.left.load(Acquire) > 0 {
            return Err(Broken);
        }
        // AcqRel: the last member to arrive sees what all members have done, and publishes it.
        let before = self.arrivals.fetch_add(ARRIVAL, AcqRel);
        let (arrived, count) = (before / ARRIVAL + 1, self.count as u64);
        let end = arrived.next_multiple_of(count);
        if arrived == end {
            if before & ASLEEP != 0 {
                self.wake_all();
            }
            return Ok(());
        }
        let mut patience = self.patience;
        while patience.pause() {
            if let Some(outcome) = self.outcome(end) {
                return outcome;
            }
        }
        self.sleep(end)
    }

    /// Sleeps until the round ends with this arrival.
    #[cold]
    fn sleep(&self, end: u64) -> Result<(), Broken> {
        let mut asleep = lock::lock(&self.asleep);
        loop {
            self.arrivals.fetch_or(ASLEEP, Relaxed);
            if let Some(outcome) = self.outcome(end) {
                return outcome;
            }
            asleep = lock::wait(&self.wake, asleep);
        }
    }

    #[cold]
    fn wake_all(&self) {
        let _guard = lock::lock(&self.asleep);
        self.arrivals.fetch_and(!ASLEEP, Relaxed);
        self.wake.notify_all();
    }

    /// The outcome of the round that ends with this arrival, if it is decided.
    fn outcome(&self, end: u64) -> Option<Result<(), Broken>> {
        // Acquire: pairs with the Release of the last member to arrive.
        let met = || self.arrivals.load(Acquire) / ARRIVAL >= end;
        if met() {
            Some(Ok(()))
        } else if self.left.load(Acquire) == 0 {
            None
        } else {
            // The member may have left after this very round. Acquire, above: then this thread sees that all
            // have met.
            Some(if met() { Ok(()) } else { Err(Broken) })
        }
    }

    /// The calling member will not wait here any more.
    pub(crate) fn leave(&self) {
        let _guard = lock::lock(&self.asleep);
        // Release: a member that sees this sees the rounds that this member has been in.
        self.left.fetch_add(1, Release);
        self.wake.notify_all();
    }
}
