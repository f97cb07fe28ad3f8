//! How far the submission of sweeps runs ahead of their execution.
//!
//! Submitted sweeps cannot be taken back, so an interruption takes effect when they are done. [`Pace`] limits
//! the time that they take, by the speed measured so far, whatever the size of the grid. On several nodes the
//! [votes](super::votes) do.

use super::times::Accounts;
use std::time::Duration;

/// The longest time that submitted sweeps may take together.
const AHEAD: Duration = Duration::from_millis(500);

/// The longest time that one sweep may take. A longer one is cut into sweeps of fewer steps.
const SWEEP: Duration = Duration::from_millis(250);

/// The seconds per cell and step that are expected before anything is measured: those of a slow processor.
const EXPECTED: f64 = 2e-9;

/// The same on a device: those of a driver that computes on the processor.
const EXPECTED_ON_DEVICE: f64 = 5e-8;

/// Limits the sweeps that are submitted.
pub(super) struct Pace {
    accounts: Accounts,
    cells: u64,
    /// The updates when the run began.
    before: u64,
    /// Steps submitted.
    submitted: u64,
    /// The seconds per cell and step until something is measured.
    expected: f64,
}

impl Pace {
    /// The pace of a run on a grid of `cells`. A device may be much slower than a processor.
    pub(super) fn new(accounts: &Accounts, cells: u64, on_device: bool) -> Self {
        let expected = per_update(on_device);
        Self { accounts: accounts.clone(), cells, before: accounts.updates(), submitted: 0, expected }
    }

    /// The number of steps of the next sweep: at most `most`, of `left` to the next frame, and no more than
    /// are done in a moment.
    pub(super) fn steps(&self, left: u64, most: u64) -> u64 {
        steps(left, most, self.seconds_per_step())
    }

    /// Counts a sweep as submitted.
    pub(super) fn submit(&mut self, steps: u64) {
        self.submitted += steps;
    }

    /// Whether a sweep of this many steps may be submitted now.
    pub(super) fn allows(&self, steps: u64) -> bool {
        let ahead = self.submitted - self.done();
        ahead == 0 || (ahead + steps) as f64 * self.seconds_per_step() <= AHEAD.as_secs_f64()
    }

    /// Whole steps that are done.
    pub(super) fn done(&self) -> u64 {
        (self.accounts.updates() - self.before) / self.cells
    }

    fn seconds_per_step(&self) -> f64 {
        let (updates, time) = self.accounts.computed();
        let per_update = if updates > 0 { time.as_secs_f64() / updates as f64 } else { self.expected };
        (per_update * self.cells as f64).max(1e-12)
    }
}

/// The number of steps of the next sweep, as [`Pace::steps`] has it, for steps that take so long.
pub(super) fn steps(left: u64, most: u64, seconds_per_step: f64) -> u64 {
    let in_time = (SWEEP.as_secs_f64() / seconds_per_step) as u64;
    equal(left, most.min(in_time).max(1))
}

/// The seconds that a step of this many cells is expected to take before anything is measured, on one thread
/// or one device.
pub(super) fn expected(cells: u64, on_device: bool) -> f64 {
    per_update(on_device) * cells as f64
}

fn per_update(on_device: bool) -> f64 {
    if on_device { EXPECTED_ON_DEVICE } else { EXPECTED }
}

/// The number of steps of the next sweep: at most `most`, of `left` to the next frame.
///
/// The sweeps to a frame have nearly equal length: 17 steps are 9 and 8, not 16 and 1.
fn equal(left: u64, most: u64) -> u64 {
    left.div_ceil(left.div_ceil(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    /// Accounts of a machine that needs a millisecond for each step of 1,000 cells.
    fn slow_accounts() -> Accounts {
        let now = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&now);
        let accounts = Accounts::with_clock(move || Duration::from_millis(clock.load(Ordering::Relaxed)));
        accounts.begin();
        let computing = accounts.computing(10_000);
        now.store(10, Ordering::Relaxed);
        computing.done();
        accounts
    }

    #[test]
    fn the_sweeps_to_a_frame_have_nearly_equal_length() {
        let pace = Pace::new(&Accounts::default(), 1, false);
        assert_eq!((pace.steps(17, 16), pace.steps(8, 16), pace.steps(1 << 50, 16)), (9, 8, 16));
    }

    #[test]
    fn a_sweep_that_would_take_long_is_cut() {
        let pace = Pace::new(&slow_accounts(), 100_000, false);
        assert_eq!(pace.steps(1000, 16), 2);
        let pace = Pace::new(&slow_accounts(), 10_000_000, false);
        assert_eq!(pace.steps(1000, 16), 1);
    }

    #[test]
    fn an_interruption_is_answered_soon_on_a_device_whose_speed_is_not_known_yet() {
        let mut pace = Pace::new(&Accounts::default(), 4_000_000, true);
        assert_eq!(pace.steps(1000, 16), 1);
        pace.submit(1);
        assert!(pace.allows(1));
        pace.submit(1);
        assert!(!pace.allows(1));
    }

    #[test]
    fn submitted_sweeps_take_half_a_second_at_most_and_one_is_always_allowed() {
        let mut pace = Pace::new(&slow_accounts(), 100_000, false);
        assert!(pace.allows(2));
        pace.submit(2);
        assert!(pace.allows(3) && !pace.allows(4));
        let pace = Pace::new(&slow_accounts(), 1_000_000_000, false);
        assert!(pace.allows(1));
    }
}
