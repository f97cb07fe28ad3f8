//! The tasks of a seeded runtime. They run on the threads that submit and wait, one at a time, in an order
//! drawn from a seed, so that a test can repeat the order that brought a bug to light.
//!
//! A thread that waits looks for tasks now and then. A future cannot: if no task can start when it is polled,
//! it leaves its waker here. The next task that can start wakes it, whichever thread has made that task
//! ready. If no thread of the program runs the tasks that can start, a thread of the runtime does: see
//! [`standstill`].

use super::standstill::{self, Activity, MayStandStill};
use crate::{
    events::waker::LeftWaker,
    execute::{
        current_task::RuntimeId,
        task::{node::Node, place::Runner},
    },
    random::Random,
};
use parking_lot::Mutex;
use std::{
    any::Any,
    mem,
    sync::{Arc, Weak},
    task::Context,
};

pub(crate) struct Seeded {
    id: RuntimeId,
    /// Keeps the runtime alive while a thread of its own runs its tasks.
    runtime: Weak<dyn Any + Send + Sync>,
    random: Arc<Random>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Tasks that can start.
    ready: Vec<Node>,
    /// Futures that wait until a task can start.
    wakers: Vec<LeftWaker>,
    /// The number of tasks that are running.
    running: usize,
    /// How often a thread has looked for a task.
    searches: u64,
    /// Whether the runtime is [watched](standstill::watch).
    is_watched: bool,
}

impl State {
    /// Draws a task that can start and that the calling thread may run: see [`RuntimeId::may_help`].
    fn choose(&mut self, random: &Random) -> Option<usize> {
        let runnable = self.ready.iter().filter(|node| node.may_help()).count();
        // A thread that may run nothing of what can start does not count as looking for tasks: another thread
        // must run them.
        self.searches += u64::from(runnable > 0 || self.ready.is_empty());
        if runnable == 0 {
            return None;
        }
        let drawn = random.below(runnable);
        (0..self.ready.len()).filter(|&at| self.ready[at].may_help()).nth(drawn)
    }
}

impl Seeded {
    pub(crate) fn new(id: RuntimeId, runtime: Weak<dyn Any + Send + Sync>, random: Arc<Random>) -> Arc<Self> {
        Arc::new(Self { id, runtime, random, state: Mutex::default() })
    }

    /// Queues a task that can start.
    pub(crate) fn push(self: &Arc<Self>, node: Node) {
        let (wakers, is_watched) = {
            let mut state = self.state.lock();
            state.ready.push(node);
            (mem::take(&mut state.wakers), mem::replace(&mut state.is_watched, true))
        };
        if !is_watched {
            standstill::watch(Arc::<Self>::downgrade(self));
        }
        wakers.into_iter().for_each(LeftWaker::wake);
    }

    /// Runs one of the tasks that can start. Returns `false` if there is none that this thread may run.
    pub(crate) fn step(&self) -> bool {
        // Tasks run one after the other, not inside each other.
        if self.id.is_inside_task() {
            return false;
        }
        let node = {
            let mut state = self.state.lock();
            let Some(at) = state.choose(&self.random) else { return false };
            state.running += 1;
            state.ready.swap_remove(at)
        };
        let _running = Running(self);
        if node.claim() {
            node.run_on(Runner::Program);
        }
        true
    }

    /// Runs no, one or two tasks, as the seed says.
    pub(crate) fn step_some(&self) {
        let steps = self.random.below(4).saturating_sub(1);
        for _ in 0..steps {
            if !self.step() {
                break;
            }
        }
    }

    /// Leaves the waker of a future, until a task can start. Returns `false` if one can start now that the
    /// caller may run.
    pub(crate) fn leave_waker(&self, context: &Context<'_>) -> bool {
        // Wakers are the program's code: they are cloned and dropped outside the lock.
        let waker = LeftWaker::of(context);
        let _same: Vec<LeftWaker>;
        let mut state = self.state.lock();
        if !self.id.is_inside_task() && state.ready.iter().any(|node| node.may_help()) {
            return false;
        }
        _same = state.wakers.extract_if(.., |other| other.will_wake(&waker)).collect();
        state.wakers.push(waker);
        true
    }
}

impl MayStandStill for Seeded {
    fn activity(&self) -> Activity {
        let mut state = self.state.lock();
        if state.ready.is_empty() && state.running == 0 {
            state.is_watched = false;
            return Activity::Idle;
        }
        Activity::Busy { searches: state.searches, is_running: state.running > 0 }
    }

    fn run_all(&self) {
        if let Some(_runtime) = self.runtime.upgrade() {
            while self.step() {}
        }
    }
}

/// Counts a task as running.
struct Running<'s>(&'s Seeded);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.state.lock().running -= 1;
    }
}
