//! How many communicators a program has made, and how many it may make.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The communicators that a program has made.
pub(in crate::execute) struct Communicators {
    made: AtomicUsize,
    limit: usize,
}

impl Communicators {
    /// There are at most as many as host lanes. A task of each of them may wait for other nodes in a call of
    /// MPI, on a lane. If there were more, all lanes of one node could wait for tasks that have no lane on
    /// another one.
    pub(in crate::execute) fn new(host_lanes: usize) -> Self {
        Self { made: AtomicUsize::new(0), limit: host_lanes }
    }

    /// Counts one more, or returns its number if that is too large.
    pub(super) fn add(&self) -> Result<(), usize> {
        let one_more = |made: usize| (made < self.limit).then_some(made + 1);
        self.made.fetch_update(Relaxed, Relaxed, one_more).map(drop).map_err(|made| made + 1)
    }
}
