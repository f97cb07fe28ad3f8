//! The live tasks: tasks that are not known to be done, by their ids, and failures that later tasks may still depend on.
//!
//! Submissions insert tasks and forget tasks that are done, so the list stays as short as the number of tasks in flight. Two
//! things keep a task in the list beyond its end:
//!
//! - A task stays for [`RECENT`] more submissions. By then the thread that ran it has let go of its node, and the submitting
//!   thread frees the node: see [`node`](super::node).
//! - The failure of a task stays, without its node, as long as the contents of a buffer or the state of a host object come
//!   from that task: a later reader must be skipped.
//!
//! A task that runs for long must not keep all later tasks in the list. It moves to a list of stragglers.

use super::node::{Needs, Node};
use crate::error::Failure;
use anabranch_graph::{Dependency, Kind, Origin, TaskGraph, TaskId};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

/// The number of submissions for which every task stays in the list.
const RECENT: usize = 64;

/// The number of failures beyond which those that no later task can depend on are removed.
const MAX_FAILURES: usize = 1024;

#[derive(Default)]
pub(super) struct LiveTasks {
    /// The id of the first entry of `recent`.
    first: u64,
    /// One entry for each id, from `first` on.
    recent: VecDeque<Option<Node>>,
    /// Older tasks that were not done when they were last checked, ascending.
    stragglers: Vec<Node>,
    /// The number of stragglers beyond which they are checked again.
    stragglers_bound: usize,
    /// Failures of tasks that are no longer in the list, as long as later tasks may need their results.
    failed: HashMap<TaskId, Failed>,
    failed_bound: usize,
}

struct Failed {
    failure: Arc<Failure>,
    contends: bool,
}

impl Failed {
    /// The id and the failure of a task that is done, if it has failed.
    fn of(node: &Node) -> Option<(TaskId, Self)> {
        node.poison().map(|failure| (node.id, Self { failure, contends: node.contends() }))
    }

    /// Whether the graph must remember the task: see [`LiveTasks::is_forgettable`].
    fn is_needed(&self) -> bool {
        self.contends && Needs::Object.is_broken_by(&self.failure)
    }
}

impl LiveTasks {
    /// The task, unless it was forgotten because it is done.
    pub(super) fn get(&self, task: TaskId) -> Option<&Node> {
        match task.0.checked_sub(self.first) {
            Some(at) => self.recent.get(at as usize)?.as_ref(),
            None => {
                let at = self.stragglers.binary_search_by_key(&task, |node| node.id).ok()?;
                Some(&self.stragglers[at])
            }
        }
    }

    /// Whether the graph may forget the task. A failed task with exclusive or relaxed effects must be remembered: there are no
    /// dependencies between it and other such tasks on the same object, and the task that comes after all of them must find
    /// its failure.
    pub(super) fn is_forgettable(&self, task: TaskId) -> bool {
        match self.get(task) {
            Some(node) => {
                let is_broken = || node.poison().is_some_and(|failure| Needs::Object.is_broken_by(&failure));
                node.is_done() && !(node.contends() && node.is_poisoned() && is_broken())
            }
            None => self.failed.get(&task).is_none_or(|failed| !failed.is_needed()),
        }
    }

    /// Inserts a task. Its id is larger than the ids of all tasks before.
    pub(super) fn insert(&mut self, node: Node) {
        if self.recent.is_empty() {
            self.first = node.id.0;
        }
        while self.first + (self.recent.len() as u64) < node.id.0 {
            self.recent.push_back(None);
        }
        self.recent.push_back(Some(node));
    }

    /// All tasks in the list.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.stragglers.iter().chain(self.recent.iter().flatten())
    }

    /// Makes `node` wait for the task that it depends on. Returns whether it has to wait.
    pub(super) fn link(&self, node: &Node, dependency: &Dependency) -> bool {
        let needs = match (dependency.kind, dependency.origin) {
            (Kind::True, _) => Needs::Contents,
            // An object is good only if no task before has left it half changed.
            (Kind::Serial, Origin::Object(_)) => Needs::Object,
            (Kind::Serial | Kind::Anti | Kind::Output, _) => Needs::End,
        };
        match self.get(dependency.on) {
            Some(before) => before.add_successor(node, needs),
            None if needs == Needs::End || self.failed.is_empty() => false,
            None => {
                let failed = self.failed.get(&dependency.on).filter(|f| needs.is_broken_by(&f.failure));
                // A replaced failure has other owners, so no destructor of the program runs here.
                failed.into_iter().for_each(|f| drop(node.poison_with(&f.failure)));
                false
            }
        }
    }

    /// Forgets some tasks that are done, a few more than a submission inserts. The caller drops the returned failures outside
    /// the lock: errors are the program's own, and so are their destructors.
    #[inline]
    pub(super) fn forget_some(
        &mut self,
        graph: &TaskGraph,
        in_flight: impl Fn() -> u64,
    ) -> Vec<Arc<Failure>> {
        for _ in 0..2 {
            if self.recent.len() <= RECENT || !self.forget_first() {
                break;
            }
        }
        if self.recent.len() > 4096 + RECENT && self.recent.len() as u64 > 2 * in_flight() + 1024 {
            self.move_stragglers();
        }
        self.remove_failures(graph)
    }

    /// Forgets all tasks that are done.
    pub(super) fn forget_completed(&mut self) {
        while self.forget_first() {}
        self.retain_stragglers();
    }

    /// Forgets the first task if it is done.
    fn forget_first(&mut self) -> bool {
        match self.recent.front() {
            None => return false,
            Some(None) => {}
            Some(Some(node)) if node.is_done() => {
                if node.is_poisoned() {
                    self.failed.extend(Failed::of(node));
                }
            }
            Some(Some(_)) => return false,
        }
        self.recent.pop_front();
        self.first += 1;
        true
    }

    /// Moves tasks that run for long out of the way of later ones.
    #[cold]
    fn move_stragglers(&mut self) {
        while self.recent.len() > RECENT {
            if self.forget_first() {
                continue;
            }
            let node = self.recent.pop_front().flatten().expect("the first task is not done");
            self.first += 1;
            self.stragglers.push(node);
        }
        if self.stragglers.len() > self.stragglers_bound.max(RECENT) {
            self.retain_stragglers();
        }
    }

    /// Forgets the stragglers that are done.
    fn retain_stragglers(&mut self) {
        let failed = &mut self.failed;
        self.stragglers.retain(|node| {
            // Asked once: the task may complete meanwhile.
            let done = node.is_done();
            if done {
                failed.extend(Failed::of(node));
            }
            !done
        });
        self.stragglers_bound = 2 * self.stragglers.len();
    }

    /// Removes the failures that no later task can depend on, if there are many.
    fn remove_failures(&mut self, graph: &TaskGraph) -> Vec<Arc<Failure>> {
        if self.failed.len() < self.failed_bound.max(MAX_FAILURES) {
            return Vec::new();
        }
        let mut wanted = HashSet::new();
        graph.last_writers(|task| {
            wanted.insert(task);
        });
        let gone = self.failed.extract_if(|task, _| !wanted.contains(task)).map(|(_, f)| f.failure).collect();
        self.failed_bound = 2 * self.failed.len();
        gone
    }
}
