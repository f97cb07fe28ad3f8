//! The execution front: the tasks that no other task depends on yet.

use crate::task::{Dependency, TaskId};

/// The execution front, and the lengths of the dependency paths to recent tasks.
///
/// Recent tasks are found by index. The few older tasks that are still in the front are in a sorted list.
#[derive(Debug)]
pub(crate) struct Front {
    /// The task that `recent` begins with.
    base: TaskId,
    recent: Vec<Mark>,
    /// Tasks before `base` that were in the front when `base` passed them, and whether a task has followed
    /// since. Ascending.
    older: Vec<(TaskId, bool)>,
    len: usize,
    /// The length of `recent` above which tasks that are done are forgotten.
    bound: usize,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The length of the longest path from the horizon that was the latest when the task was added.
    depth: u32,
    /// Whether a later task depends on it.
    followed: bool,
}

/// The smallest bound on the length of `recent`.
const RECENT: usize = 1024;

impl Front {
    /// The front after an epoch: the epoch alone.
    pub(crate) fn after(epoch: TaskId) -> Self {
        let recent = vec![Mark { depth: 0, followed: false }];
        Self { base: epoch, recent, older: Vec::new(), len: 1, bound: RECENT }
    }

    /// Makes this the front after an epoch, without freeing memory.
    pub(crate) fn reset(&mut self, epoch: TaskId) {
        self.base = epoch;
        self.recent.clear();
        self.older.clear();
        self.recent.push(Mark { depth: 0, followed: false });
        self.len = 1;
    }

    /// The number of tasks in the front.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of tasks with an entry.
    pub(crate) fn tracked(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    /// The front, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskId> {
        let older = self.older.iter().filter(|(_, followed)| !followed).map(|&(id, _)| id);
        let recent = (self.base.0..).zip(&self.recent).filter(|(_, mark)| !mark.followed);
        older.chain(recent.map(|(id, _)| TaskId(id)))
    }

    /// Adds the next task. Returns the length of the longest path from `horizon` to it. All tasks on the path
    /// are later than the horizon.
    #[inline]
    pub(crate) fn push(&mut self, dependencies: &[Dependency], horizon: TaskId) -> u32 {
        let mut depth = 0;
        for dependency in dependencies {
            depth = depth.max(self.follow(dependency.on, horizon));
        }
        self.recent.push(Mark { depth: depth + 1, followed: false });
        self.len += 1;
        depth + 1
    }

    /// Adds a horizon, which depends on the whole front.
    pub(crate) fn push_horizon(&mut self) {
        self.recent.iter_mut().for_each(|mark| mark.followed = true);
        self.older.clear();
        self.recent.push(Mark { depth: 0, followed: false });
        self.len = 1;
    }

    /// Notes that a task has a successor. Returns the length of the path to the task.
    #[inline]
    fn follow(&mut self, id: TaskId, horizon: TaskId) -> u32 {
        if id < self.base {
            if self.older.first().is_some_and(|&(first, _)| first <= id) {
                self.follow_older(id);
            }
            return 0;
        }
        let mark = &mut self.recent[(id.0 - self.base.0) as usize];
        self.len -= usize::from(!mark.followed);
        mark.followed = true;
        if id > horizon { mark.depth } else { 0 }
    }

    #[cold]
    fn follow_older(&mut self, id: TaskId) {
        if let Ok(at) = self.older.binary_search_by_key(&id, |&(id, _)| id) {
            let followed = &mut self.older[at].1;
            self.len -= usize::from(!*followed);
            *followed = true;
        }
    }

    /// Forgets tasks before `epoch`, which comes after all of them.
    pub(crate) fn forget_before(&mut self, epoch: TaskId) {
        if epoch > self.base {
            self.recent.drain(..(epoch.0 - self.base.0) as usize);
            self.base = epoch;
        }
    }

    /// Forgets tasks that are done or have successors, once there are many, so that the cost per task is
    /// small.
    #[inline]
    pub(crate) fn forget_done(&mut self, done: &dyn Fn(TaskId) -> bool) {
        if self.recent.len() >= self.bound {
            self.forget_done_now(done);
        }
    }

    #[cold]
    fn forget_done_now(&mut self, done: &dyn Fn(TaskId) -> bool) {
        let next = TaskId(self.base.0 + self.recent.len() as u64);
        self.older.retain(|&(id, followed)| !followed && !done(id));
        let recent = (self.base.0..).zip(&self.recent).filter(|(_, mark)| !mark.followed);
        self.older.extend(recent.map(|(id, _)| (TaskId(id), false)).filter(|&(id, _)| !done(id)));
        self.recent.clear();
        self.base = next;
        self.len = self.older.len();
        self.bound = RECENT.max(2 * self.older.len());
    }
}
