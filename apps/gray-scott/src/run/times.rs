//! The accounts of a run: where its time went, and how much it has computed.
//!
//! At every moment a run is in one of five states: it starts, computes only, stores only, computes and
//! stores, or does neither. [`Accounts`] adds each moment to exactly one of them, with one clock, so that the
//! parts of [`Times`] always add up to the whole. All reports about time come from [`Times`].
//!
//! On several nodes the accounts are those of one node. A node that neither computes nor stores waits for
//! other nodes.

use parking_lot::Mutex;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// The parts of a run's time. No moment is in two of them, and none is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Before the first step: threads, memory, the initial state, the layout of the file.
    pub start_up: Duration,
    /// At least one thread computed, and nothing was stored.
    pub only_computing: Duration,
    /// At least one thread computed while a frame or a checkpoint was stored.
    pub computing_and_storing: Duration,
    /// A frame or a checkpoint was stored, or the file completed, and nothing was computed.
    pub only_storing: Duration,
    /// After the start, and neither, on several nodes: the data or the decisions of other nodes were not
    /// there yet.
    pub waiting_for_nodes: Duration,
    /// After the start, and neither, on one node.
    pub other: Duration,
    /// The part of [`storing`](Self::storing) that went into checkpoints.
    pub checkpoints: Duration,
}

impl Times {
    /// From the start of the program to now.
    pub fn total(&self) -> Duration {
        self.start_up
            + self.only_computing
            + self.computing_and_storing
            + self.only_storing
            + self.waiting_for_nodes
            + self.other
    }

    /// Time in which the simulation advanced.
    pub fn computing(&self) -> Duration {
        self.only_computing + self.computing_and_storing
    }

    /// Time in which frames and checkpoints were stored, the completion of the file included.
    pub fn storing(&self) -> Duration {
        self.only_storing + self.computing_and_storing
    }
}

/// The kind of work that storage does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Frames, and the completion of their file.
    Frames,
    /// A checkpoint.
    Checkpoint,
}

/// Gives the time since the start of the program.
type Clock = dyn Fn() -> Duration + Send + Sync;

/// Keeps the accounts of a run. Clones share them, and any thread may use them.
///
/// ```
/// use gray_scott::run::{Accounts, Stored};
///
/// let accounts = Accounts::default();
/// accounts.begin();
/// accounts.computing(64).done();
/// drop(accounts.storing(Stored::Frames));
/// let times = accounts.times();
/// assert_eq!(times.total() - times.start_up - times.other, times.computing() + times.only_storing);
/// assert_eq!(accounts.updates(), 64);
/// ```
#[derive(Clone)]
pub struct Accounts(Arc<Shared>);

struct Shared {
    clock: Box<Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    times: Times,
    /// All moments until this one are in `times`.
    until: Duration,
    begun: bool,
    on_several_nodes: bool,
    /// The number of threads that compute.
    computing: usize,
    /// The number of threads that store frames, or complete their file.
    storing: usize,
    /// The number of threads that store a checkpoint.
    saving: usize,
    updates: u64,
}

impl Default for Accounts {
    /// Accounts that start now.
    fn default() -> Self {
        let began = Instant::now();
        Self::with_clock(move || began.elapsed())
    }
}

impl Accounts {
    /// Accounts with this clock, which gives the time since the start and never goes back.
    pub fn with_clock(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { clock: Box::new(clock), state: Mutex::default() }))
    }

    /// Ends the start: the first step comes now.
    pub fn begin(&self) {
        self.change(|state| state.begun = true);
    }

    /// Counts the time in which nothing is computed and nothing stored as waiting for other nodes, from now
    /// on.
    pub fn on_several_nodes(&self) {
        self.change(|state| state.on_several_nodes = true);
    }

    /// Counts the time as computing until the guard is dropped. [`Computing::done`] also counts `updates`
    /// cells as advanced by one step. Guards of several threads may overlap.
    pub fn computing(&self, updates: u64) -> Computing {
        let mut state = self.0.state.lock();
        if state.computing == 0 {
            state.settle((self.0.clock)());
        }
        state.computing += 1;
        drop(state);
        Computing { accounts: self.clone(), updates, is_done: false }
    }

    /// Counts the time as storing until the guard is dropped. Guards may overlap.
    pub fn storing(&self, what: Stored) -> Storing {
        self.change(|state| *state.stores(what) += 1);
        Storing { accounts: self.clone(), what }
    }

    /// The times until now.
    pub fn times(&self) -> Times {
        let mut state = self.0.state.lock();
        state.settle((self.0.clock)());
        state.times
    }

    /// Cells advanced by one step, counted for each step. Work that is still going on does not count.
    pub fn updates(&self) -> u64 {
        self.0.state.lock().updates
    }

    /// The updates, and the time in which they were computed.
    pub fn computed(&self) -> (u64, Duration) {
        let mut state = self.0.state.lock();
        state.settle((self.0.clock)());
        (state.updates, state.times.computing())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.state.lock();
        state.settle((self.0.clock)());
        change(&mut state);
    }
}

impl State {
    /// The number of threads that store this.
    fn stores(&mut self, what: Stored) -> &mut usize {
        match what {
            Stored::Frames => &mut self.storing,
            Stored::Checkpoint => &mut self.saving,
        }
    }

