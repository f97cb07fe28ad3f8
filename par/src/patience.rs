//! How a thread waits before it sleeps: it spins, then yields its processor to other threads, then sleeps.
//!
//! Spinning finds an event soonest, if another processor brings it about. On a machine with one processor no
//! other thread can run meanwhile, so there a thread never spins: it yields a few times, so that the others
//! run, and then sleeps.
//!
//! This is the one policy of the crate. Whether threads may spin is decided once, when a pool or lanes are
//! built, on the thread that builds them. Threads inherit the processors that they may use from the thread
//! that starts them. Programs that have waits of their own use the same policy, and look more often:
//! [`Patience::new`].
//!
//! | thread that waits | for | patience |
//! |---|---|---|
//! | the opener of a region | the other participants (`region/slot.rs`) | [`PoolState::patience`] |
//! | the owner of a half of a join | the thief (`join/wait.rs`) | the same |
//! | a thread that joins a job | the thread that runs it (`jobs/cell.rs`) | the same |
//! | the opener of a scope | its jobs (`jobs/pending.rs`) | the same |
//! | a member of a team | the other members (`team/barrier.rs`) | the same |
//! | a worker | work (`thread_pool/search.rs`) | [`PoolState::idle`] |
//! | a lane | jobs (`lanes.rs`) | its own |
//!
//! Threads that wait for room (in a loop that hands results over in order, at a bounded pool of values, for
//! workers that belong to other teams) sleep at once: room comes when other threads have done whole pieces of
//! work.
//!
//! [`PoolState::patience`]: crate::thread_pool::state::PoolState::patience
//! [`PoolState::idle`]: crate::thread_pool::state::PoolState::idle

use std::{
    hint,
    num::NonZero,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// The time for which a thread that waits for another one spins.
const SPIN: Duration = Duration::from_micros(20);

/// The time for which such a thread spins and yields together. While no other thread wants the processor, a
/// yield is as short as a few pauses. While others want it, a yield lasts long, and there are few.
const SPIN_AND_YIELD: Duration = Duration::from_micros(100);

/// The number of times that a thread that does not spin yields.
const YIELDS: u32 = 4;

/// The largest number of pauses in a turn. A thread that waits for another one begins with one pause, and
/// each turn has one more than the turn before. The clock, which takes as long as some pauses, is read in
/// turns of the largest length only.
const PAUSES: u32 = 16;

/// The same for waits of the program's own. What they look for may come within a fraction of a microsecond.
const PAUSES_OF_PROGRAM: u32 = 1;

/// How a thread waits for an event before it sleeps. It looks for the event, calls [`pause`](Self::pause),
/// looks again, and so on. A copy that has not paused yet begins anew.
///
/// The thread spins for 20 µs, then it yields its processor to other threads until 100 µs have passed. On a
/// machine with one processor it yields four times.
///
/// ```
/// use anabranch_par::Patience;
/// use std::{sync::atomic::{AtomicBool, Ordering::*}, thread};
///
/// let is_done = AtomicBool::new(false);
/// thread::scope(|scope| {
///     let waiting = scope.spawn(|| {
///         let mut patience = Patience::new();
///         while !is_done.load(Acquire) {
///             if !patience.pause() {
///                 thread::park();
///             }
///         }
///     });
///     is_done.store(true, Release);
///     waiting.thread().unpark();
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The time for which the thread spins, from the first reading of the clock. If this is zero, it does not
    /// spin.
    spin: Duration,
    /// If the thread spins: the time for which it spins and yields together.
    whole: Duration,
    /// If the thread does not spin: the number of times that it still yields; `None` if it yields without
    /// end.
    yields: Option<u32>,
    /// The number of pauses in the last turn.
    pauses: u32,
    /// The largest number of pauses in a turn.
    most_pauses: u32,
    since: Option<Instant>,
}

/// What a thread does in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Spin,
    Yield,
    Sleep,
}

