//! Which of the tasks in conflict go first: mutual exclusion without locks.
//!
//! Exclusive effects on a host object are *conflicts*: the tasks may run in any order, but never at the same time. The
//! [`ConflictScheduler`] is told when such a task is submitted ([`insert`](ConflictScheduler::insert)), when all its
//! dependencies are done ([`eligible`](ConflictScheduler::eligible)) and when it has run
//! ([`finished`](ConflictScheduler::finished)); it answers which tasks are to be started now. No worker waits for a
//! conflict. What it promises:
//!
//! - *Mutual exclusion.* Two tasks in conflict never run at the same time.
//! - *No missed start.* After every call, each eligible task that waits is in conflict with one that runs, or with one
//!   that is due before it (see below). A task without such a conflict is started at once.
//! - *Largest sets.* Where several tasks could be started but not all, the largest set is looked for by
//!   backtracking; the search ends after [`CANDIDATES`] rejected candidates in each connected component of the conflict
//!   graph. Only tasks that were in the way of nothing else than what has just changed are part of it. A higher priority counts
//!   more than a larger set; among equals the oldest task goes first. More than 64 tasks of one priority are
//!   searched 64 at a time, those with the fewest conflicts first; of the tasks that wait for one object
//!   exclusively, the first [`WINDOW`] take part.
//! - *No starvation.* A task is *due* once a task in conflict with it was started that became eligible more than
//!   [`PATIENCE`] rounds after it (a round is a call that makes tasks eligible). Tasks that are due start in the order in
//!   which they became so, and no other task in conflict with one of them starts before it.
//! - *Determinism.* The same calls have the same answers.
//!
//! Conflicts are not stored as edges: a task occupies its objects while it runs, and a task that must wait does so in the
//! queue of one object that is in its way, until that one is free. So a thousand exclusive tasks on one object cost a thousand
//! effects. Explicit conflicts ([`insert_with`](ConflictScheduler::insert_with)) are effects on anonymous objects.
//!
//! ```
//! use anabranch_graph::{ConflictScheduler, Effect, ObjectId, Order, TaskId};
//!
//! let [log, stats] = [ObjectId(1), ObjectId(2)];
//! let exclusive = |object| Effect { object, order: Order::Exclusive };
//! let [both, first, second] = [TaskId(1), TaskId(2), TaskId(3)];
//!
//! let mut scheduler = ConflictScheduler::new();
//! scheduler.insert(both, 0, &[exclusive(log), exclusive(stats)]);
//! scheduler.insert(first, 0, &[exclusive(log)]);
//! scheduler.insert(second, 0, &[exclusive(stats)]);
//!
//! let mut start = Vec::new();
//! scheduler.update(&[], &[both, first, second], &mut start);
//! assert_eq!(start, [first, second]); // rather than the older one alone
//!
//! start.clear();
//! scheduler.finished(first, &mut start);
//! assert_eq!(start, []);
//! scheduler.finished(second, &mut start);
//! assert_eq!(start, [both]);
//! ```

mod cover;
mod largest;
mod objects;
mod queue;
mod search;

use crate::task::{Effect, ObjectId, Order, TaskId};
use cover::Explicit;
use objects::{Member, Objects};
use queue::{Key, NONE, Queues};
use rustc_hash::FxHashMap;
use search::Bits;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;

/// How many candidates a search for the largest set may reject (see the [module](self) docs).
pub const CANDIDATES: usize = 100;
/// How many tasks that wait for one object exclusively take part in a search.
pub const WINDOW: usize = 16;
/// How many rounds later another task may have become eligible and yet be started before one in conflict with it.
pub const PATIENCE: u64 = 64;
/// How many tasks are looked at after each call, whether they are due.
const AUDITS: usize = 2;

/// The greatest level of tasks that are due.
const DUE: u64 = 1 << 63;

/// The first order in queues, smaller is first: the rank of a task that is due (below [`DUE`]), or its priority.
fn level(priority: i32) -> u64 {
    DUE + (i64::from(i32::MAX) - i64::from(priority)) as u64
}

