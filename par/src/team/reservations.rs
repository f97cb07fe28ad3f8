//! How many workers belong to teams.

use parking_lot::{Condvar, Mutex};

/// Counts the workers of a pool that belong to teams, so that all members of all teams can be there at the
/// same time.
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

    /// Waits until `count` workers belong to no team, and reserves them; `None` if the pool has been stopped.
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

    /// Lets no further team begin, and waits for the end of those that have begun.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        while state.taken > 0 {
            self.changed.wait(&mut state);
        }
    }
}

/// Workers that belong to a team, until this is dropped.
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
