//! A program that hangs ends the process with a message that says how to run it again.

use std::{
    io::Write as _,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// The command that runs the programs of a test again that begin with this seed.
pub fn replay(test: &str, seed: u64) -> String {
    let release = if cfg!(debug_assertions) { "" } else { "--release " };
    let package = env!("CARGO_PKG_NAME");
    format!("ANABRANCH_SEED={seed} cargo test {release}-p {package} --test oracle {test}")
}

/// Knows which program runs.
pub struct Watch(Arc<Mutex<(u64, Instant)>>);

impl Watch {
    /// Watches the programs of a test. Each may take as long as a whole test of the other crates: some
    /// milliseconds are usual, and a second under the sanitizers on a busy machine.
    pub fn begin(test: &'static str) -> Self {
        let limit = testing::limit();
        let current = Arc::new(Mutex::new((0, Instant::now())));
        let watched = Arc::downgrade(&current);
        std::thread::spawn(move || {
            while let Some(current) = watched.upgrade() {
                let (seed, since) = *current.lock().unwrap();
                if since.elapsed() > limit {
                    let (seconds, replay) = (limit.as_secs_f64(), replay(test, seed));
                    // Not `eprintln!`, which the test harness may capture.
                    let _ = writeln!(
                        std::io::stderr(),
                        "\nerror: the program of seed {seed} hangs: it has not ended within {seconds} seconds. To run it again:\n{replay}"
                    );
                    std::process::abort();
                }
                drop(current);
                std::thread::sleep(limit.min(Duration::from_secs(1)));
            }
        });
        Self(current)
    }

    /// Another program begins.
    pub fn program(&self, seed: u64) {
        *self.0.lock().unwrap() = (seed, Instant::now());
    }
}