impl Default for Patience {
    fn default() -> Self {
        Self::new()
    }
}

impl Patience {
    /// The patience of a thread that waits for another one. Whether the thread may spin follows from the
    /// number of processors that the first thread of the process could use that built a pool or lanes, or
    /// called this or [`lasting`](Self::lasting).
    pub fn new() -> Self {
        Self::lasting(SPIN_AND_YIELD)
    }

    /// The same of a thread that spins and yields for this time in all before it sleeps. On one processor it
    /// yields four times all the same.
    pub fn lasting(whole: Duration) -> Self {
        let patience = Self::spinning(SPIN.min(whole), whole).on(processors_at_first());
        Self { most_pauses: PAUSES_OF_PROGRAM, ..patience }
    }

    /// The patience of a thread that waits for another one, on a machine with many processors.
    pub(crate) const WAITING: Self = Self::spinning(SPIN, SPIN_AND_YIELD);
    /// The patience of a thread that waits for another one and never sleeps, on a machine with many
    /// processors.
    pub(crate) const WAITING_AWAKE: Self = Self::spinning(SPIN, Duration::MAX);
    /// The patience of a thread that sleeps as soon as the threads that are ready have had their turn.
    pub(crate) const SHORT: Self = Self::spinning(Duration::ZERO, Duration::ZERO);

    /// The patience of a thread that spins for the time `spin` and sleeps when the time `whole` has passed,
    /// on a machine with many processors.
    pub(crate) const fn spinning(spin: Duration, whole: Duration) -> Self {
        Self { spin, whole, yields: Some(YIELDS), pauses: 0, most_pauses: PAUSES, since: None }
    }

    /// The patience of a worker that finds no work, on a machine with many processors: it looks for the time
    /// `whole`, then sleeps. It spins for a third of this time, then it yields: there may be more threads
    /// than processors, and one of them may be about to bring work. A look for work takes cache lines from
    /// the threads that bring work, so the worker looks seldom from the beginning.
    pub(crate) fn looking_for_work(whole: Duration) -> Self {
        let spin = if whole == Duration::MAX { whole } else { whole / 3 };
        Self { pauses: PAUSES, ..Self::spinning(spin, whole) }
    }

    /// The same patience on a machine with this number of processors.
    pub(crate) fn on(self, processors: usize) -> Self {
        match processors {
            // A thread that never sleeps lets the others run.
            0 | 1 if self.whole == Duration::MAX => Self { yields: None, ..Self::SHORT },
            0 | 1 => Self::SHORT,
            _ => self,
        }
    }

    /// How long the thread spins and yields together.
    #[inline]
    pub(crate) fn lasts(&self) -> Duration {
        self.whole
    }

    #[cfg(all(test, not(loom), target_os = "linux"))]
    pub(crate) fn may_spin(&self) -> bool {
        !self.spin.is_zero()
    }

    /// Pauses for a moment. Returns `false`, without a pause, if it is time to sleep.
    #[inline]
    #[must_use = "`false` says that the thread has not paused, and that it is time to sleep"]
    pub fn pause(&mut self) -> bool {
        self.pause_for(Duration::ZERO)
    }

    /// Pauses for a moment, and at least for this time if the thread spins.
    pub(crate) fn pause_for(&mut self, least: Duration) -> bool {
        if !least.is_zero() {
            // Such a turn is long enough to read the clock in it.
            self.pauses = PAUSES;
        }
        match self.turn() {
            Turn::Spin => self.spin(least),
            Turn::Yield => thread::yield_now(),
            Turn::Sleep => return false,
        }
        true
    }

