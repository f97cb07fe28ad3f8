//! Ancestry of recent tasks: whether a dependency path makes a conflict edge superfluous.

use crate::task::{Dependency, TaskId};
use smallvec::SmallVec;

/// The dependencies of recent tasks.
#[derive(Debug)]
pub(crate) struct Ancestry {
    /// The task that `nodes` begins with.
    base: TaskId,
    nodes: Vec<Node>,
    /// The number of nodes above which the caller should forget old ones.
    bound: usize,
    stack: Vec<TaskId>,
}

#[derive(Debug)]
struct Node {
    dependencies: SmallVec<[TaskId; 4]>,
    /// The last task whose search visited this node.
    seen_by: TaskId,
}

/// The smallest bound on the number of nodes.
const NODES: usize = 256;

impl Ancestry {
    /// An ancestry that holds only the root.
    pub(crate) fn new() -> Self {
        let mut ancestry = Self { base: TaskId::EPOCH, nodes: Vec::new(), bound: NODES, stack: Vec::new() };
        ancestry.push(&[]);
        ancestry
    }

    /// The number of nodes and edges.
    pub(crate) fn tracked(&self) -> usize {
        self.nodes.iter().map(|node| 1 + node.dependencies.len()).sum()
    }

    /// Adds the next task.
    pub(crate) fn push(&mut self, dependencies: &[Dependency]) {
        let dependencies = dependencies.iter().map(|dependency| dependency.on).collect();
        self.nodes.push(Node { dependencies, seen_by: TaskId::EPOCH });
    }

    /// Forgets tasks before `oldest`.
    pub(crate) fn forget_before(&mut self, oldest: TaskId) {
        let gone = oldest.0.saturating_sub(self.base.0).min(self.nodes.len() as u64);
        self.nodes.drain(..gone as usize);
        self.base.0 += gone;
        self.bound = NODES.max(2 * self.nodes.len());
    }

    /// Whether there are enough nodes that forgetting the old ones pays.
    pub(crate) fn is_long(&self) -> bool {
        self.nodes.len() >= self.bound
    }

    /// Removes from `tasks` the ancestors of `task`, which was just added. Searches backwards as far as the
    /// oldest of them.
    pub(crate) fn remove_ancestors(&mut self, task: TaskId, tasks: &mut SmallVec<[TaskId; 4]>) {
        let Some(&oldest) = tasks.iter().min() else { return };
        self.stack.push(task);
        while let Some(id) = self.stack.pop() {
            let at = (id.0 - self.base.0) as usize;
            if self.nodes[at].seen_by == task {
                continue;
            }
            self.nodes[at].seen_by = task;
            self.stack.extend(self.nodes[at].dependencies.iter().filter(|&&on| on >= oldest));
        }
        tasks.retain(|other| self.nodes[(other.0 - self.base.0) as usize].seen_by != task);
    }
}
