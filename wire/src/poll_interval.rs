//! The interval between two polls of a thread: how it rests.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Whether the processes on this machine are more than its processors.
static IS_CROWDED: AtomicBool = AtomicBool::new(false);

/// Says whether the processes on this machine are more than its processors. Then a thread that polls offers
/// its processor after each poll: the process that it waits for may need it.
pub(crate) fn set_crowded(is_crowded: bool) {
    IS_CROWDED.store(is_crowded, Relaxed);
}

/// The pace of a thread that polls until something has happened: for 200 µs it polls again at once, then it
/// sleeps between two polls for an eighth of the time that it has waited, up to 1 ms. So a thread that waits
/// for a second takes about a hundredth of a second of processor time. A thread that polls again at once
/// offers its processor to other threads.
///
/// Two nodes that wait for each other in turn do not stay slow: each is late by an eighth of the time for
/// which the other was, until neither sleeps. That is why the first 200 µs are longer than the shortest
/// sleep, which takes about 110 µs on Linux.
///
/// ```
/// let (mut pace, mut rounds) = (anabranch_wire::Pace::new(), 0);
/// while rounds < 3 {
///     rounds += 1;
///     let something_happened = rounds == 2;
///     pace.after(something_happened);
/// }
/// ```
#[derive(Debug, Default)]
pub struct Pace {
    /// Since when nothing has happened.
    quiet: Option<Instant>,
    rounds: u32,
    /// Rounds in which something has happened, since the last call of the system.
    busy: u32,
}

/// How long a thread polls without a sleep.
const SPIN: Duration = Duration::from_micros(200);
const SHORTEST: Duration = Duration::from_micros(50);
/// Rounds without a call of the system.
const ROUNDS: u32 = 64;
/// The same if processes share processors. Some MPI offers the processor by itself in each poll that finds
/// nothing. After that it must be polled again: if this thread offered it, too, every other turn of the
/// process would be in vain.
const CROWDED_ROUNDS: u32 = 8;

impl Pace {
    /// The longest rest.
    pub(crate) const LONGEST: Duration = Duration::from_millis(1);

    /// The pace of a thread that begins to poll.
    pub fn new() -> Self {
        Self::default()
    }

    /// To be called after each poll, with its answer: returns at once if something has happened, or rests
    /// otherwise.
    pub fn after(&mut self, something_happened: bool) {
        if something_happened {
            let busy = (self.busy + 1) % ROUNDS;
            *self = Self { busy, ..Self::default() };
            if busy == 0 {
                // The process at the other end may need this processor.
                thread::yield_now();
            }
            return;
        }
        self.rounds = self.rounds.wrapping_add(1);
        let polls_again = match IS_CROWDED.load(Relaxed) {
            false => self.rounds < ROUNDS,
            true => !self.rounds.is_multiple_of(CROWDED_ROUNDS),
        };
        if polls_again {
            std::hint::spin_loop();
            return;
        }
        let quiet = *self.quiet.get_or_insert_with(Instant::now);
        let waited = quiet.elapsed();
        if waited < SPIN {
            thread::yield_now();
        } else {
            thread::sleep((waited / 8).clamp(SHORTEST, Self::LONGEST));
        }
    }
}
