//! Stopping on request: Ctrl-C, and the termination signals.
//!
//! The first signal asks the run to stop where nothing is lost; the run looks at
//! [`Interrupt::requested`] between frames. The second one stops the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of an interrupted run, as shells give it: 128 + SIGINT.
pub const EXIT_STATUS: u8 = 130;

/// Whether the user asked the run to stop. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over the process's interrupt and termination signals; `on_first` runs at the first of them,
    /// on a thread of its own.
    ///
    /// # Errors
    /// When the signals cannot be taken over, or already were: a process does this once.
    pub fn install(on_first: impl Fn() + Send + 'static) -> Result<Self, ctrlc::Error> {
        let interrupt = Self::default();
        let asked = interrupt.clone();
        ctrlc::set_handler(move || {
            if asked.0.swap(true, Ordering::Relaxed) {
                // The file is valid at every moment, so nothing has to be put in order first.
                std::process::exit(EXIT_STATUS.into());
            }
            on_first();
        })?;
        Ok(interrupt)
    }

    /// Whether to stop at the next good place.
    pub fn requested(&self) -> bool {
        // Relaxed: the flag publishes nothing but itself.
        self.0.load(Ordering::Relaxed)
    }

    /// Asks to stop, as the first signal does.
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
