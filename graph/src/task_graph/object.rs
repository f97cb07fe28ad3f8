//! The tracker of one host object: the last sequential effect, the exclusive and relaxed effects since, and
//! the observer.

use super::memo::Repeated;
use crate::task::{Kind, Order, TaskId};

/// The effects on one host object that later effects come after, or conflict with.
#[derive(Debug)]
pub(crate) struct ObjectTracker {
    /// The last task with a sequential effect, or the epoch or horizon that stands for it.
    last: TaskId,
    /// The tasks with exclusive and relaxed effects since, ascending: each comes after `last`, in any order.
    since: Vec<Unordered>,
    /// The last task that observes the object. It comes after all earlier effects, and all later effects come
    /// after it.
    observer: Option<TaskId>,
    /// Whether `last` is an epoch or horizon that stands for effects which some of `since` do not come after.
    apart: bool,
    /// The length of `since` above which tasks that are done are forgotten.
    bound: usize,
}

/// A task with an exclusive or relaxed effect.
#[derive(Clone, Copy, Debug)]
struct Unordered {
    id: TaskId,
    exclusive: bool,
}

/// The smallest bound on the length of `since`.
const EFFECTS: usize = 64;

impl ObjectTracker {
    /// The tracker of an object that exists since `epoch`.
    pub(crate) fn new(epoch: TaskId) -> Self {
        Self { last: epoch, since: Vec::new(), observer: None, apart: false, bound: EFFECTS }
    }

    /// The number of tasks that are tracked.
    pub(crate) fn tracked(&self) -> usize {
        1 + self.since.len() + usize::from(self.observer.is_some())
    }

    /// The oldest of the tasks since the last sequential one.
    pub(crate) fn oldest_since(&self) -> Option<TaskId> {
        self.since.first().map(|effect| effect.id)
    }

    /// Whether `task` has an exclusive or relaxed effect, and there was no sequential one since.
    pub(crate) fn is_since(&self, task: TaskId) -> bool {
        self.since.binary_search_by_key(&task, |effect| effect.id).is_ok()
    }

    /// Every task whose effect a later effect comes after.
    pub(crate) fn users(&self, epoch: TaskId) -> impl Iterator<Item = TaskId> {
        std::iter::once(self.last)
            .chain(self.since.iter().map(|effect| effect.id))
            .map(move |id| id.max(epoch))
    }

    /// Notes an effect of `task`. Calls `before` with the tasks that it comes after and the kind of
    /// dependency.
    #[inline]
    pub(crate) fn touch(
        &mut self,
        task: TaskId,
        order: Order,
        epoch: TaskId,
        done: &dyn Fn(TaskId) -> bool,
        mut before: impl FnMut(TaskId, Kind),
    ) {
        self.replace_before(epoch);
        self.observer.into_iter().for_each(|observer| before(observer, Kind::Anti));
        if !order.is_in_order() {
            before(self.last, Kind::Serial);
            if self.since.len() >= self.bound {
                self.forget_done(done);
            }
            return self.since.push(Unordered { id: task, exclusive: order == Order::Exclusive });
        }
        if order == Order::Observe {
            // The list stays, and the next observer would find the same tasks again.
            self.forget_done(done);
        }
        if self.since.is_empty() || self.apart {
            before(self.last, Kind::Serial);
        }
        self.since.iter().for_each(|effect| before(effect.id, Kind::Serial));
        if order == Order::Observe {
            self.observer = Some(task);
        } else {
            self.since.clear();
            (self.last, self.observer, self.apart) = (task, None, false);
        }
    }

    /// Notes that the effects of the last tasks were repeated.
    pub(crate) fn repeat(&mut self, repeated: &Repeated<'_>, done: &dyn Fn(TaskId) -> bool) {
        let last = |id: TaskId| repeated.last(id).unwrap_or(id);
        self.observer = self.observer.map(last);
        if repeated.last(self.last).is_some() {
            self.last = last(self.last);
            self.since.iter_mut().for_each(|effect| effect.id = last(effect.id));
            return;
        }
        let mut more = Vec::new();
        for effect in &self.since {
            repeated.each(effect.id, |id| more.push(Unordered { id, ..*effect }));
        }
        more.sort_unstable_by_key(|effect| effect.id);
        self.since.append(&mut more);
        self.forget_done(&|task| !repeated.is_of_last_pass(task) && done(task));
    }

    fn forget_done(&mut self, done: &dyn Fn(TaskId) -> bool) {
        self.since.retain(|effect| !done(effect.id));
        self.bound = EFFECTS.max(2 * self.since.len());
    }

    /// Calls `f` with the tasks since the last sequential one that an effect of this order must not overlap.
    pub(crate) fn conflicts(&self, order: Order, epoch: TaskId, f: impl FnMut(TaskId)) {
        let excludes = |m: &&Unordered| {
            m.id >= epoch
                && match order {
                    Order::Sequential | Order::Observe => false,
                    Order::Exclusive => true,
                    Order::Relaxed => m.exclusive,
                }
        };
        self.since.iter().filter(excludes).map(|effect| effect.id).for_each(f);
    }

    /// Replaces everything before `epoch` by it.
    #[inline]
    fn replace_before(&mut self, epoch: TaskId) {
        if self.last < epoch {
            self.last = epoch;
            self.observer = self.observer.filter(|&observer| observer > epoch);
            let gone = self.since.partition_point(|effect| effect.id < epoch);
            self.since.drain(..gone);
            // The remaining tasks may have been submitted before the horizon was applied, and so may not come
            // after it.
            self.apart |= gone > 0;
        }
    }
}
