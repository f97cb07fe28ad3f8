//! The tasks that a thread goes on with when it has completed one that they waited for.

use super::{
    core::Core,
    task::{node::Node, place::Place},
};
use smallvec::SmallVec;

/// The largest number of brief tasks that follow on one thread. Other threads take the rest from the queue.
const MOST: usize = 32;

/// Tasks that this thread has claimed and that have not begun.
///
/// The brief ones come first. Some of them begin transfers, which then go on while the thread runs the other task. Behind it
/// they would be late by all of its time, and so would the node that waits for the data.
#[derive(Default)]
pub(super) struct Following {
    /// Tasks that take only a moment, in the order in which they became ready.
    brief: SmallVec<[Node; 4]>,
    /// At most one other task.
    other: Option<Node>,
}

impl Following {
    /// Only this task, whatever its place is.
    pub(super) fn only(task: Node) -> Self {
        Self { brief: SmallVec::new(), other: Some(task) }
    }

    /// Whether one more task for this place may follow.
    #[inline]
    pub(super) fn has_room_for(&self, place: Place) -> bool {
        match place {
            Place::Inline => self.brief.len() < MOST,
            _ => self.other.is_none(),
        }
    }

    /// Adds a claimed task, for which there is [room](Self::has_room_for).
    #[inline]
    pub(super) fn add(&mut self, task: Node) {
        match task.place {
            Place::Inline => self.brief.push(task),
            _ => self.other = Some(task),
        }
    }

    /// The task that comes next.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Node> {
        if self.brief.is_empty() { self.other.take() } else { Some(self.brief.remove(0)) }
    }

    /// Gives all tasks back, to the queues. Until the last of them is in its queue, this thread has claimed a task: the runtime
    /// cannot end before.
    pub(super) fn give_back(&mut self, core: &Core) {
        while let Some(task) = self.take() {
            task.unclaim();
            core.executor.enqueue(task);
        }
    }
}
