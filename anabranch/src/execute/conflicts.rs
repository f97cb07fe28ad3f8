//! Tasks that must not run at the same time, in whatever order: the lock around the scheduler that decides
//! which of them start when. No thread waits for a conflict.

use super::task::{node::Node, properties::Contention};
use anabranch_graph::{ConflictScheduler, Contender};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// The scheduler of conflicts, and the nodes of tasks that wait in it.
#[derive(Default)]
pub(super) struct Conflicts(Mutex<State>);

#[derive(Default)]
struct State {
    scheduler: ConflictScheduler,
    /// The nodes, by their slots in the scheduler.
    nodes: Vec<Option<Node>>,
    start: Vec<Contender>,
}

/// Tasks that can start.
type Start = SmallVec<[Node; 2]>;

const CONTENDS: &str = "the task may be in conflict with others";

impl Conflicts {
    /// Inserts a task whose dependencies are done.
    pub(super) fn eligible(&self, node: &Node) -> Start {
        let Contention { effects, priority, slot } = node.contention.as_deref().expect(CONTENDS);
        let mut state = self.0.lock();
        let inserted = state.scheduler.insert(node.id, *priority, effects);
        slot.store(inserted.slot() as u32, Relaxed);
        if state.nodes.len() <= inserted.slot() {
            state.nodes.resize(inserted.slot() + 1, None);
        }
        state.nodes[inserted.slot()] = Some(node.clone());
        state.update(|scheduler, start| scheduler.eligible(inserted, start))
    }

    /// Removes a task that has run or was skipped.
    pub(super) fn finished(&self, node: &Node) -> Start {
        let slot = &node.contention.as_deref().expect(CONTENDS).slot;
        let mut state = self.0.lock();
        let contender = state.scheduler.contender(slot.load(Relaxed) as usize);
        let contender = contender.filter(|contender| contender.task() == node.id);
        let contender = contender.expect("a task runs or is skipped after it was eligible");
        state.update(|scheduler, start| scheduler.finished(contender, start))
    }

    /// The number of tasks that only running tasks in conflict keep from starting.
    pub(super) fn waiting(&self) -> usize {
        self.0.lock().scheduler.waiting()
    }
}

impl State {
    fn update(&mut self, change: impl FnOnce(&mut ConflictScheduler, &mut Vec<Contender>)) -> Start {
        let Self { scheduler, nodes, start } = self;
        change(scheduler, start);
        let mut node = |task: Contender| nodes[task.slot()].take().expect("a task starts once");
        let mut ready = Start::new();
        // One by one: there are few, and `collect` is a call that takes longer.
        start.drain(..).for_each(|task| ready.push(node(task)));
        ready
    }
}
