//! Objects, through which conflicts are represented: a task occupies its objects while it runs, and waits in the queue of
//! one that is in its way.

use super::queue::NONE;
use crate::task::ObjectId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What a task does with an object: the object's slot, and whether it needs it exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member(u32);

impl Member {
    pub(super) fn new(object: usize, exclusive: bool) -> Self {
        Self((object as u32) << 1 | u32::from(exclusive))
    }

    pub(super) fn object(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) fn exclusive(self) -> bool {
        self.0 & 1 == 1
    }

    /// An object that is occupied more than that is in the way.
    fn limit(self) -> u32 {
        // Without a branch: 0 for an exclusive one.
        (self.0 & 1).wrapping_sub(1) >> 1
    }
}

/// How far an object is occupied by one exclusive task; otherwise it is the number of relaxed ones.
const OCCUPIED: u32 = 1 << 31;

/// A task that is due: no later one may start before it.
#[derive(Clone, Copy, Debug)]
struct Due {
    rank: u64,
    exclusive: bool,
}

#[derive(Debug)]
pub(super) struct Object {
    /// `None` for one that stands for explicit conflicts.
    name: Option<ObjectId>,
    /// By rank.
    due: SmallVec<[Due; 1]>,
    /// While a task is inserted: how many of its partners are members; which insertion that is; whether the task joins.
    pub(super) hits: u32,
    pub(super) insertion: u64,
    pub(super) joined: bool,
}

/// How many tasks use an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// By how many it is occupied, see [`OCCUPIED`].
    occupied: u32,
    /// Tasks with an effect on it that have not finished, exclusive ones included.
    pub(super) members: u32,
    pub(super) exclusives: u32,
    /// The queues of tasks that the object is in the way of: relaxed, exclusive.
    queues: [u32; 2],
}

const UNUSED: Usage = Usage { occupied: 0, members: 0, exclusives: 0, queues: [NONE; 2] };

/// All objects with a member.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: Vec<Object>,
    /// Apart from the rest because a search asks for nothing else.
    usage: Vec<Usage>,
    /// In which round the latest of the tasks that were started became eligible: relaxed, exclusive.
    latest: Vec<[u64; 2]>,
    names: FxHashMap<ObjectId, u32>,
    free: Vec<u32>,
    /// How many tasks are due.
    pub(super) due: usize,
    /// How many tasks run.
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
    /// One more than the greatest slot.
    pub(super) fn slots(&self) -> usize {
        self.all.len()
    }

    /// The object of that name; a new one if no task has an effect on it.
    pub(super) fn named(&mut self, name: ObjectId) -> usize {
        if let Some(&object) = self.names.get(&name) {
            return object as usize;
        }
        let object = self.create(Some(name));
        self.names.insert(name, object as u32);
        object
    }

    /// An object without members.
    pub(super) fn create(&mut self, name: Option<ObjectId>) -> usize {
        let empty = Object { name, due: SmallVec::new(), hits: 0, insertion: 0, joined: false };
        match self.free.pop() {
            Some(object) => {
                self.all[object as usize] = empty;
                self.latest[object as usize] = [0; 2];
                object as usize
            }
            None => {
                self.all.push(empty);
                self.usage.push(UNUSED);
                self.latest.push([0; 2]);
                self.all.len() - 1
            }
        }
    }

    pub(super) fn usage(&self, object: usize) -> Usage {
        self.usage[object]
    }

    /// The queue of the tasks that the object is in the way of, and that would use it like `member`.
    pub(super) fn queue(&mut self, member: Member) -> &mut u32 {
        &mut self.usage[member.object()].queues[usize::from(member.exclusive())]
    }

    /// Whether a task waits for the object.
    pub(super) fn is_waited_for(&self, object: usize) -> bool {
        self.usage[object].queues != [NONE; 2]
    }

    /// With how many tasks at most, among all that have not finished, a task is in conflict.
    pub(super) fn conflicts(&self, members: &[Member]) -> usize {
        let conflicts = |m: &Member| {
            let usage = self.usage[m.object()];
            if m.exclusive() { usage.members - 1 } else { usage.exclusives }
        };
        members.iter().map(|m| conflicts(m) as usize).sum()
    }

    /// A task gets an effect.
    pub(super) fn enter(&mut self, member: Member) {
        let usage = &mut self.usage[member.object()];
        usage.members += 1;
        usage.exclusives += u32::from(member.exclusive());
    }

    /// A task that does not run any more has gone.
    pub(super) fn leave(&mut self, member: Member) {
        let usage = &mut self.usage[member.object()];
        usage.members -= 1;
        usage.exclusives -= u32::from(member.exclusive());
        if usage.members == 0 {
            if let Some(name) = self.all[member.object()].name.take() {
                self.names.remove(&name);
            }
            self.free.push(member.object() as u32);
        }
    }

    /// A task starts that became eligible in `round`.
    pub(super) fn occupy(&mut self, member: Member, round: u64) {
        self.usage[member.object()].occupied += if member.exclusive() { OCCUPIED } else { 1 };
        let latest = &mut self.latest[member.object()][usize::from(member.exclusive())];
        *latest = round.max(*latest);
    }

    /// A task has run; whether the object is free now.
    pub(super) fn vacate(&mut self, member: Member) -> bool {
        let occupied = &mut self.usage[member.object()].occupied;
        *occupied -= if member.exclusive() { OCCUPIED } else { 1 };
        *occupied == 0
    }

    /// A task is due from now on. Ranks ascend.
    pub(super) fn hold(&mut self, member: Member, rank: u64) {
        self.all[member.object()].due.push(Due { rank, exclusive: member.exclusive() });
    }

    /// A task that was due starts or is withdrawn.
    pub(super) fn release(&mut self, member: Member, rank: u64) {
        self.all[member.object()].due.retain(|due| due.rank != rank);
    }

    /// Whether the object is in the way of a task of that level: occupied, or wanted by one that is due before.
    pub(super) fn in_the_way(&self, member: Member, level: u64) -> bool {
        self.usage[member.object()].occupied > member.limit() || self.due > 0 && self.held(member, level)
    }

    /// An object that is in the way.
    pub(super) fn any_in_the_way(&self, members: &[Member], level: u64) -> Option<Member> {
        if self.running + self.due == 0 {
            return None;
        }
        // From the end, where the star of a task with explicit conflicts mostly is, with the most others on it.
        let occupied = members.iter().rev().find(|m| self.usage[m.object()].occupied > m.limit());
        let held = || members.iter().find(|m| self.held(**m, level));
        occupied.or_else(|| if self.due > 0 { held() } else { None }).copied()
    }

    fn held(&self, member: Member, level: u64) -> bool {
        let due = self.all[member.object()].due.iter().take_while(|due| due.rank < level);
        due.into_iter().any(|due| due.exclusive || member.exclusive())
    }

    /// The latest round of a task that was started on the object and is in conflict with `member`.
    pub(super) fn latest_conflict(&self, member: Member) -> u64 {
        let [relaxed, exclusive] = self.latest[member.object()];
        if member.exclusive() { exclusive.max(relaxed) } else { exclusive }
    }
}
