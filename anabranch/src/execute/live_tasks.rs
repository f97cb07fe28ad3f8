//! The live tasks: tasks that are not known to be closed, by their ids, and failures that later tasks may
//! still depend on.
//!
//! Submissions insert tasks and forget tasks that are closed, so the list stays nearly as short as the number
//! of tasks in flight. Three things keep a task in the list beyond its end:
//!
//! - The last [`RECENT`] tasks stay. When another one leaves, the thread that ran it has let go of its node,
//!   and the submitting thread frees the node: see [`node`](super::task::node).
//! - A submission forgets few tasks more than it inserts, unless there are more than [`LONG`]. So the
//!   allocator has the memory of a node at hand for the next one. Of many nodes that are freed at once it
//!   would give back the memory.
//! - The failure of a task stays, without its node, as long as the contents of a buffer or the state of a
//!   host object come from that task: a later reader must be skipped.
//!
//! A task that runs for long must not keep all later tasks in the list. It moves to a list of stragglers.

use super::task::{
    node::{Head, Node},
    properties::Needs,
};
use crate::error::Failure;
use anabranch_graph::{Dependency, Kind, ObjectId, Origin, TaskGraph, TaskId};
use rustc_hash::FxHashMap;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

/// The number of tasks that stay in the list in any case.
const RECENT: usize = 64;

/// The number of tasks beyond which a submission forgets two for each that it inserts. Otherwise it forgets
/// one more than it inserts for every [`SHARE`] of them.
const LONG: usize = 512;
const SHARE: u64 = 8;

/// The number of new tasks for which one submission forgets others. The rest is left to the next ones.
const MOST: u64 = 16;

/// The number of tasks beyond which those that run for long are moved out of the list.
const TOO_LONG: usize = 4096 + RECENT;

/// The number of failures beyond which those that no later task can depend on are removed.
const MAX_FAILURES: usize = 1024;

#[derive(Default)]
pub(super) struct LiveTasks {
    /// The id of the first entry of `recent`.
    first: u64,
    /// One entry for each id, from `first` on.
    recent: VecDeque<Option<Node>>,
    quota: Quota,
    /// Older tasks that were not closed when they were last checked, ascending.
    stragglers: Vec<Node>,
    /// The number of stragglers beyond which they are checked again.
    stragglers_bound: usize,
    /// Failures of tasks that are no longer in the list, as long as later tasks may need their results.
    failed: HashMap<TaskId, Failed>,
    failed_bound: usize,
    /// The failed tasks whose exclusive or relaxed effects no sequential effect has followed yet: for each
    /// host object, the one with the [oldest](Failure::age) failure.
    oldest: FxHashMap<ObjectId, TaskId>,
}

/// How many tasks are to be forgotten.
#[derive(Default)]
struct Quota {
    /// The number of entries that were inserted and for which no others were to be forgotten yet.
    inserted: u64,
}

impl Quota {
    /// The number of tasks that a submission is to forget, from `first` on, of `len` ones.
    #[inline]
    fn take(&mut self, first: u64, len: usize) -> u64 {
        let new = self.inserted.min(MOST);
        self.inserted -= new;
        new + if len > LONG { new } else { (first + new) / SHARE - first / SHARE }
    }
}

struct Failed {
    failure: Arc<Failure>,
    /// The number of objects for which the task is in `oldest`.
    oldest_of: u32,
}

impl LiveTasks {
    /// The task, unless it was forgotten because it is closed.
    #[inline]
    pub(super) fn get(&self, task: TaskId) -> Option<&Node> {
        match task.0.checked_sub(self.first) {
            Some(at) => self.recent.get(at as usize)?.as_ref(),
            None => self.straggler(task),
        }
    }

    #[cold]
    fn straggler(&self, task: TaskId) -> Option<&Node> {
        let at = self.stragglers.binary_search_by_key(&task, |node| node.id).ok()?;
        Some(&self.stragglers[at])
    }

