//! Which workers belong to teams.

use parking_lot::{Condvar, Mutex};

/// How many of a pool's workers belong to teams. All teams that are let in can be there at the same time.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    state: Mutex<Reserved>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Reserved {
    workers: usize,
    taken: usize,
    closed: bool,
}

impl Reservations {
    pub(crate) fn new(workers: usize) -> Self {
        Self { state: Mutex::new(Reserved { workers, ..Reserved::default() }), changed: Condvar::new() }
    }

    /// Waits until so many workers belong to no team; `None` where the pool has been stopped.
    pub(super) fn reserve(&self, count: usize) -> Option<Reservation<'_>> {
        let mut state = self.state.lock();
        while state.taken + count > state.workers && !state.closed {
            self.changed.wait(&mut state);
        }
        state.taken += count;
        let reservation = Reservation { of: self, count };
        let closed = state.closed;
        drop(state);
        (!closed).then_some(reservation)
    }

    /// Waits for the teams there are, and lets no other one in.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        while state.taken > 0 {
            self.changed.wait(&mut state);
        }
    }
}

/// Workers that belong to a team as long as this lives.
#[derive(Debug)]
pub(super) struct Reservation<'r> {
    of: &'r Reservations,
    count: usize,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.of.state.lock().taken -= self.count;
        self.of.changed.notify_all();
    }
}
