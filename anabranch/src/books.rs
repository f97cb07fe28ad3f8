//! The books: tasks that are not known to be done, by their ids, and failures that later tasks may still run into.

use crate::{
    error::Failure,
    node::{Needs, Node},
};
use anabranch_graph::{Dependency, Kind, Origin, TaskGraph, TaskId};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

/// Tasks stay in the books for so many submissions at least: until whoever ran them has let go of them, so that their
/// memory is given back by the thread that will take it again.
const KEPT: usize = 64;

/// After so many failed tasks in the books, those whose results are gone are struck off.
const FAILED: usize = 1024;

#[derive(Default)]
pub(crate) struct Books {
    /// The id of the first entry of `recent`.
    first: u64,
    /// One entry for each id, from `first` on.
    recent: VecDeque<Option<Node>>,
    /// Older tasks that were not done when they were looked at, ascending; and how many there may be before they are
    /// looked at again.
    stragglers: Vec<Node>,
    stragglers_bound: usize,
    /// Failures of tasks that have left the books, as long as later tasks may need their results.
    failed: HashMap<TaskId, Failed>,
    failed_bound: usize,
}

struct Failed {
    failure: Arc<Failure>,
    contends: bool,
}

impl Failed {
    /// Of a task that is done, if it has failed, with its id.
    fn of(node: &Node) -> Option<(TaskId, Self)> {
        node.poison().map(|failure| (node.id, Self { failure, contends: node.contends() }))
    }

    /// Whether a later task by an effect must still hear of it.
    fn is_awaited(&self) -> bool {
        self.contends && Needs::Object.suffers(&self.failure)
    }
}

impl Books {
    /// The task, unless it is forgotten, and so done.
    pub(crate) fn get(&self, task: TaskId) -> Option<&Node> {
        match task.0.checked_sub(self.first) {
            Some(at) => self.recent.get(at as usize)?.as_ref(),
            None => {
                let at = self.stragglers.binary_search_by_key(&task, |node| node.id).ok()?;
                Some(&self.stragglers[at])
            }
        }
    }

    /// Whether the graph may forget the task. Not where one has failed beside which others touch an object: it is no
    /// later task's predecessor by them, and those that come after all of them must still hear of it.
    pub(crate) fn is_forgettable(&self, task: TaskId) -> bool {
        match self.get(task) {
            Some(node) => {
                let tells = || node.poison().is_some_and(|failure| Needs::Object.suffers(&failure));
                node.is_done() && !(node.contends() && node.is_poisoned() && tells())
            }
            None => self.failed.get(&task).is_none_or(|failed| !failed.is_awaited()),
        }
    }

    /// Enters a task, whose id follows that of the one before.
    pub(crate) fn enter(&mut self, node: Node) {
        if self.recent.is_empty() {
            self.first = node.id.0;
        }
        while self.first + (self.recent.len() as u64) < node.id.0 {
            self.recent.push_back(None);
        }
        self.recent.push_back(Some(node));
    }

    /// All tasks that are in the books.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.stragglers.iter().chain(self.recent.iter().flatten())
    }

    /// Makes `node` wait for the task that it depends on; whether it has to.
    pub(crate) fn link(&self, node: &Node, dependency: &Dependency) -> bool {
        let needs = match (dependency.kind, dependency.origin) {
            (Kind::True, _) => Needs::Contents,
            // Whether an object is good depends on all tasks that touched it before.
            (Kind::Serial, Origin::Object(_)) => Needs::Object,
            (Kind::Serial | Kind::Anti | Kind::Output, _) => Needs::End,
        };
        match self.get(dependency.on) {
            Some(before) => before.precede(node, needs),
            None if needs == Needs::End || self.failed.is_empty() => false,
            None => {
                let failed = self.failed.get(&dependency.on).filter(|f| needs.suffers(&f.failure));
                // The failure that is replaced, if one is, has other owners.
                failed.into_iter().for_each(|f| drop(node.poison_with(&f.failure)));
                false
            }
        }
    }

    /// Forgets some tasks that are done, as many as are entered or a few more. What comes out is to be dropped outside
    /// the lock: errors are the program's own, and so are their destructors.
    pub(crate) fn forget_some(
        &mut self,
        graph: &TaskGraph,
        in_flight: impl Fn() -> u64,
    ) -> Vec<Arc<Failure>> {
        for _ in 0..2 {
            if self.recent.len() <= KEPT || !self.forget_first() {
                break;
            }
        }
        if self.recent.len() > 4096 + KEPT && self.recent.len() as u64 > 2 * in_flight() + 1024 {
            self.move_stragglers();
        }
        self.strike_off(graph)
    }

    /// Forgets all tasks that are done.
    pub(crate) fn forget_all(&mut self) {
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

    /// A task that takes long must not keep all that came after it in the books.
    #[cold]
    fn move_stragglers(&mut self) {
        while self.recent.len() > KEPT {
            if self.forget_first() {
                continue;
            }
            let node = self.recent.pop_front().flatten().expect("the first task is not done");
            self.first += 1;
            self.stragglers.push(node);
        }
        if self.stragglers.len() > self.stragglers_bound.max(KEPT) {
            self.retain_stragglers();
        }
    }

    fn retain_stragglers(&mut self) {
        let failed = &mut self.failed;
        self.stragglers.retain(|node| {
            // Looked at once: it may become done meanwhile.
            let done = node.is_done();
            if done {
                failed.extend(Failed::of(node));
            }
            !done
        });
        self.stragglers_bound = 2 * self.stragglers.len();
    }

    /// Failures that no later task can run into.
    fn strike_off(&mut self, graph: &TaskGraph) -> Vec<Arc<Failure>> {
        if self.failed.len() < self.failed_bound.max(FAILED) {
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
