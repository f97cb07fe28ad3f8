//! The tasks of a seeded runtime. They run on the threads that submit and wait, one at a time, in an order drawn from a
//! seed, so that a test can repeat the order that brought a bug to light.

use super::{
    current_task::{CurrentTask, RuntimeId},
    draw::Draw,
    node::Node,
    place::Runner,
};
use parking_lot::Mutex;
use std::sync::Arc;

pub(super) struct Seeded {
    runtime: RuntimeId,
    draw: Arc<Draw>,
    /// Tasks that can start.
    ready: Mutex<Vec<Node>>,
}

impl Seeded {
    pub(super) fn new(runtime: RuntimeId, draw: Arc<Draw>) -> Self {
        Self { runtime, draw, ready: Mutex::default() }
    }

    /// Queues a task that can start.
    pub(super) fn push(&self, node: Node) {
        self.ready.lock().push(node);
    }

    /// Runs one of the tasks that can start. Returns `false` if there is none, or if this thread is inside a task: tasks run
    /// one after the other, not inside each other.
    pub(super) fn step(&self) -> bool {
        if CurrentTask::is_of(self.runtime) {
            return false;
        }
        let node = {
            let mut ready = self.ready.lock();
            if ready.is_empty() {
                return false;
            }
            let at = self.draw.below(ready.len());
            ready.swap_remove(at)
        };
        if node.claim() {
            node.run_on(Runner::Program);
        }
        true
    }

    /// Runs no, one or two tasks, as the seed says.
    pub(super) fn step_some(&self) {
        let steps = self.draw.below(4).saturating_sub(1);
        for _ in 0..steps {
            if !self.step() {
                break;
            }
        }
    }
}