    /// Adds the time until `now` to the state that the run was in.
    fn settle(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.until);
        self.until = now.max(self.until);
        let times = &mut self.times;
        let part = match (self.begun, self.computing > 0, self.storing + self.saving > 0) {
            (false, ..) => &mut times.start_up,
            (true, true, false) => &mut times.only_computing,
            (true, true, true) => &mut times.computing_and_storing,
            (true, false, true) => &mut times.only_storing,
            (true, false, false) if self.on_several_nodes => &mut times.waiting_for_nodes,
            (true, false, false) => &mut times.other,
        };
        *part += passed;
        // A moment in which frames are stored, too, is theirs.
        if self.begun && self.saving > 0 && self.storing == 0 {
            times.checkpoints += passed;
        }
    }
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Accounts({:?})", self.times())
    }
}

/// Counts time as computing until it is dropped.
#[derive(Debug)]
#[must_use = "the time ends when the guard is dropped"]
pub struct Computing {
    accounts: Accounts,
    updates: u64,
    is_done: bool,
}

impl Computing {
    /// Ends, and counts the updates. A guard that is dropped instead, because the work failed or never began,
    /// counts none.
    pub fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        let Shared { clock, state } = &*self.accounts.0;
        let mut state = state.lock();
        if state.computing == 1 {
            state.settle(clock());
        }
        state.computing -= 1;
        if self.is_done {
            state.updates += self.updates;
        }
    }
}

/// Counts time as storing until it is dropped.
#[derive(Debug)]
pub struct Storing {
    accounts: Accounts,
    what: Stored,
}

impl Drop for Storing {
    fn drop(&mut self) {
        self.accounts.change(|state| *state.stores(self.what) -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Accounts with a clock that the test sets, in seconds.
    fn accounts() -> (Accounts, Arc<AtomicU64>) {
        let now = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&now);
        (Accounts::with_clock(move || Duration::from_secs(clock.load(Ordering::Relaxed))), now)
    }

    fn seconds(parts: [Duration; 5]) -> [u64; 5] {
        parts.map(|part| part.as_secs())
    }

    fn parts(t: Times) -> [u64; 5] {
        seconds([t.start_up, t.only_computing, t.computing_and_storing, t.only_storing, t.other])
    }

    #[test]
    fn every_moment_is_in_one_part() {
        let (accounts, now) = accounts();
        let at = |second: u64| now.store(second, Ordering::Relaxed);
        at(2);
        accounts.begin();
        at(3);
        let (first, second) = (accounts.computing(1), accounts.computing(2));
        at(7);
        let storing = accounts.storing(Stored::Frames);
        first.done();
        at(12);
        second.done();
        at(18);
        drop(storing);
        at(25);
        assert_eq!(parts(accounts.times()), [2, 4, 5, 6, 8]);
        let times = accounts.times();
        assert_eq!(
            (times.total().as_secs(), times.computing().as_secs(), times.storing().as_secs()),
            (25, 9, 11)
        );
        assert_eq!(accounts.updates(), 3);
    }

    #[test]
    fn the_time_to_store_while_nothing_computes_is_never_other() {
        let (accounts, now) = accounts();
        accounts.begin();
        for _ in 0..10 {
            accounts.computing(1).done();
            let _storing = accounts.storing(Stored::Frames);
            now.fetch_add(3, Ordering::Relaxed);
        }
        assert_eq!(parts(accounts.times()), [0, 0, 0, 30, 0]);
    }

    #[test]
    fn on_several_nodes_a_node_that_neither_computes_nor_stores_waits_for_others() {
        let (accounts, now) = accounts();
        accounts.on_several_nodes();
        now.store(2, Ordering::Relaxed);
        accounts.begin();
        now.store(5, Ordering::Relaxed);
        let computing = accounts.computing(1);
        now.store(9, Ordering::Relaxed);
        drop(computing);
        now.store(14, Ordering::Relaxed);
        let times = accounts.times();
        assert_eq!(parts(times), [2, 4, 0, 0, 0]);
        assert_eq!((times.waiting_for_nodes.as_secs(), times.total().as_secs()), (3 + 5, 14));
    }

    #[test]
    fn work_that_fails_takes_time_and_counts_no_updates() {
        let (accounts, now) = accounts();
        accounts.begin();
        let failed = accounts.computing(5);
        now.store(3, Ordering::Relaxed);
        drop(failed);
        assert_eq!((accounts.times().computing().as_secs(), accounts.updates()), (3, 0));
    }

    #[test]
    fn a_checkpoint_that_is_stored_beside_frames_counts_once() {
        let (accounts, now) = accounts();
        accounts.begin();
        let checkpoint = accounts.storing(Stored::Checkpoint);
        now.store(1, Ordering::Relaxed);
        let frames = [Stored::Frames; 2].map(|what| accounts.storing(what));
        now.store(3, Ordering::Relaxed);
        drop(frames);
        now.store(7, Ordering::Relaxed);
        drop(checkpoint);
        now.store(20, Ordering::Relaxed);
        let times = accounts.times();
        assert_eq!((times.only_storing.as_secs(), times.checkpoints.as_secs()), (7, 1 + 4));
        assert_eq!(times.other.as_secs(), 13);
    }

    #[test]
    fn checkpoints_are_a_part_of_storing() {
        let (accounts, now) = accounts();
        accounts.begin();
        for what in [Stored::Frames, Stored::Checkpoint] {
            let _storing = accounts.storing(what);
            now.fetch_add(4, Ordering::Relaxed);
        }
        let times = accounts.times();
        assert_eq!((times.storing().as_secs(), times.checkpoints.as_secs()), (8, 4));
    }

    #[test]
    fn a_clock_that_goes_back_takes_no_time_away() {
        let (accounts, now) = accounts();
        accounts.begin();
        now.store(9, Ordering::Relaxed);
        assert_eq!(accounts.times().total().as_secs(), 9);
        now.store(4, Ordering::Relaxed);
        assert_eq!(accounts.times().total().as_secs(), 9);
    }
}
