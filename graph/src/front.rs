//! The execution front: the tasks that nobody depends on yet.

use crate::task::{Dependency, TaskId};

/// Which tasks nobody depends on yet, and how long the dependency paths to recent ones are.
///
/// Recent tasks are found by index. The few older ones that are still part of the front are in a sorted list.
#[derive(Debug)]
pub(crate) struct Front {
    /// The task that `recent` begins with.
    base: TaskId,
    recent: Vec<Mark>,
    /// Tasks before `base` that were in the front when they went here, and whether one has followed since. Ascending.
    older: Vec<(TaskId, bool)>,
    len: usize,
    /// How long `recent` may get before what is done is forgotten.
    bound: usize,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The length of the longest path from the horizon that was the latest when the task was added.
    depth: u32,
    /// Whether a later task depends on it.
    followed: bool,
}

/// Recent tasks that are kept before it is worth looking which of them are done.
const RECENT: usize = 1024;

impl Front {
    /// The front after an epoch: the epoch alone.
    pub(crate) fn after(epoch: TaskId) -> Self {
        let recent = vec![Mark { depth: 0, followed: false }];
        Self { base: epoch, recent, older: Vec::new(), len: 1, bound: RECENT }
    }

    /// The same without giving memory back.
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

    /// The number of tasks that something is kept about.
    pub(crate) fn tracked(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    /// The front, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskId> {
        let older = self.older.iter().filter(|(_, followed)| !followed).map(|&(id, _)| id);
        let recent = (self.base.0..).zip(&self.recent).filter(|(_, mark)| !mark.followed);
        older.chain(recent.map(|(id, _)| TaskId(id)))
    }

    /// Adds the next task. Returns the length of the longest path to it from `horizon`, along which all tasks are
    /// later than that.
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

    /// Notes that a task has a successor; the length of the path to it.
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

    /// Forgets tasks before `epoch`, which has followed all of them.
    pub(crate) fn forget_before(&mut self, epoch: TaskId) {
        if epoch > self.base {
            self.recent.drain(..(epoch.0 - self.base.0) as usize);
            self.base = epoch;
        }
    }

    /// Forgets what is done or has successors, now and then: so that it costs little per task.
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
