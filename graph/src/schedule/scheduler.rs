//! The scheduler: rounds, levels, and fairness.

use super::{
    cover::Cover,
    objects::ObjectUse,
    queue::Key,
    search::Search,
    tasks::{Contender, TaskState, Tasks},
};
use crate::task::{Effect, TaskId};

/// The number of candidates that a search for the largest set may reject (see the [module](crate::schedule)
/// docs).
pub const CANDIDATES: usize = 100;
/// The number of tasks that wait for one object exclusively and take part in a search.
pub const WINDOW: usize = 16;
/// A task is due once a task in conflict with it has started that became eligible more than this number of
/// rounds later.
pub const PATIENCE: u64 = 64;
/// The number of tasks that are checked for being due after each call.
const CHECKS: usize = 2;

/// Starts tasks so that no two in conflict run at the same time: see the [module](crate::schedule) docs.
#[derive(Debug)]
pub struct ConflictScheduler {
    tasks: Tasks,
    cover: Cover,
    search: Search,
    round: u64,
    /// The slot of the task that was checked last for being due.
    checked: usize,
    // The rest is empty between calls and kept for its memory.
    released: Vec<u32>,
    fresh: Vec<(Key, u32)>,
    open: Vec<(Key, u32)>,
}

impl Default for ConflictScheduler {
    fn default() -> Self {
        Self::new()
    }
}

impl ConflictScheduler {
    /// A scheduler without tasks.
    pub fn new() -> Self {
        Self::with_candidates(CANDIDATES)
    }

    /// A scheduler whose searches end after `candidates` rejected candidates.
    pub fn with_candidates(candidates: usize) -> Self {
        Self {
            tasks: Tasks::default(),
            cover: Cover::default(),
            search: Search::new(candidates),
            round: 0,
            checked: 0,
            released: Vec::new(),
            fresh: Vec::new(),
            open: Vec::new(),
        }
    }

    /// The number of tasks that were inserted and have not finished.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of tasks that were started and have not finished.
    pub fn running(&self) -> usize {
        self.tasks.objects.running
    }

    /// The number of tasks that are eligible and wait for tasks in conflict with them.
    pub fn waiting(&self) -> usize {
        self.tasks.waiting
    }

    /// The task with this [slot](Contender::slot); `None` if no task has it now.
    pub fn contender(&self, slot: usize) -> Option<Contender> {
        self.tasks.in_slot(slot)
    }

    /// The state of a task; `None` if it has finished.
    pub fn state(&self, task: Contender) -> Option<TaskState> {
        self.tasks.slot(task).map(|slot| self.tasks[slot as usize].state)
    }

    /// Adds a task with its effects. Two tasks are in conflict if they have an effect on a common object and
    /// at least one of the effects is exclusive. Sequential effects are dependencies, and ignored here.
    ///
    /// Among equals, the task with the smallest id goes first. No two tasks that have not finished may have
    /// the same id.
    ///
    /// # Panics
    /// If the id is `u64::MAX`.
    pub fn insert(&mut self, task: TaskId, priority: i32, effects: &[Effect]) -> Contender {
        self.insert_with(task, priority, effects, &[])
    }

    /// Adds a task that is also in conflict with the tasks in `conflicts`. Tasks that have finished are
    /// ignored.
    ///
    /// # Panics
    /// If the id is `u64::MAX`.
    pub fn insert_with(
        &mut self,
        task: TaskId,
        priority: i32,
        effects: &[Effect],
        conflicts: &[Contender],
    ) -> Contender {
        let contender = self.tasks.insert(task, priority, effects);
        let slot = contender.slot();
        self.cover.insert(slot, self.tasks[slot].uses.len());
        if !conflicts.is_empty() {
            self.cover.cover(&mut self.tasks, slot, conflicts);
        }
        contender
    }

    /// Reports that all dependencies of `task` are done. Appends the tasks to start now: this task, or none.
    ///
    /// # Panics
    /// If the task is eligible already, or has finished.
    pub fn eligible(&mut self, task: Contender, start: &mut Vec<Contender>) {
        // No object was released, so this task alone can start: there is nothing to search.
        self.round += 1;
        let (key, slot) = self.tasks.make_eligible(task, self.round);
        if !self.tasks.wait(key, slot) {
            self.tasks.start(slot, start);
        }
        self.check_for_due_tasks();
    }

    /// Reports that `task` has run. Appends the tasks to start now. A task that was not started yet is
    /// withdrawn.
    ///
    /// # Panics
    /// If the task has finished already.
    pub fn finished(&mut self, task: Contender, start: &mut Vec<Contender>) {
        self.tasks.remove(task, &mut self.released);
        if !self.released.is_empty() {
            self.start_open_tasks(start);
        }
        self.check_for_due_tasks();
    }

