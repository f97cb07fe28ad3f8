//! Tasks that must not run at the same time, in whatever order: the lock around the scheduler that decides which of them
//! start when. No thread waits for a conflict.

use super::task::{node::Node, properties::Contention};
use anabranch_graph::{ConflictScheduler, TaskId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The scheduler of conflicts, and the nodes of its tasks.
#[derive(Default)]
pub(super) struct Conflicts(Mutex<State>);

#[derive(Default)]
struct State {
    scheduler: ConflictScheduler,
    nodes: FxHashMap<TaskId, Node>,
    start: Vec<TaskId>,
}

/// Tasks that can start.
type Start = SmallVec<[Node; 2]>;

impl Conflicts {
    /// Inserts a task whose dependencies are done.
    pub(super) fn eligible(&self, node: &Node) -> Start {
        let mut state = self.0.lock();
        if let Some(Contention { effects, priority }) = node.contention.as_deref() {
            state.scheduler.insert(node.id, *priority, effects);
        }
        state.nodes.insert(node.id, node.clone());
        state.update(|scheduler, start| scheduler.eligible(node.id, start))
    }

    /// Removes a task that has run or was skipped.
    pub(super) fn finished(&self, node: &Node) -> Start {
        let mut state = self.0.lock();
        state.nodes.remove(&node.id);
        state.update(|scheduler, start| scheduler.finished(node.id, start))
    }

    /// The number of tasks that only running tasks in conflict keep from starting.
    pub(super) fn waiting(&self) -> usize {
        self.0.lock().scheduler.waiting()
    }
}

impl State {
    fn update(&mut self, change: impl FnOnce(&mut ConflictScheduler, &mut Vec<TaskId>)) -> Start {
        let Self { scheduler, nodes, start } = self;
        change(scheduler, start);
        start.drain(..).map(|task| nodes[&task].clone()).collect()
    }
}
