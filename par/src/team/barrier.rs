//! A barrier for a fixed number of threads that breaks when one of them leaves: the threads that wait then
//! get an error instead of waiting forever.

use crate::{
    patience::Patience,
    sync::{
        atomic::{AtomicUsize, Ordering::*},
        lock::{self, Condvar, Mutex},
    },
};

/// The barrier is broken. Also the payload with which a member unwinds from it.
#[derive(Debug)]
pub(crate) struct Broken;

#[derive(Debug)]
pub(crate) struct Barrier {
    pub(super) count: usize,
    /// Of a member that waits.
    patience: Patience,
    arrived: AtomicUsize,
    /// How often all members have met here.
    round: AtomicUsize,
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
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
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
        // A member has left, so this round will never be complete. `arrived` must stay as it is, because a
        // member that catches the unwinding may come again.
        if self.left.load(Acquire) > 0 {
            return Err(Broken);
        }
        let round = self.round.load(Relaxed);
        // AcqRel: the last member to arrive sees what all members have done, and publishes it with the round.
        if self.arrived.fetch_add(1, AcqRel) + 1 == self.count {
            self.arrived.store(0, Relaxed);
            let _guard = lock::lock(&self.asleep);
            self.round.store(round + 1, Release);
            self.wake.notify_all();
            return Ok(());
        }
        let mut patience = self.patience;
        while patience.pause() {
            if let Some(outcome) = self.outcome(round) {
                return outcome;
            }
        }
        let mut asleep = lock::lock(&self.asleep);
        loop {
            if let Some(outcome) = self.outcome(round) {
                return outcome;
            }
            asleep = lock::wait(&self.wake, asleep);
        }
    }

    /// The outcome of a round, if it is decided.
    fn outcome(&self, round: usize) -> Option<Result<(), Broken>> {
        // Acquire: pairs with the Release of the last member to arrive.
        let met = || self.round.load(Acquire) != round;
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
