//! Tasks that must not run at the same time, in whatever order: which of them are started when.

use crate::node::Node;
use anabranch_graph::{ConflictScheduler, Effect, TaskId};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashMap;

/// The scheduler of conflicts, and the nodes of its tasks.
#[derive(Default)]
pub(crate) struct Conflicts(Mutex<State>);

#[derive(Default)]
struct State {
    scheduler: ConflictScheduler,
    nodes: HashMap<TaskId, Node>,
    start: Vec<TaskId>,
}

/// Tasks that are to be started.
type Start = SmallVec<[Node; 2]>;

impl Conflicts {
    /// A task is being submitted.
    pub(crate) fn insert(&self, node: &Node, effects: &[Effect]) {
        let mut state = self.0.lock();
        state.scheduler.insert(node.id, node.priority, effects);
        state.nodes.insert(node.id, node.clone());
    }

    /// Everything that the task depends on is done.
    pub(crate) fn eligible(&self, node: &Node) -> Start {
        self.0.lock().update(|scheduler, start| scheduler.eligible(node.id, start))
    }

    /// The task has run, or was skipped.
    pub(crate) fn finished(&self, node: &Node) -> Start {
        let mut state = self.0.lock();
        state.nodes.remove(&node.id);
        state.update(|scheduler, start| scheduler.finished(node.id, start))
    }

    /// How many tasks could run but for others that do.
    pub(crate) fn waiting(&self) -> usize {
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
