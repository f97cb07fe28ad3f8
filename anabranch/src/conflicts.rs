//! Tasks that must not run at the same time, in whatever order: which of them are started when.

use crate::node::Node;
use anabranch_graph::{ConflictScheduler, TaskId};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// The scheduler of conflicts, and the nodes of its tasks.
#[derive(Default)]
pub(crate) struct Conflicts(Mutex<State>);

#[derive(Default)]
struct State {
    scheduler: ConflictScheduler,
    nodes: HashMap<TaskId, Node, BuildHasherDefault<IdHasher>>,
    start: Vec<TaskId>,
}

/// Ids are dense numbers: spreading them over the bits is enough.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("ids are hashed as numbers");
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Tasks that are to be started.
type Start = SmallVec<[Node; 2]>;

impl Conflicts {
    /// Everything that the task depends on is done.
    pub(crate) fn eligible(&self, node: &Node) -> Start {
        let mut state = self.0.lock();
        let effects = node.contention.as_deref().unwrap_or_default();
        state.scheduler.insert(node.id, node.priority, effects);
        state.nodes.insert(node.id, node.clone());
        state.update(|scheduler, start| scheduler.eligible(node.id, start))
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
