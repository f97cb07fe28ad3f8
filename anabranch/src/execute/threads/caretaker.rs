//! The caretaker of seeded runtimes: it sees to it that every task runs in the end.
//!
//! The tasks of a seeded runtime run on threads of the program that submit and wait. If no thread does so any more, the tasks
//! that can start would never run: when only these tasks keep the runtime alive, for example. The caretaker is one thread for all
//! seeded runtimes. If tasks can start and no thread of the program looks for tasks for about a second, it starts a thread that
//! runs them, still in the order of the seed. Programs that submit and wait without such a pause keep the order of their seed.

use super::seeded::{Seeded, Sight};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

/// How often the caretaker looks at each runtime. It sleeps while all of them are idle.
const INTERVAL: Duration = Duration::from_millis(10);

/// A runtime that has stood still for this number of looks gets a thread. Looks are counted, and not the time: on a machine
/// that is held up, the threads of the program are held up, too.
const LOOKS: u32 = 100;

static CARETAKER: Caretaker = Caretaker {
    state: Mutex::new(State { runtimes: Vec::new(), has_thread: false }),
    called: Condvar::new(),
};

struct Caretaker {
    state: Mutex<State>,
    called: Condvar,
}

struct State {
    runtimes: Vec<Charge>,
    has_thread: bool,
}

/// A runtime that the caretaker looks after.
struct Charge {
    runtime: Weak<Seeded>,
    activity: u64,
    looks: u32,
}

/// Looks after a runtime until it is idle.
pub(crate) fn look_after(runtime: &Arc<Seeded>) {
    let mut state = CARETAKER.state.lock();
    state.runtimes.push(Charge { runtime: Arc::downgrade(runtime), activity: 0, looks: 0 });
    if !state.has_thread {
        // Without the thread, tasks wait for threads of the program. The next call tries again.
        let thread = thread::Builder::new().name("anabranch-seeded".into()).spawn(run);
        state.has_thread = thread.is_ok();
    }
    CARETAKER.called.notify_one();
}

fn run() {
    loop {
        let mut runtimes = {
            let mut state = CARETAKER.state.lock();
            while state.runtimes.is_empty() {
                CARETAKER.called.wait(&mut state);
            }
            std::mem::take(&mut state.runtimes)
        };
        thread::sleep(INTERVAL);
        runtimes.retain_mut(Charge::look);
        CARETAKER.state.lock().runtimes.append(&mut runtimes);
    }
}

impl Charge {
    /// Looks at the runtime. Returns `false` if it is idle or gone.
    fn look(&mut self) -> bool {
        let Some(runtime) = self.runtime.upgrade() else { return false };
        let Sight::Busy { activity, stands_still } = runtime.sight() else { return false };
        self.looks = if stands_still && activity == self.activity { self.looks + 1 } else { 0 };
        self.activity = activity;
        if self.looks >= LOOKS {
            self.looks = 0;
            let run = move || runtime.run_left_over();
            // If the system refuses the thread, a later look tries again.
            let _ = thread::Builder::new().name("anabranch-left-over".into()).spawn(run);
        }
        true
    }
}