    fn turn(&mut self) -> Turn {
        // A model goes through every interleaving, and must end.
        if cfg!(loom) {
            return Turn::Sleep;
        }
        if self.spin.is_zero() {
            return match &mut self.yields {
                None => Turn::Yield,
                Some(0) => Turn::Sleep,
                Some(yields) => {
                    *yields -= 1;
                    Turn::Yield
                }
            };
        }
        if self.pauses < self.most_pauses {
            self.pauses += 1;
            return Turn::Spin;
        }
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited < self.spin {
            Turn::Spin
        } else if waited < self.whole {
            Turn::Yield
        } else {
            Turn::Sleep
        }
    }

    fn spin(&self, least: Duration) {
        let pauses = || (0..self.pauses).for_each(|_| hint::spin_loop());
        if least.is_zero() {
            return pauses();
        }
        let begin = Instant::now();
        while begin.elapsed() < least {
            pauses();
        }
    }
}

/// The number of processors that the first thread could use that asked for it. The system takes some
/// microseconds to tell it, and tells less to a thread that is bound to a processor.
static PROCESSORS: OnceLock<usize> = OnceLock::new();

fn processors_at_first() -> usize {
    PROCESSORS.get().copied().unwrap_or_else(processors)
}

/// The number of processors that the calling thread, and those that it starts, may use.
pub(crate) fn processors() -> usize {
    let usable = thread::available_parallelism().map_or(1, NonZero::get);
    // A pool asks before it starts threads that are bound to processors.
    let _ = PROCESSORS.set(usable);
    usable
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Patience, Turn, YIELDS};
    use std::{
        iter,
        time::{Duration, Instant},
    };

    /// The turns before the thread sleeps.
    fn turns(mut patience: Patience) -> impl Iterator<Item = Turn> {
        let next = move || {
            let turn = patience.turn();
            if turn == Turn::Spin {
                patience.spin(Duration::ZERO);
            }
            turn
        };
        iter::repeat_with(next).take_while(|&turn| turn != Turn::Sleep)
    }

    #[test]
    fn a_thread_spins_then_yields_then_sleeps() {
        let spin = Duration::from_millis(5);
        assert!(turns(Patience::spinning(spin, spin).on(2)).all(|turn| turn == Turn::Spin));
        let mut endless = turns(Patience::spinning(spin, Duration::MAX).on(2));
        assert_eq!(endless.next(), Some(Turn::Spin));
        assert!(endless.skip_while(|&turn| turn == Turn::Spin).take(1000).all(|turn| turn == Turn::Yield));
        assert!(turns(Patience::spinning(spin, 2 * spin).on(2)).count() > 0, "it sleeps in the end");
    }

    #[test]
    fn on_one_processor_a_thread_yields_a_few_times_and_sleeps() {
        for patience in
            [Patience::WAITING, Patience::spinning(Duration::from_secs(1000), Duration::from_secs(1000))]
        {
            assert!(turns(patience.on(1)).eq([Turn::Yield; YIELDS as usize]));
        }
    }

    #[test]
    fn on_one_processor_a_thread_that_never_sleeps_yields() {
        assert!(turns(Patience::WAITING_AWAKE.on(1)).take(1000).eq([Turn::Yield; 1000]));
    }

    #[test]
    fn a_thread_that_was_given_no_time_sleeps_soon() {
        for processors in [1, 2, 64] {
            assert!(turns(Patience::SHORT.on(processors)).eq([Turn::Yield; YIELDS as usize]));
        }
    }

    #[test]
    fn a_thread_may_wait_longer_before_it_sleeps() {
        let (time, begin) = (Duration::from_millis(5), Instant::now());
        let mut patience = Patience::lasting(time);
        let spins = !patience.spin.is_zero();
        while patience.pause() {}
        // On one processor the thread yields a few times.
        assert!(begin.elapsed() >= time || !spins);
        assert!(turns(Patience::lasting(time).on(1)).eq([Turn::Yield; YIELDS as usize]));
    }

    #[test]
    fn a_copy_begins_anew() {
        let patience = Patience::WAITING.on(2);
        let mut used = patience;
        while used.pause() {}
        assert!(!used.pause() && { patience }.pause());
    }
}