/// Where a task of the [`ConflictScheduler`] stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Its dependencies are not all done.
    Submitted,
    /// It is eligible, but a conflict is in its way.
    Waiting {
        /// Whether it was passed over for so long that no other task in conflict with it may start before it.
        due: bool,
    },
    /// It was started and has not finished.
    Running,
}

/// One cache line: most of the time of a search with many tasks is spent on fetching them.
#[derive(Debug)]
#[repr(align(64))]
struct Task {
    id: TaskId,
    state: TaskState,
    level: u64,
    /// When it became eligible.
    round: u64,
    /// In whose queue it waits.
    waits_for: Member,
    /// Each object once.
    members: SmallVec<[Member; 4]>,
}

const _: () = assert!(size_of::<Task>() == 64);

/// Starts tasks so that no two in conflict run at the same time: see the [module](self) docs.
#[derive(Debug)]
pub struct ConflictScheduler {
    candidates: usize,
    slots: FxHashMap<TaskId, u32>,
    tasks: Vec<Task>,
    explicit: Vec<Explicit>,
    free: Vec<u32>,
    objects: Objects,
    queues: Queues,
    waiting: usize,
    round: u64,
    /// The last rank that was given to a task that is due.
    rank: u64,
    /// The task that was looked at last, whether it is due.
    audited: usize,
    insertions: u64,
    searches: u64,
    // The rest is empty between calls and kept for its memory.
    partners: Vec<u32>,
    effects: Vec<(ObjectId, bool)>,
    released: Vec<u32>,
    fresh: Vec<(Key, u32)>,
    open: Vec<(Key, u32)>,
    sorted: Vec<(Key, u32)>,
    counts: Vec<u32>,
    block: Vec<(Key, u32)>,
    bits: Vec<Bits>,
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

    /// A scheduler whose searches end after that many rejected candidates.
    pub fn with_candidates(candidates: usize) -> Self {
        Self {
            candidates,
            slots: FxHashMap::default(),
            tasks: Vec::new(),
            explicit: Vec::new(),
            free: Vec::new(),
            objects: Objects::default(),
            queues: Queues::default(),
            waiting: 0,
            round: 0,
            rank: 0,
            audited: 0,
            insertions: 0,
            searches: 0,
            partners: Vec::new(),
            effects: Vec::new(),
            released: Vec::new(),
            fresh: Vec::new(),
            open: Vec::new(),
            sorted: Vec::new(),
            counts: Vec::new(),
            block: Vec::new(),
            bits: Vec::new(),
        }
    }

    /// The number of tasks that were inserted and have not finished.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The number of tasks that were started and have not finished.
    pub fn running(&self) -> usize {
        self.objects.running
    }

    /// The number of tasks that are eligible and wait for others in conflict with them.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Where a task stands; `None` if it was not inserted, or has finished.
    pub fn state(&self, task: TaskId) -> Option<TaskState> {
        self.slots.get(&task).map(|&slot| self.tasks[slot as usize].state)
    }

    /// Adds a task with its effects. Two tasks are in conflict if they have an effect on a common object and at least one
    /// of the two is exclusive; sequential effects are dependencies, and ignored here.
    ///
    /// # Panics
    /// If the task was inserted before and has not finished.
    pub fn insert(&mut self, task: TaskId, priority: i32, effects: &[Effect]) {
        self.insert_with(task, priority, effects, &[]);
    }

    /// Adds a task that is in conflict with the tasks in `conflicts`, too. Those that are not (or no longer) known are
    /// ignored: they have finished.
    ///
    /// # Panics
    /// If the task was inserted before and has not finished.
    pub fn insert_with(&mut self, task: TaskId, priority: i32, effects: &[Effect], conflicts: &[TaskId]) {
        let Entry::Vacant(entry) = self.slots.entry(task) else {
            panic!("{task} was inserted twice; give every task an id of its own");
        };
        let slot = self.free.pop().unwrap_or(self.tasks.len() as u32);
        entry.insert(slot);
        let slot = slot as usize;
        if slot == self.tasks.len() {
            self.explicit.push(Explicit::default());
            self.tasks.push(Task {
                id: task,
                state: TaskState::Submitted,
                level: 0,
                round: 0,
                waits_for: Member::new(0, false),
                members: SmallVec::new(),
            });
        }
        let new = &mut self.tasks[slot];
        (new.id, new.state, new.level) = (task, TaskState::Submitted, level(priority));
        self.touch(slot, effects);
        self.explicit[slot] =
            Explicit { named: self.tasks[slot].members.len() as u32, ..Explicit::default() };
        if !conflicts.is_empty() {
            self.cover(slot, conflicts);
        }
    }

