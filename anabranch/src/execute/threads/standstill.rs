//! Seeded runtimes that stand still: one thread finds them, and has their tasks run.
//!
//! The tasks of a seeded runtime run on threads of the program that submit and wait. If no thread does so any
//! more, the tasks that can start would never run: when only these tasks keep the runtime alive, for example.
//! One thread watches all seeded runtimes. If tasks can start and no thread of the program looks for tasks
//! for about a second, it starts a thread that runs them, still in the order of the seed. Programs that
//! submit and wait without such a pause keep the order of their seed.

use parking_lot::{Condvar, Mutex};
use std::{sync::Weak, thread, time::Duration};

/// How often the thread looks at each runtime. It sleeps while all of them are idle.
const INTERVAL: Duration = Duration::from_millis(10);

/// A runtime that has stood still for this number of looks gets a thread. Looks are counted, and not the
/// time: on a machine that is held up, the threads of the program are held up, too.
const LOOKS: u32 = 100;

static WATCHER: Watcher =
    Watcher { state: Mutex::new(State { runtimes: Vec::new(), has_thread: false }), added: Condvar::new() };

struct Watcher {
    state: Mutex<State>,
    added: Condvar,
}

struct State {
    runtimes: Vec<Watched>,
    has_thread: bool,
}

/// What the threads of the program do with the tasks.
pub(super) enum Activity {
    /// No task can start and none is running.
    Idle,
    /// Tasks can start or are running.
    Busy { searches: u64, is_running: bool },
}

/// A runtime whose tasks may stand still.
pub(super) trait MayStandStill: Send + Sync {
    /// What the threads of the program do with the tasks. If this is [`Idle`](Activity::Idle), the watch
    /// ends: the runtime asks for a new one with its next task.
    fn activity(&self) -> Activity;

    /// Runs all tasks that can start, on a thread of the runtime.
    fn run_all(&self);
}

/// A runtime that the thread watches.
struct Watched {
    runtime: Weak<dyn MayStandStill>,
    /// The number of searches at the last look.
    searches: u64,
    /// The number of looks since the runtime has stood still.
    looks: u32,
}

/// Watches a runtime until it is idle.
pub(super) fn watch(runtime: Weak<dyn MayStandStill>) {
    let mut state = WATCHER.state.lock();
    state.runtimes.push(Watched { runtime, searches: 0, looks: 0 });
    if !state.has_thread {
        // Without the thread, tasks wait for threads of the program. The next call tries again.
        let thread = thread::Builder::new().name("anabranch-watch".into()).spawn(run);
        state.has_thread = thread.is_ok();
    }
    WATCHER.added.notify_one();
}

fn run() {
    loop {
        let mut runtimes = {
            let mut state = WATCHER.state.lock();
            while state.runtimes.is_empty() {
                WATCHER.added.wait(&mut state);
            }
            std::mem::take(&mut state.runtimes)
        };
        thread::sleep(INTERVAL);
        runtimes.retain_mut(Watched::look);
        WATCHER.state.lock().runtimes.append(&mut runtimes);
    }
}

impl Watched {
    /// Looks at the runtime. Returns `false` if it is idle or gone.
    fn look(&mut self) -> bool {
        let Some(runtime) = self.runtime.upgrade() else { return false };
        let Activity::Busy { searches, is_running } = runtime.activity() else { return false };
        let stands_still = !is_running && searches == self.searches;
        self.looks = if stands_still { self.looks + 1 } else { 0 };
        self.searches = searches;
        if self.looks >= LOOKS {
            self.looks = 0;
            let run = move || runtime.run_all();
            // If the system refuses the thread, a later look tries again.
            let _ = thread::Builder::new().name("anabranch-seeded".into()).spawn(run);
        }
        true
    }
}
