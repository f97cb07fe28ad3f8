//! The tasks of the scheduler, and their way from submission over waiting to running.

use super::{
    objects::{ObjectUse, Objects},
    queue::{Key, Queues, level},
};
use crate::task::{Effect, ObjectId, Order, TaskId};
use smallvec::SmallVec;
use std::mem::take;

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

/// A task of the [`ConflictScheduler`](super::ConflictScheduler), from its insertion to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contender {
    slot: u32,
    task: TaskId,
}

impl Contender {
    /// The task.
    #[inline]
    pub fn task(self) -> TaskId {
        self.task
    }

    /// A number that no other unfinished task has: less than the largest number of tasks that were unfinished
    /// at the same time so far.
    #[inline]
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// The id of a slot without a task.
const VACANT: TaskId = TaskId(u64::MAX);

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
        self.all.len() - self.free.len()
    }

    /// The number of slots, used or not.
    #[inline]
    pub(super) fn slots(&self) -> usize {
        self.all.len()
    }

    /// The slot of a task that has not finished.
    #[inline]
    pub(super) fn slot(&self, contender: Contender) -> Option<u32> {
        let Contender { slot, task } = contender;
        self.all.get(slot as usize).is_some_and(|found| found.id == task).then_some(slot)
    }

    /// The task in a slot, if there is one.
    pub(super) fn in_slot(&self, slot: usize) -> Option<Contender> {
        let found = self.all.get(slot)?.id;
        (found != VACANT).then(|| self.contender(slot as u32))
    }

    /// The contender in a slot.
    #[inline]
    fn contender(&self, slot: u32) -> Contender {
        Contender { slot, task: self.all[slot as usize].id }
    }

    /// Adds a task with its declared effects.
    #[inline]
    pub(super) fn insert(&mut self, task: TaskId, priority: i32, effects: &[Effect]) -> Contender {
        assert_ne!(task, VACANT, "the largest number is no id of a task");
        let slot = self.free.pop().unwrap_or(self.all.len() as u32) as usize;
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
        self.contender(slot as u32)
    }

    /// Gives a task its declared effects: one for each object, the stricter if there are several.
    #[inline]
    fn add_effects(&mut self, slot: usize, effects: &[Effect]) {
        let unordered = |effect: &Effect| !effect.order.is_in_order();
        if let [only] = effects
            && unordered(only)
        {
            // Most tasks have one, and nothing to sort.
            let used = ObjectUse::new(self.objects.named(only.object), only.order == Order::Exclusive);
            return self.add_use(slot, used);
        }
        let mut found = take(&mut self.effects);
        let known = effects.iter().filter(|effect| unordered(effect));
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
    pub(super) fn make_eligible(&mut self, contender: Contender, round: u64) -> (Key, u32) {
        let (task, slot) = (contender.task, self.slot(contender));
        let slot = slot.unwrap_or_else(|| panic!("{task} is eligible, but it has finished"));
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
    pub(super) fn start(&mut self, slot: u32, start: &mut Vec<Contender>) {
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
        start.push(self.contender(slot));
    }

    /// Removes a task, and adds the objects that it freed and that other tasks wait for to `released`.
    #[inline]
    pub(super) fn remove(&mut self, contender: Contender, released: &mut Vec<u32>) {
        let slot = self.slot(contender);
        let slot = slot.unwrap_or_else(|| panic!("{} has finished twice", contender.task));
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
        task.id = VACANT;
        self.free.push(slot);
    }

    /// Makes a waiting task due: from now on no other task in conflict with it starts before it. The task
    /// moves to the front of its queue.
    pub(super) fn make_due(&mut self, slot: usize) {
        let task = &mut self.all[slot];
        self.rank += 1;
        (task.state, task.level) = (TaskState::Waiting { due: true }, self.rank);
        self.objects.due += 1;
        for &used in &task.uses {
            self.objects.add_due(used, self.rank);
        }
        let queue = self.objects.queue(task.waits_for);
        self.queues.remove(queue, slot as u32);
        self.queues.push(queue, slot as u32, Key { level: self.rank, age: task.id.0 });
    }
}