    /// All dependencies of `task` are done. Appends what is to be started now: the task, or nothing.
    ///
    /// # Panics
    /// If the task was not inserted, or is eligible already.
    pub fn eligible(&mut self, task: TaskId, start: &mut Vec<TaskId>) {
        self.update(&[], &[task], start);
    }

    /// `task` has run. Appends what is to be started now. (A task that was not started yet is withdrawn.)
    ///
    /// # Panics
    /// If the task was not inserted, or has finished already.
    pub fn finished(&mut self, task: TaskId, start: &mut Vec<TaskId>) {
        self.update(&[task], &[], start);
    }

    /// Several changes at once: larger sets are found than by telling one after the other.
    ///
    /// # Panics
    /// As [`finished`](Self::finished) and [`eligible`](Self::eligible).
    pub fn update(&mut self, finished: &[TaskId], eligible: &[TaskId], start: &mut Vec<TaskId>) {
        for &task in finished {
            let slot = self.slots.remove(&task);
            let slot =
                slot.unwrap_or_else(|| panic!("{task} has finished but is not known; insert it first"));
            self.remove(slot);
        }
        self.round += u64::from(!eligible.is_empty());
        for &task in eligible {
            let slot = self.slots.get(&task);
            let slot = *slot.unwrap_or_else(|| panic!("{task} is eligible but not known; insert it first"));
            let found = &mut self.tasks[slot as usize];
            assert_eq!(found.state, TaskState::Submitted, "{task} became eligible twice; tell it once");
            (found.state, found.round) = (TaskState::Waiting { due: false }, self.round);
            self.waiting += 1;
            self.fresh.push((Key { level: found.level, age: task.0 }, slot));
        }
        self.settle(start);
        self.audit();
    }

    /// Gives a task its declared effects: one for each object, the stricter if there are several.
    fn touch(&mut self, slot: usize, effects: &[Effect]) {
        let mut found = std::mem::take(&mut self.effects);
        let known = effects.iter().filter(|effect| !effect.order.is_in_order());
        found.extend(known.map(|effect| (effect.object, effect.order == Order::Exclusive)));
        found.sort_unstable_by_key(|&(object, exclusive)| (object, !exclusive));
        found.dedup_by_key(|(object, _)| *object);
        for (object, exclusive) in found.drain(..) {
            let member = Member::new(self.objects.named(object), exclusive);
            self.enter(slot, member);
        }
        self.effects = found;
    }

    /// Gives a task an effect, whatever its state.
    fn enter(&mut self, slot: usize, member: Member) {
        let task = &mut self.tasks[slot];
        task.members.push(member);
        self.objects.enter(member);
        match task.state {
            TaskState::Running => self.objects.occupy(member, task.round),
            TaskState::Waiting { due: true } => self.objects.hold(member, task.level),
            _ => {}
        }
    }

    /// Takes a task out and notes the objects that it has set free.
    fn remove(&mut self, slot: u32) {
        let task = &mut self.tasks[slot as usize];
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
        for &member in &task.members {
            let free = match task.state {
                TaskState::Running => self.objects.vacate(member),
                _ => due,
            };
            if due {
                self.objects.release(member, task.level);
            }
            if free && self.objects.is_waited_for(member.object()) {
                self.released.push(member.object() as u32);
            }
            self.objects.leave(member);
        }
        task.members.clear();
        self.free.push(slot);
    }