    /// Whether the graph may forget the task. A failed task with exclusive or relaxed effects must be
    /// remembered: there are no dependencies between it and other such tasks on the same object, and the task
    /// that comes after all of them must find its failure. Of several such tasks on one object, the failure
    /// of the oldest counts, so the others may be forgotten.
    pub(super) fn is_forgettable(&self, task: TaskId) -> bool {
        match self.get(task) {
            Some(node) => {
                let is_broken = || node.poison().is_some_and(|failure| Needs::Object.is_broken_by(&failure));
                node.is_done() && !(node.contends() && node.is_poisoned() && is_broken())
            }
            None => self.failed.get(&task).is_none_or(|failed| failed.oldest_of == 0),
        }
    }

    /// Whether a task has ended well: what it has written is there.
    pub(super) fn has_ended_well(&self, task: TaskId) -> bool {
        match self.get(task) {
            Some(node) => node.is_done() && !node.is_poisoned(),
            None => !self.failed.contains_key(&task),
        }
    }

    /// Inserts a task. Its id is larger than the ids of all tasks before.
    pub(super) fn insert(&mut self, node: Node) {
        if self.recent.is_empty() {
            self.first = node.id.0;
        }
        while self.first + (self.recent.len() as u64) < node.id.0 {
            self.recent.push_back(None);
            self.quota.inserted += 1;
        }
        self.recent.push_back(Some(node));
        self.quota.inserted += 1;
    }