    /// Reports several changes at once. This finds larger sets than reporting the changes one after the
    /// other.
    ///
    /// # Panics
    /// As [`finished`](Self::finished) and [`eligible`](Self::eligible).
    pub fn update(&mut self, finished: &[Contender], eligible: &[Contender], start: &mut Vec<Contender>) {
        for &task in finished {
            self.tasks.remove(task, &mut self.released);
        }
        self.round += u64::from(!eligible.is_empty());
        for &task in eligible {
            self.fresh.push(self.tasks.make_eligible(task, self.round));
        }
        self.start_open_tasks(start);
        self.check_for_due_tasks();
    }

    /// Starts tasks level by level, until every released object is occupied or no task waits for it.
    fn start_open_tasks(&mut self, start: &mut Vec<Contender>) {
        if !self.fresh.is_sorted() {
            self.fresh.sort_unstable();
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        let mut next = 0;
        loop {
            let queued = self.first_level();
            let level = match fresh.get(next) {
                Some((key, _)) => key.level.min(queued.unwrap_or(u64::MAX)),
                None if queued.is_none() => break,
                None => queued.unwrap_or_default(),
            };
            self.collect(level);
            while let Some(&(key, slot)) = fresh.get(next).filter(|(key, _)| key.level == level) {
                self.open_or_wait(key, slot);
                next += 1;
            }
            self.search.choose(&mut self.tasks, &self.cover, &mut self.open, start);
        }
        fresh.clear();
        self.fresh = fresh;
        self.released.clear();
    }

    /// The first level of the tasks that wait for a released object which does not block them any more.
    fn first_level(&mut self) -> Option<u64> {
        let Tasks { objects, queues, .. } = &mut self.tasks;
        let mut first = None;
        self.released.retain(|&object| {
            let mut open = false;
            for exclusive in [false, true] {
                let used = ObjectUse::new(object as usize, exclusive);
                if let Some((Key { level, .. }, _)) = queues.first(objects.queue(used))
                    && !objects.blocks(used, level)
                {
                    open = true;
                    first = Some(first.map_or(level, |other: u64| other.min(level)));
                }
            }
            open
        });
        first
    }

    /// Takes the tasks of a level out of the queues of released objects, as far as they can matter.
    fn collect(&mut self, level: u64) {
        for i in 0..self.released.len() {
            let object = self.released[i] as usize;
            self.collect_from(ObjectUse::new(object, false), level, usize::MAX);
            self.collect_from(ObjectUse::new(object, true), level, WINDOW);
        }
    }

    /// Takes up to `most` tasks that can start out of one queue.
    fn collect_from(&mut self, used: ObjectUse, level: u64, most: usize) {
        let end = self.open.len().saturating_add(most);
        loop {
            let Tasks { objects, queues, .. } = &mut self.tasks;
            let Some((key, slot)) = queues.first(objects.queue(used)) else { return };
            if self.open.len() >= end || key.level != level || objects.blocks(used, level) {
                return;
            }
            queues.remove(objects.queue(used), slot);
            // Later tasks of the queue are in conflict with the same tasks as this one, and more: they can
            // wait.
            if self.open_or_wait(key, slot) && used.exclusive() && self.only_conflict(slot, used.object()) {
                return;
            }
        }
    }

    /// Whether no object but `object` can bring the task in conflict with other tasks.
    fn only_conflict(&self, slot: u32, object: usize) -> bool {
        let mut uses = self.tasks[slot as usize].uses.iter();
        uses.all(|used| used.object() == object || self.tasks.objects.usage(used.object()).users == 1)
    }

    /// Adds a task to the open tasks, unless an object blocks it, in whose queue it then waits. Returns
    /// whether it is open.
    fn open_or_wait(&mut self, key: Key, slot: u32) -> bool {
        let open = !self.tasks.wait(key, slot);
        if open {
            self.open.push((key, slot));
        }
        open
    }

    /// Checks a few tasks, in turn, and makes those due that were passed over for too long.
    fn check_for_due_tasks(&mut self) {
        if self.tasks.waiting == 0 {
            return;
        }
        for _ in 0..CHECKS {
            self.checked = if self.checked + 1 < self.tasks.slots() { self.checked + 1 } else { 0 };
            let task = &self.tasks[self.checked];
            if task.state == (TaskState::Waiting { due: false }) {
                let mut latest = task.uses.iter().map(|&used| self.tasks.objects.latest_conflict(used));
                if latest.any(|round| round > task.round + PATIENCE) {
                    self.tasks.make_due(self.checked);
                }
            }
        }
    }
}