    /// Starts what can be started, level by level, until every released object is occupied, or nobody waits for it.
    fn settle(&mut self, start: &mut Vec<TaskId>) {
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
                self.consider(key, slot);
                next += 1;
            }
            self.choose(start);
        }
        fresh.clear();
        self.fresh = fresh;
        self.released.clear();
    }

    /// The first level among the tasks whose object was released and is not in their way any more.
    fn first_level(&mut self) -> Option<u64> {
        let mut first = None;
        self.released.retain(|&object| {
            let mut open = false;
            for exclusive in [false, true] {
                let member = Member::new(object as usize, exclusive);
                let root = *self.objects.queue(member);
                if root != NONE {
                    let level = self.queues.key(root).level;
                    if !self.objects.in_the_way(member, level) {
                        open = true;
                        first = Some(first.map_or(level, |other: u64| other.min(level)));
                    }
                }
            }
            open
        });
        first
    }

    /// Takes the tasks of a level out of the queues of released objects, as many as can matter.
    fn collect(&mut self, level: u64) {
        for i in 0..self.released.len() {
            let object = self.released[i] as usize;
            self.take(Member::new(object, false), level, usize::MAX);
            self.take(Member::new(object, true), level, WINDOW);
        }
    }

    /// Takes up to `most` tasks that can be started out of one queue.
    fn take(&mut self, member: Member, level: u64, most: usize) {
        let end = self.open.len().saturating_add(most);
        while self.open.len() < end && *self.objects.queue(member) != NONE {
            let key = self.queues.key(*self.objects.queue(member));
            if key.level != level || self.objects.in_the_way(member, level) {
                return;
            }
            let slot = self.queues.pop(self.objects.queue(member));
            // The queue's later tasks are in conflict with the same ones as this, and more: they can wait.
            if self.consider(key, slot) && member.exclusive() && self.only_conflict(slot, member.object()) {
                return;
            }
        }
    }

    /// Whether no other object than `object` can bring the task in conflict with others.
    fn only_conflict(&self, slot: u32, object: usize) -> bool {
        let mut members = self.tasks[slot as usize].members.iter();
        members.all(|m| m.object() == object || self.objects.usage(m.object()).members == 1)
    }

    /// A task may be started unless an object is in its way, in whose queue it then waits; whether it may.
    fn consider(&mut self, key: Key, slot: u32) -> bool {
        let open = !self.waits(key, slot);
        if open {
            self.open.push((key, slot));
        }
        open
    }

    /// Whether an object is in the way of a task, in whose queue it then waits.
    fn waits(&mut self, key: Key, slot: u32) -> bool {
        let task = &mut self.tasks[slot as usize];
        let Some(member) = self.objects.any_in_the_way(&task.members, key.level) else { return false };
        task.waits_for = member;
        self.queues.push(self.objects.queue(member), slot, key);
        true
    }

    /// Starts a task that nothing is in the way of.
    fn start(&mut self, slot: u32, start: &mut Vec<TaskId>) {
        let task = &mut self.tasks[slot as usize];
        let due = task.state == TaskState::Waiting { due: true };
        for &member in &task.members {
            self.objects.occupy(member, task.round);
            if due {
                self.objects.release(member, task.level);
            }
        }
        self.objects.due -= usize::from(due);
        self.objects.running += 1;
        self.waiting -= 1;
        task.state = TaskState::Running;
        start.push(task.id);
    }

    /// Looks at a few tasks in turn, whether they were passed over for too long.
    fn audit(&mut self) {
        if self.waiting == 0 {
            return;
        }
        for _ in 0..AUDITS {
            self.audited = if self.audited + 1 < self.tasks.len() { self.audited + 1 } else { 0 };
            let task = &self.tasks[self.audited];
            if task.state == (TaskState::Waiting { due: false }) {
                let mut latest = task.members.iter().map(|&m| self.objects.latest_conflict(m));
                if latest.any(|round| round > task.round + PATIENCE) {
                    self.make_due(self.audited);
                }
            }
        }
    }

    /// From now on no other task in conflict with this one is started before it. It moves to the front of its queue.
    fn make_due(&mut self, slot: usize) {
        let task = &mut self.tasks[slot];
        self.rank += 1;
        (task.state, task.level) = (TaskState::Waiting { due: true }, self.rank);
        self.objects.due += 1;
        for &member in &task.members {
            self.objects.hold(member, self.rank);
        }
        let root = self.objects.queue(task.waits_for);
        self.queues.remove(root, slot as u32);
        self.queues.push(root, slot as u32, Key { level: self.rank, age: task.id.0 });
    }
}
