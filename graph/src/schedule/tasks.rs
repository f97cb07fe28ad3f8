//! The tasks of the scheduler, and their way from submission over waiting to running.

use super::{
    objects::{ObjectUse, Objects},
    queue::{Key, Queues, level},
};
use crate::task::{Effect, ObjectId, Order, TaskId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::{collections::hash_map::Entry, mem::take};

/// The state of a task of the [`ConflictScheduler`](super::ConflictScheduler).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Its dependencies are not all done.
    Submitted,
    /// It is eligible, but a conflict blocks it.
    Waiting {
        /// Whether it was passed over for so long that no other task in conflict with it may start before it.
        due: bool,
    },
    /// It was started and has not finished.
    Running,
}

/// A task. It takes one cache line, because a search with many tasks spends most of its time fetching them.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Task {
    pub(super) id: TaskId,
    pub(super) state: TaskState,
    pub(super) level: u64,
    /// The round in which it became eligible.
    pub(super) round: u64,
    /// The object that blocks it, in whose queue it waits.
    waits_for: ObjectUse,
    /// The objects that it uses, each once.
    pub(super) uses: SmallVec<[ObjectUse; 4]>,
}

const _: () = assert!(size_of::<Task>() == 64);

/// All tasks that have not finished, by slot, with their objects and queues.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    slots: FxHashMap<TaskId, u32>,
    all: Vec<Task>,
    free: Vec<u32>,
    pub(super) objects: Objects,
    pub(super) queues: Queues,
    /// The number of tasks that wait.
    pub(super) waiting: usize,
    /// The last rank that was given to a due task.
    rank: u64,
    /// Empty between calls, and kept for its memory.
    effects: Vec<(ObjectId, bool)>,
}

impl std::ops::Index<usize> for Tasks {
    type Output = Task;

    #[inline]
    fn index(&self, slot: usize) -> &Task {
        &self.all[slot]
    }
}

impl Tasks {
    /// The number of tasks that have not finished.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The number of slots, used or not.
    #[inline]
    pub(super) fn slots(&self) -> usize {
        self.all.len()
    }

    #[inline]
    pub(super) fn slot(&self, task: TaskId) -> Option<u32> {
        self.slots.get(&task).copied()
    }

    /// Adds a task with its declared effects. Returns its slot.
    #[inline]
    pub(super) fn insert(&mut self, task: TaskId, priority: i32, effects: &[Effect]) -> usize {
        let Entry::Vacant(entry) = self.slots.entry(task) else {
            panic!("{task} was inserted twice; give every task an id of its own");
        };
        let slot = self.free.pop().unwrap_or(self.all.len() as u32);
        entry.insert(slot);
        let slot = slot as usize;
        if slot == self.all.len() {
            self.all.push(Task {
                id: task,
                state: TaskState::Submitted,
                level: 0,
                round: 0,
                waits_for: ObjectUse::new(0, false),
                uses: SmallVec::new(),
            });
        }
        let new = &mut self.all[slot];
        (new.id, new.state, new.level) = (task, TaskState::Submitted, level(priority));
        self.add_effects(slot, effects);
        slot
    }

    /// Gives a task its declared effects: one for each object, the stricter if there are several.
    #[inline]
    fn add_effects(&mut self, slot: usize, effects: &[Effect]) {
        let mut found = take(&mut self.effects);
        let known = effects.iter().filter(|effect| !effect.order.is_in_order());
        found.extend(known.map(|effect| (effect.object, effect.order == Order::Exclusive)));
        found.sort_unstable_by_key(|&(object, exclusive)| (object, !exclusive));
        found.dedup_by_key(|(object, _)| *object);
        for (object, exclusive) in found.drain(..) {
            let used = ObjectUse::new(self.objects.named(object), exclusive);
            self.add_use(slot, used);
        }
        self.effects = found;
    }

    /// Gives a task, in whatever state, one more object.
    #[inline]
    pub(super) fn add_use(&mut self, slot: usize, used: ObjectUse) {
        let task = &mut self.all[slot];
        task.uses.push(used);
        self.objects.add_user(used);
        match task.state {
            TaskState::Running => self.objects.occupy(used, task.round),
            TaskState::Waiting { due: true } => self.objects.add_due(used, task.level),
            _ => {}
        }
    }

    /// Makes a submitted task eligible. Returns its slot and its key.
    #[inline]
    pub(super) fn make_eligible(&mut self, task: TaskId, round: u64) -> (Key, u32) {
        let slot = self.slots.get(&task);
        let slot = *slot.unwrap_or_else(|| panic!("{task} is eligible but not known; insert it first"));
        let found = &mut self.all[slot as usize];
        assert_eq!(found.state, TaskState::Submitted, "{task} became eligible twice; tell it once");
        (found.state, found.round) = (TaskState::Waiting { due: false }, round);
        self.waiting += 1;
        (Key { level: found.level, age: task.0 }, slot)
    }

    /// Puts a task into the queue of an object that blocks it. Returns whether there is one.
    #[inline]
    pub(super) fn wait(&mut self, key: Key, slot: u32) -> bool {
        let task = &mut self.all[slot as usize];
        let Some(used) = self.objects.blocking(&task.uses, key.level) else { return false };
        task.waits_for = used;
        self.queues.push(self.objects.queue(used), slot, key);
        true
    }

    /// Starts a task that no object blocks.
    #[inline]
    pub(super) fn start(&mut self, slot: u32, start: &mut Vec<TaskId>) {
        let task = &mut self.all[slot as usize];
        let due = task.state == TaskState::Waiting { due: true };
        for &used in &task.uses {
            self.objects.occupy(used, task.round);
            if due {
                self.objects.remove_due(used, task.level);
            }
        }
        self.objects.due -= usize::from(due);
        self.objects.running += 1;
        self.waiting -= 1;
        task.state = TaskState::Running;
        start.push(task.id);
    }

    /// Removes a task, and adds the objects that it freed and that other tasks wait for to `released`.
    #[inline]
    pub(super) fn remove(&mut self, task: TaskId, released: &mut Vec<u32>) {
        let slot = self.slots.remove(&task);
        let slot = slot.unwrap_or_else(|| panic!("{task} has finished but is not known; insert it first"));
        let task = &mut self.all[slot as usize];
        let due = task.state == TaskState::Waiting { due: true };
        match task.state {
            TaskState::Submitted => {}
            TaskState::Running => self.objects.running -= 1,
            TaskState::Waiting { .. } => {
                self.waiting -= 1;
                self.objects.due -= usize::from(due);
                self.queues.remove(self.objects.queue(task.waits_for), slot);
            }
        }
        for &used in &task.uses {
            let free = match task.state {
                TaskState::Running => self.objects.vacate(used),
                _ => due,
            };
            if due {
                self.objects.remove_due(used, task.level);
            }
            if free && self.objects.is_waited_for(used.object()) {
                released.push(used.object() as u32);
            }
            self.objects.remove_user(used);
        }
        task.uses.clear();
        self.free.push(slot);
    }

    /// Makes a waiting task due: from now on no other task in conflict with it starts before it. The task moves to the front
    /// of its queue.
    pub(super) fn make_due(&mut self, slot: usize) {
        let task = &mut self.all[slot];
        self.rank += 1;
        (task.state, task.level) = (TaskState::Waiting { due: true }, self.rank);
        self.objects.due += 1;
        for &used in &task.uses {
            self.objects.add_due(used, self.rank);
        }
        let root = self.objects.queue(task.waits_for);
        self.queues.remove(root, slot as u32);
        self.queues.push(root, slot as u32, Key { level: self.rank, age: task.id.0 });
    }
}
