//! Objects: a task occupies its objects while it runs, and a task that is blocked waits in the queue of one
//! of its objects.

use super::queue::Queue;
use crate::task::ObjectId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The use of an object by a task: the object's slot, and whether the use is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectUse(u32);

impl ObjectUse {
    pub(super) fn new(object: usize, exclusive: bool) -> Self {
        Self((object as u32) << 1 | u32::from(exclusive))
    }

    pub(super) fn object(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) fn exclusive(self) -> bool {
        self.0 & 1 == 1
    }

    /// The use is blocked by an object that is occupied more than this.
    fn limit(self) -> u32 {
        // Without a branch: 0 for an exclusive use, and the most that relaxed uses can occupy otherwise.
        (self.0 & 1).wrapping_sub(1) >> 1
    }
}

/// The value of `occupied` for an object that one task uses exclusively. Otherwise it is the number of
/// relaxed users.
const OCCUPIED: u32 = 1 << 31;

/// A due task: no later task in conflict with it may start before it.
#[derive(Clone, Copy, Debug)]
struct Due {
    rank: u64,
    exclusive: bool,
}

/// An object, without its counts.
#[derive(Debug)]
pub(super) struct Object {
    /// `None` for an object that stands for explicit conflicts.
    name: Option<ObjectId>,
    /// The due tasks that use it, by rank.
    due: SmallVec<[Due; 1]>,
    /// While a task is inserted: the number of its partners that use the object.
    pub(super) partners: u32,
    /// The insertion that `partners` and `joined` belong to.
    pub(super) insertion: u64,
    /// Whether the inserted task uses the object, too.
    pub(super) joined: bool,
}

/// The counts of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// The running tasks that use it, see [`OCCUPIED`].
    occupied: u32,
    /// The tasks that use it and have not finished.
    pub(super) users: u32,
    /// Those of them that use it exclusively.
    pub(super) exclusive_users: u32,
}

const UNUSED: Usage = Usage { occupied: 0, users: 0, exclusive_users: 0 };

/// All objects with a user.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: Vec<Object>,
    /// Apart from `all`, because a search needs nothing else.
    usage: Vec<Usage>,
    /// The queues of the tasks that an object blocks: relaxed, exclusive.
    queues: Vec<[Queue; 2]>,
    /// The latest round in which a task that has started became eligible: relaxed, exclusive.
    latest: Vec<[u64; 2]>,
    names: FxHashMap<ObjectId, u32>,
    free: Vec<u32>,
    /// The number of due tasks.
    pub(super) due: usize,
    /// The number of running tasks.
    pub(super) running: usize,
}

impl std::ops::Index<usize> for Objects {
    type Output = Object;

    fn index(&self, object: usize) -> &Object {
        &self.all[object]
    }
}

impl std::ops::IndexMut<usize> for Objects {
    fn index_mut(&mut self, object: usize) -> &mut Object {
        &mut self.all[object]
    }
}

impl Objects {
    /// The number of slots, used or not.
    pub(super) fn slots(&self) -> usize {
        self.all.len()
    }

    /// The object of that name. Creates it if no task uses it.
    pub(super) fn named(&mut self, name: ObjectId) -> usize {
        if let Some(&object) = self.names.get(&name) {
            return object as usize;
        }
        let object = self.create(Some(name));
        self.names.insert(name, object as u32);
        object
    }

    /// Creates an object without users.
    pub(super) fn create(&mut self, name: Option<ObjectId>) -> usize {
        let empty = Object { name, due: SmallVec::new(), partners: 0, insertion: 0, joined: false };
        match self.free.pop() {
            Some(object) => {
                self.all[object as usize] = empty;
                self.latest[object as usize] = [0; 2];
                object as usize
            }
            None => {
                self.all.push(empty);
                self.usage.push(UNUSED);
                self.queues.push([Queue::EMPTY; 2]);
                self.latest.push([0; 2]);
                self.all.len() - 1
            }
        }
    }

    pub(super) fn usage(&self, object: usize) -> Usage {
        self.usage[object]
    }

