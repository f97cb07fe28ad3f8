//! What must never happen, whatever the program is: noted where it is seen, by any thread.

use crate::program::Setup;
use std::{
    cell::Cell,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

thread_local! {
    /// Whether the thread runs a program. It may wait, and so may run tasks, on its own stack.
    static RUNS_A_PROGRAM: Cell<bool> = const { Cell::new(false) };
}

/// Notes what must not happen.
pub struct Witness {
    pub(super) setup: Setup,
    notes: Mutex<Vec<String>>,
}

impl Witness {
    pub fn new(setup: Setup) -> Arc<Self> {
        RUNS_A_PROGRAM.set(true);
        Arc::new(Self { setup, notes: Mutex::default() })
    }

    pub fn note(&self, what: impl Into<String>) {
        self.notes.lock().unwrap().push(what.into());
    }

    /// An error if something was noted.
    pub fn result(&self) -> Result<(), String> {
        let notes = self.notes.lock().unwrap();
        if notes.is_empty() { Ok(()) } else { Err(notes.join("; ")) }
    }

    /// Looks at the thread that runs a task. Threads of the program run no task that blocks, and none at all
    /// if they do not help. In a seeded runtime they run all tasks.
    pub fn check_thread(&self, what: &str, blocks: bool) {
        let Setup { helps, seed, .. } = self.setup;
        if seed.is_none() && (blocks || !helps) && RUNS_A_PROGRAM.get() {
            self.note(format!("a thread of the program runs {what} (blocks: {blocks}, helps: {helps})"));
        }
    }

    /// Gives other threads the time to do something wrong. In a seeded runtime no other thread does anything
    /// meanwhile.
    pub fn pause(&self, slow: bool) {
        if slow && self.setup.seed.is_none() {
            // Not `yield_now`, which takes as long as a time slice of each busy program of the machine.
            thread::sleep(Duration::from_micros(50));
        }
    }
}
