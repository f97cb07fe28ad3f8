//! How a thread that polls rests.

use std::{
    thread,
    time::{Duration, Instant},
};

/// The pace of a thread that polls until something has happened: for 50 µs it polls again at once, then it sleeps for longer and
/// longer, up to 1 ms. So a thread that waits for a second takes about a hundredth of a second of processor time.
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
    sleep: Duration,
}

/// How long a thread polls without a sleep.
const SPIN: Duration = Duration::from_micros(50);
/// Rounds without a call of the system.
const ROUNDS: u32 = 64;
const LONGEST: Duration = Duration::from_millis(1);

impl Pace {
    /// The pace of a thread that begins to poll.
    pub fn new() -> Self {
        Self::default()
    }

    /// To be called after each poll: returns at once if something has happened, or rests otherwise.
    pub fn after(&mut self, something_happened: bool) {
        if something_happened {
            *self = Self::default();
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds < ROUNDS {
            std::hint::spin_loop();
            return;
        }
        let quiet = *self.quiet.get_or_insert_with(Instant::now);
        if quiet.elapsed() < SPIN {
            thread::yield_now();
            return;
        }
        self.sleep = (2 * self.sleep).clamp(SPIN, LONGEST);
        thread::sleep(self.sleep);
    }
}
