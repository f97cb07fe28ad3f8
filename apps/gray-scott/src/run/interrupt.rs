//! Stopping on request: Ctrl-C, and the termination signals.
//!
//! The first signal asks the run to stop where nothing is lost; the run checks
//! [`Interrupt::requested`] before every sweep. The second signal stops the process at once.

use crate::outcome::INTERRUPTED;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A request to stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles the process's interrupt and termination signals from now on. `on_first` runs at the first of
    /// them, on a separate thread.
    ///
    /// # Errors
    /// When the signals cannot be handled, or are handled already: a process can do this once.
    pub fn install(on_first: impl Fn() + Send + 'static) -> Result<Self, ctrlc::Error> {
        let interrupt = Self::default();
        let requested = interrupt.clone();
        ctrlc::set_handler(move || {
            if requested.0.swap(true, Ordering::Relaxed) {
                // The file is valid at every moment, so there is nothing to clean up.
                std::process::exit(INTERRUPTED.into());
            }
            on_first();
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
