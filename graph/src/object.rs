//! What the graph knows about one host object: the last sequential effect, the others since, and who looks at it.

use crate::task::{Kind, Order, TaskId};

/// The tracking structure of one host object.
#[derive(Debug)]
pub(crate) struct Object {
    /// The last task with a sequential effect, or the epoch or horizon that stands for it.
    last: TaskId,
    /// The tasks with exclusive and relaxed effects since, ascending: each comes after `last`, in any order.
    since: Vec<Member>,
    /// The last task that only looks: it comes after all of those that were there then, and everything else after it.
    observer: Option<TaskId>,
    /// Whether `last` stands for tasks that some of `since` do not come after.
    apart: bool,
    /// How many there may be in `since` before those that are done are forgotten.
    bound: usize,
}

/// A task with an effect that is not sequential.
#[derive(Clone, Copy, Debug)]
struct Member {
    id: TaskId,
    exclusive: bool,
}

/// Effects that are kept before it is worth looking which of them are done.
const EFFECTS: usize = 64;

impl Object {
    /// An object that exists since `epoch`.
    pub(crate) fn new(epoch: TaskId) -> Self {
        Self { last: epoch, since: Vec::new(), observer: None, apart: false, bound: EFFECTS }
    }

    /// The number of tasks that are kept.
    pub(crate) fn tracked(&self) -> usize {
        1 + self.since.len() + usize::from(self.observer.is_some())
    }

    /// The oldest task among those since the last sequential one.
    pub(crate) fn oldest_since(&self) -> Option<TaskId> {
        self.since.first().map(|member| member.id)
    }

    /// Every task whose effect a later one comes after.
    pub(crate) fn users(&self, epoch: TaskId) -> impl Iterator<Item = TaskId> {
        std::iter::once(self.last)
            .chain(self.since.iter().map(|member| member.id))
            .map(move |id| id.max(epoch))
    }

    /// Notes an effect of `task`; calls `before` with the tasks that it comes after, and why.
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
            return self.since.push(Member { id: task, exclusive: order == Order::Exclusive });
        }
        if order == Order::Observe {
            // Those that stay would be found by the next observer, too.
            self.forget_done(done);
        }
        if self.since.is_empty() || self.apart {
            before(self.last, Kind::Serial);
        }
        self.since.iter().for_each(|member| before(member.id, Kind::Serial));
        if order == Order::Observe {
            self.observer = Some(task);
        } else {
            self.since.clear();
            (self.last, self.observer, self.apart) = (task, None, false);
        }
    }

    fn forget_done(&mut self, done: &dyn Fn(TaskId) -> bool) {
        self.since.retain(|member| !done(member.id));
        self.bound = EFFECTS.max(2 * self.since.len());
    }

    /// Calls `f` with the tasks among those since the last sequential one that an effect of this order must not
    /// overlap.
    pub(crate) fn conflicts(&self, order: Order, epoch: TaskId, f: impl FnMut(TaskId)) {
        let excludes = |m: &&Member| {
            m.id >= epoch
                && match order {
                    Order::Sequential | Order::Observe => false,
                    Order::Exclusive => true,
                    Order::Relaxed => m.exclusive,
                }
        };
        self.since.iter().filter(excludes).map(|member| member.id).for_each(f);
    }

    /// Lets `epoch` stand for everything before it.
    fn replace_before(&mut self, epoch: TaskId) {
        if self.last < epoch {
            self.last = epoch;
            self.observer = self.observer.filter(|&observer| observer > epoch);
            let gone = self.since.partition_point(|member| member.id < epoch);
            self.since.drain(..gone);
            // Those that are left may have been submitted without knowing of the horizon.
            self.apart |= gone > 0;
        }
    }
}
