//! A barrier for a fixed number of threads, any of which may leave: then it is broken for those that wait, instead of for ever
//! closed.

use crate::sync::{
    atomic::{AtomicUsize, Ordering::*},
    lock::{Condvar, Mutex, lock, wait},
    pause,
};

/// How often who waits looks before it sleeps.
const SPINS: usize = if cfg!(loom) { 1 } else { 2000 };

/// What a panic carries that is only the consequence of another member's leaving.
#[derive(Debug)]
pub(crate) struct Broken;

/// Where members wait for each other.
#[derive(Debug)]
pub(crate) struct Meeting {
    pub(super) count: usize,
    arrived: AtomicUsize,
    /// The number of meetings so far.
    round: AtomicUsize,
    /// How many members have left.
    left: AtomicUsize,
    asleep: Mutex<()>,
    wake: Condvar,
}

impl Meeting {
    /// For so many members.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            count,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            asleep: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits for everybody; an error where somebody has left.
    pub(crate) fn meet(&self) -> Result<(), Broken> {
        // Somebody has left: this meeting will never be complete. Its own count must stay as it is, for a member that catches the
        // unwinding may come again.
        if self.left.load(Acquire) > 0 {
            return Err(Broken);
        }
        let round = self.round.load(Relaxed);
        // AcqRel: the last one sees what all others have done, and hands it on by the round.
        if self.arrived.fetch_add(1, AcqRel) + 1 == self.count {
            self.arrived.store(0, Relaxed);
            let _awake = lock(&self.asleep);
            self.round.store(round + 1, Release);
            self.wake.notify_all();
            return Ok(());
        }
        for _ in 0..SPINS {
            if let Some(met) = self.met(round) {
                return met;
            }
            pause();
        }
        let mut asleep = lock(&self.asleep);
        loop {
            if let Some(met) = self.met(round) {
                return met;
            }
            asleep = wait(&self.wake, asleep);
        }
    }

    fn met(&self, round: usize) -> Option<Result<(), Broken>> {
        // Acquire: with the Release of the last one to arrive.
        let met = || self.round.load(Acquire) != round;
        if met() {
            Some(Ok(()))
        } else if self.left.load(Acquire) == 0 {
            None
        } else {
            // It may have left after this very meeting. Acquire, above: then this sees that all have met.
            Some(if met() { Ok(()) } else { Err(Broken) })
        }
    }

    /// The calling member comes to no further meeting.
    pub(crate) fn leave(&self) {
        let _awake = lock(&self.asleep);
        // Release: whoever sees this sees the meetings that this member has been to.
        self.left.fetch_add(1, Release);
        self.wake.notify_all();
    }
}
