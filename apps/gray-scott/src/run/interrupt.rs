//! Stopping on request: Ctrl-C, and the termination signals.
//!
//! The first signal asks the run to stop where nothing is lost; the run checks [`Interrupt::requested`]
//! before every sweep. The second signal stops the process at once. A launcher of several processes may turn
//! one Ctrl-C into several signals, which then count as one.

use crate::outcome::INTERRUPTED;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// A request to stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles the process's interrupt and termination signals from now on. `on_first` runs at the first of
    /// them, on a separate thread. Signals that follow it within `same` are the same request.
    ///
    /// # Errors
    /// When the signals cannot be handled, or are handled already: a process can do this once.
    pub fn install(same: Duration, on_first: impl Fn() + Send + 'static) -> Result<Self, ctrlc::Error> {
        let interrupt = Self::default();
        let requested = interrupt.clone();
        let mut first = None::<Instant>;
        ctrlc::set_handler(move || match first {
            None => {
                first = Some(Instant::now());
                requested.request();
                on_first();
            }
            Some(first) if first.elapsed() < same => {}
            // The file is valid at every moment, so there is nothing to clean up.
            Some(_) => std::process::exit(INTERRUPTED.into()),
        })?;
        Ok(interrupt)
    }

    /// Whether a stop was requested.
    pub fn requested(&self) -> bool {
        // Relaxed: the flag publishes nothing but itself.
        self.0.load(Ordering::Relaxed)
    }

    /// Requests a stop, as the first signal does.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_request() {
        let interrupt = Interrupt::default();
        let other = interrupt.clone();
        assert!(!other.requested());
        interrupt.request();
        assert!(other.requested());
    }
}