    /// The queue of the tasks that the object blocks, and that would use it like `used`.
    pub(super) fn queue(&mut self, used: ObjectUse) -> &mut Queue {
        &mut self.queues[used.object()][usize::from(used.exclusive())]
    }

    /// Whether a task waits for the object.
    pub(super) fn is_waited_for(&self, object: usize) -> bool {
        self.queues[object].iter().any(|queue| !queue.is_empty())
    }

    /// An upper bound on the number of unfinished tasks that a task with these uses is in conflict with.
    pub(super) fn conflicts(&self, uses: &[ObjectUse]) -> usize {
        let conflicts = |m: &ObjectUse| {
            let usage = self.usage[m.object()];
            if m.exclusive() { usage.users - 1 } else { usage.exclusive_users }
        };
        uses.iter().map(|m| conflicts(m) as usize).sum()
    }

    /// Notes that a task uses the object.
    pub(super) fn add_user(&mut self, used: ObjectUse) {
        let usage = &mut self.usage[used.object()];
        usage.users += 1;
        usage.exclusive_users += u32::from(used.exclusive());
    }

    /// Notes that a task, which does not run any more, is gone.
    pub(super) fn remove_user(&mut self, used: ObjectUse) {
        let usage = &mut self.usage[used.object()];
        usage.users -= 1;
        usage.exclusive_users -= u32::from(used.exclusive());
        if usage.users == 0 {
            if let Some(name) = self.all[used.object()].name.take() {
                self.names.remove(&name);
            }
            self.free.push(used.object() as u32);
        }
    }

    /// Notes that a task starts. It became eligible in `round`.
    pub(super) fn occupy(&mut self, used: ObjectUse, round: u64) {
        self.usage[used.object()].occupied += if used.exclusive() { OCCUPIED } else { 1 };
        let latest = &mut self.latest[used.object()][usize::from(used.exclusive())];
        *latest = round.max(*latest);
    }

    /// Notes that a task has run. Returns whether the object is free now.
    pub(super) fn vacate(&mut self, used: ObjectUse) -> bool {
        let occupied = &mut self.usage[used.object()].occupied;
        *occupied -= if used.exclusive() { OCCUPIED } else { 1 };
        *occupied == 0
    }

    /// Notes that a task is due from now on. Ranks ascend.
    pub(super) fn add_due(&mut self, used: ObjectUse, rank: u64) {
        self.all[used.object()].due.push(Due { rank, exclusive: used.exclusive() });
    }

    /// Notes that a due task starts or is withdrawn.
    pub(super) fn remove_due(&mut self, used: ObjectUse, rank: u64) {
        self.all[used.object()].due.retain(|due| due.rank != rank);
    }

    /// Whether the object blocks a task of that level: it is occupied, or a task that is due before uses it.
    pub(super) fn blocks(&self, used: ObjectUse, level: u64) -> bool {
        self.usage[used.object()].occupied > used.limit() || self.due > 0 && self.is_held(used, level)
    }

    /// A use of an object that blocks a task of that level, if there is one.
    pub(super) fn blocking(&self, uses: &[ObjectUse], level: u64) -> Option<ObjectUse> {
        if self.running + self.due == 0 {
            return None;
        }
        // From the end: there a task with explicit conflicts mostly has its star, the object with the most
        // users.
        let occupied = uses.iter().rev().find(|m| self.usage[m.object()].occupied > m.limit());
        let held = || uses.iter().find(|m| self.is_held(**m, level));
        occupied.or_else(|| if self.due > 0 { held() } else { None }).copied()
    }

    /// Whether a task that is due before uses the object, in conflict with `used`.
    fn is_held(&self, used: ObjectUse, level: u64) -> bool {
        let due = self.all[used.object()].due.iter().take_while(|due| due.rank < level);
        due.into_iter().any(|due| due.exclusive || used.exclusive())
    }

    /// The latest round in which a task became eligible that has started and is in conflict with `used`.
    pub(super) fn latest_conflict(&self, used: ObjectUse) -> u64 {
        let [relaxed, exclusive] = self.latest[used.object()];
        if used.exclusive() { exclusive.max(relaxed) } else { exclusive }
    }
}
