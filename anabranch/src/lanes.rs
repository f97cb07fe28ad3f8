//! Lanes: threads for host tasks, which may block, so that they never take a compute worker.
//!
//! Lanes are started when they are needed, up to a bound, and stay. One that has nothing to do looks around for a
//! moment and then sleeps.

use crate::node::{Node, Runner};
use anabranch_graph::TaskId;
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How long a lane looks for the next task before it sleeps.
const SPIN: Duration = Duration::from_micros(30);

pub(crate) struct Lanes {
    shared: Arc<Shared>,
    max: usize,
    name: String,
}

#[derive(Default)]
struct Shared {
    /// The length of the queue, readable without the lock.
    len: AtomicUsize,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<Node>>,
    threads: Vec<JoinHandle<()>>,
    /// Lanes that look at the queue again and again.
    searching: usize,
    /// Lanes that sleep, and how many of them have been woken for a task that they have not taken yet.
    sleeping: usize,
    woken: usize,
    stop: bool,
}

impl Shared {
    fn pop(&self, state: &mut State) -> Option<Arc<Node>> {
        let node = state.queue.pop_front();
        self.len.store(state.queue.len(), Release);
        node
    }

    /// A lane's life.
    fn work(self: &Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            if let Some(node) = self.pop(&mut state) {
                if !state.queue.is_empty() {
                    // Whoever pushed the next one may have relied on this lane.
                    self.rouse(&mut state);
                }
                drop(state);
                if node.claim() {
                    node.run_on(Runner::Lane);
                }
                state = self.state.lock();
            } else if state.stop {
                return;
            } else {
                state.searching += 1;
                drop(state);
                self.search();
                state = self.state.lock();
                state.searching -= 1;
                if state.queue.is_empty() && !state.stop {
                    state.sleeping += 1;
                    while state.woken == 0 && !state.stop {
                        self.wake.wait(&mut state);
                    }
                    state.woken = state.woken.saturating_sub(1);
                    state.sleeping -= 1;
                }
            }
        }
    }

    /// Looks at the queue for a while.
    fn search(&self) {
        let begin = Instant::now();
        while self.len.load(Acquire) == 0 && begin.elapsed() < SPIN {
            std::hint::spin_loop();
        }
    }

    /// Wakes a sleeping lane that is not on its way already; `false` where there is none.
    fn rouse(&self, state: &mut State) -> bool {
        let asleep = state.sleeping > state.woken;
        if asleep {
            state.woken += 1;
            self.wake.notify_one();
        }
        asleep
    }
}

impl Lanes {
    /// At most `max` lanes; one is started now, so that a later refusal of the system costs only concurrency.
    pub(crate) fn new(max: usize, name: String) -> io::Result<Self> {
        let lanes = Self { shared: Arc::default(), max, name };
        lanes.start(&mut lanes.shared.state.lock())?;
        Ok(lanes)
    }

    fn start(&self, state: &mut State) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let name = format!("{}host-{}", self.name, state.threads.len());
        state.threads.push(std::thread::Builder::new().name(name).spawn(move || shared.work())?);
        Ok(())
    }

    /// Queues a task that is ready.
    pub(crate) fn push(&self, node: Arc<Node>) {
        let mut state = self.shared.state.lock();
        state.queue.push_back(node);
        self.shared.len.store(state.queue.len(), Release);
        let expected = state.searching + state.woken;
        if expected < state.queue.len() && !self.shared.rouse(&mut state) && state.threads.len() < self.max {
            // If the system refuses another thread, the lanes that there are will come to the task.
            let _ = self.start(&mut state);
        }
    }

    /// Takes the first task of the queue, for the calling thread to run, if it is one that the thread waits for: one that
    /// was submitted no later than `last`.
    pub(crate) fn steal(&self, last: TaskId) -> Option<Arc<Node>> {
        if self.shared.len.load(Acquire) == 0 {
            return None;
        }
        let mut state = self.shared.state.lock();
        state.queue.front().filter(|node| node.id <= last)?;
        self.shared.pop(&mut state)
    }

    /// Ends the lanes when the queue is empty, and waits for them.
    pub(crate) fn stop(&self) {
        let threads = {
            let mut state = self.shared.state.lock();
            state.stop = true;
            self.shared.wake.notify_all();
            std::mem::take(&mut state.threads)
        };
        let me = std::thread::current().id();
        for thread in threads.into_iter().filter(|t| t.thread().id() != me) {
            // A lane catches everything that its tasks throw; there is nothing to hear from it.
            let _ = thread.join();
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").field("max", &self.max).finish_non_exhaustive()
    }
}