    /// All tasks in the list.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.stragglers.iter().chain(self.recent.iter().flatten())
    }

    /// Makes `node` wait for the task that it depends on. Returns whether it has to wait.
    pub(super) fn link(&self, node: &Node, dependency: &Dependency) -> bool {
        // Every task comes after the root of the graph, which has no node.
        if dependency.on == TaskId::EPOCH {
            return false;
        }
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

    /// Forgets some tasks that are closed: see [`forget_first_ones`](Self::forget_first_ones). The caller
    /// drops the returned failures outside the lock: errors are the program's own, and so are their
    /// destructors.
    #[inline]
    pub(super) fn forget_some(
        &mut self,
        graph: &mut TaskGraph,
        in_flight: impl Fn() -> u64,
    ) -> Option<Vec<Arc<Failure>>> {
        self.forget_first_ones(graph);
        if self.recent.len() > TOO_LONG && self.recent.len() as u64 > 2 * in_flight() + 1024 {
            self.move_stragglers(graph);
        }
        self.remove_failures(graph)
    }

    /// Forgets some of the first tasks, as far as they are closed: a few more than were inserted since the
    /// last time. Their failures are remembered.
    #[inline]
    pub(super) fn forget_first_ones(&mut self, graph: &mut TaskGraph) {
        for _ in 0..self.quota.take(self.first, self.recent.len()) {
            if self.recent.len() <= RECENT || !self.forget_first(graph) {
                break;
            }
        }
    }

    /// Forgets all tasks that are closed.
    pub(super) fn forget_completed(&mut self, graph: &mut TaskGraph) {
        while self.forget_first(graph) {}
        if !self.stragglers.is_empty() {
            self.retain_stragglers(graph);
        }
    }

    /// Forgets the first task if it is closed.
    fn forget_first(&mut self, graph: &mut TaskGraph) -> bool {
        let head = match self.recent.front() {
            None => return false,
            Some(node) => node.as_deref(),
        };
        if head.is_some_and(|head| !head.is_closed()) {
            return false;
        }
        let is_poisoned = head.is_some_and(Head::is_poisoned);
        let node = self.recent.pop_front().flatten();
        self.first += 1;
        if is_poisoned {
            node.iter().for_each(|node| self.remember_failure(node, graph));
        }
        true
    }

    /// Remembers the failure of a task that is forgotten otherwise.
    #[cold]
    fn remember_failure(&mut self, node: &Node, graph: &mut TaskGraph) {
        let Some(failure) = node.poison() else { return };
        let mut oldest_of = 0;
        if node.contends() && Needs::Object.is_broken_by(&failure) {
            let effects = node.contention.iter().flat_map(|contention| &contention.effects);
            for effect in effects {
                if graph.is_unordered(effect.object, node.id) {
                    oldest_of += u32::from(self.replace_oldest(effect.object, node.id, &failure, graph));
                }
            }
        }
        self.failed.insert(node.id, Failed { failure, oldest_of });
    }

    /// Makes this failed task the oldest of its object, if it is. Returns whether it is.
    fn replace_oldest(
        &mut self,
        object: ObjectId,
        task: TaskId,
        failure: &Arc<Failure>,
        graph: &mut TaskGraph,
    ) -> bool {
        // A sequential effect has followed the former one, if it is not among the unordered tasks any more.
        let former = self.oldest.get(&object).filter(|former| graph.is_unordered(object, **former));
        if let Some(former) = former.and_then(|former| self.failed.get_mut(former)) {
            if former.failure.age() <= failure.age() {
                return false;
            }
            former.oldest_of -= 1;
        }
        self.oldest.insert(object, task);
        true
    }

    /// Moves tasks that run for long out of the way of later ones.
    #[cold]
    fn move_stragglers(&mut self, graph: &mut TaskGraph) {
        while self.recent.len() > RECENT {
            if self.forget_first(graph) {
                continue;
            }
            let node = self.recent.pop_front().flatten().expect("the first task is not closed");
            self.first += 1;
            self.stragglers.push(node);
        }
        if self.stragglers.len() > self.stragglers_bound.max(RECENT) {
            self.retain_stragglers(graph);
        }
    }

    /// Forgets the stragglers that are closed.
    fn retain_stragglers(&mut self, graph: &mut TaskGraph) {
        let done: Vec<Node> = self.stragglers.extract_if(.., |node| node.is_closed()).collect();
        for node in done.iter().filter(|node| node.is_poisoned()) {
            self.remember_failure(node, graph);
        }
        self.stragglers_bound = 2 * self.stragglers.len();
    }

    /// Removes the failures that no later task can depend on, if there are many.
    #[inline]
    fn remove_failures(&mut self, graph: &mut TaskGraph) -> Option<Vec<Arc<Failure>>> {
        let are_many = self.failed.len() >= self.failed_bound.max(MAX_FAILURES);
        are_many.then(|| self.remove_unwanted_failures(graph))
    }

    #[cold]
    fn remove_unwanted_failures(&mut self, graph: &mut TaskGraph) -> Vec<Arc<Failure>> {
        let mut wanted = HashSet::new();
        graph.last_writers(&|task| self.is_forgettable(task), |task| {
            wanted.insert(task);
        });
        let gone = self.failed.extract_if(|task, _| !wanted.contains(task)).map(|(_, f)| f.failure).collect();
        self.failed_bound = 2 * self.failed.len();
        self.oldest.retain(|object, task| graph.is_unordered(*object, *task));
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::deadline;

    /// All tasks are closed, and each submission inserts the same number of them.
    #[test]
    fn the_list_becomes_short_however_many_tasks_come_at_a_time() {
        let _deadline = deadline();
        for tasks in 1..=MOST {
            let (mut quota, mut first, mut len) = (Quota::default(), 1, 3000);
            for _ in 0..10_000 {
                quota.inserted += tasks;
                len += tasks as usize;
                let due = quota.take(first, len);
                assert!((tasks..=2 * tasks).contains(&due), "{tasks} tasks at a time: {due}");
                let forgotten = due.min((len - RECENT) as u64);
                first += forgotten;
                len -= forgotten as usize;
            }
            assert!(len <= RECENT + tasks as usize, "{tasks} tasks at a time: {len}");
        }
    }

    #[test]
    fn many_tasks_at_once_are_forgotten_by_several_submissions() {
        let _deadline = deadline();
        let mut quota = Quota { inserted: 1000 };
        let submissions = (0..).take_while(|_| quota.take(0, RECENT) >= MOST).count() as u64;
        assert_eq!((submissions, quota.inserted), (1000 / MOST, 0));
    }
}
