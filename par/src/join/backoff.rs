//! Pauses between offers: handing a half over costs as much as running a small piece of work.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// The first pause after an offer that was in vain. Each further one is twice as long, up to the longest.
const SHORTEST: Duration = Duration::from_micros(4);
const LONGEST: Duration = Duration::from_micros(1024);

/// Says when the next offer may be made. Reading the clock costs more than a join, so it is read at the
/// first, second, fourth, … question only. A pause lasts at most twice as long as it should.
#[derive(Debug)]
pub(crate) struct Backoff {
    pause: Cell<Duration>,
    until: Cell<Option<Instant>>,
    /// How many questions are answered without reading the clock.
    skip: Cell<u32>,
    /// The value of `skip` after the next reading.
    stride: Cell<u32>,
}

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self { pause: Cell::new(SHORTEST), until: Cell::new(None), skip: Cell::new(0), stride: Cell::new(1) }
    }

    /// Whether a half may be offered now.
    #[inline]
    pub(crate) fn may_offer(&self) -> bool {
        if self.skip.get() > 0 {
            self.skip.set(self.skip.get() - 1);
            return false;
        }
        self.until.get().is_none_or(|until| self.is_over(until))
    }

    fn is_over(&self, until: Instant) -> bool {
        if Instant::now() >= until {
            self.until.set(None);
            return true;
        }
        self.skip.set(self.stride.get());
        self.stride.set(self.stride.get().saturating_mul(2));
        false
    }

    /// No thread needs an offer now: the next few questions are answered with no.
    pub(crate) fn skip_some(&self) {
        self.skip.set(8);
    }

    /// The last offer was worth it.
    pub(crate) fn reset(&self) {
        self.pause.set(SHORTEST);
    }

    /// The last offer was not taken, or was not worth it.
    pub(crate) fn pause(&self) {
        let pause = self.pause.get();
        self.until.set(Some(Instant::now() + pause));
        self.pause.set((pause * 2).min(LONGEST));
        self.stride.set(1);
    }
}
