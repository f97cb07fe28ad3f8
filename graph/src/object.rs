//! What the graph knows about one host object: the last sequential effect, and the others since.

use crate::task::{Order, TaskId};

/// The tracking structure of one host object.
#[derive(Debug)]
pub(crate) struct Object {
    /// The last task with a sequential effect, or the epoch or horizon that stands for it.
    last: TaskId,
    /// The tasks with exclusive and relaxed effects since, ascending: each comes after `last`, in any order.
    since: Vec<Member>,
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
        Self { last: epoch, since: Vec::new(), apart: false, bound: EFFECTS }
    }

    /// The number of tasks that are kept.
    pub(crate) fn tracked(&self) -> usize {
        1 + self.since.len()
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

    /// Notes an effect of `task`; calls `before` with the tasks that it comes after.
    pub(crate) fn touch(
        &mut self,
        task: TaskId,
        order: Order,
        epoch: TaskId,
        done: &dyn Fn(TaskId) -> bool,
        mut before: impl FnMut(TaskId),
    ) {
        self.replace_before(epoch);
        if order == Order::Sequential {
            if self.since.is_empty() || self.apart {
                before(self.last);
            }
            self.since.drain(..).for_each(|member| before(member.id));
            (self.last, self.apart) = (task, false);
            return;
        }
        before(self.last);
        if self.since.len() >= self.bound {
            self.since.retain(|member| !done(member.id));
            self.bound = EFFECTS.max(2 * self.since.len());
        }
        self.since.push(Member { id: task, exclusive: order == Order::Exclusive });
    }

    /// Calls `f` with the tasks among those since the last sequential one that an effect of this order must not
    /// overlap.
    pub(crate) fn conflicts(&self, order: Order, epoch: TaskId, f: impl FnMut(TaskId)) {
        let excludes = |m: &&Member| {
            m.id >= epoch
                && match order {
                    Order::Sequential => false,
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
            let gone = self.since.partition_point(|member| member.id < epoch);
            self.since.drain(..gone);
            // Those that are left may have been submitted without knowing of the horizon.
            self.apart |= gone > 0;
        }
    }
}
