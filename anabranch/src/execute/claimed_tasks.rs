//! The tasks that a thread goes on with when it has completed one that they waited for.

use super::{
    core::Core,
    task::{node::Node, place::Place},
};
use smallvec::SmallVec;

/// The largest number of transfers that follow on one thread. Other threads begin the rest.
const MOST: usize = 32;

/// Tasks that this thread has claimed and that have not begun.
///
/// Transfers come first: the transport goes on with them while the thread runs the other task. If they waited
/// for that task, the other node would wait for its whole run time.
///
/// While code of the program runs, the thread holds no claimed task: that code may wait for it. Transfers run
/// no such code (but for the messages of errors), and when the other task runs, nothing else is held.
/// Functions that are called at the end of a task, and wakers, come after [`give_back`](Self::give_back).
#[derive(Default)]
pub(super) struct ClaimedTasks {
    /// The transfers, in the order in which they became ready.
    transfers: SmallVec<[Node; 4]>,
    /// At most one other task.
    other: Option<Node>,
}

impl ClaimedTasks {
    /// Only this task, whatever its place is.
    pub(super) fn only(task: Node) -> Self {
        Self { transfers: SmallVec::new(), other: Some(task) }
    }

    /// Whether a task for this place is to follow. One that takes only a moment comes in place of another
    /// one.
    #[inline]
    pub(super) fn prefers(&self, place: Place) -> bool {
        match place {
            Place::Transfer => self.transfers.len() < MOST,
            Place::Inline => true,
            Place::Compute | Place::Host | Place::Blocking => self.other.is_none(),
        }
    }

    /// Adds a claimed task that is [preferred](Self::prefers).
    #[inline]
    pub(super) fn add(&mut self, task: Node, core: &Core) {
        if task.place == Place::Transfer {
            return self.transfers.push(task);
        }
        if let Some(before) = self.other.replace(task) {
            queue(before, core);
        }
    }

    /// The task that comes next.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Node> {
        if self.transfers.is_empty() { self.other.take() } else { Some(self.transfers.remove(0)) }
    }

    /// Gives all tasks back, to the queues.
    #[inline]
    pub(super) fn give_back(&mut self, core: &Core) {
        while let Some(task) = self.take() {
            queue(task, core);
        }
    }
}

/// Queues a claimed task that has not begun.
fn queue(task: Node, core: &Core) {
    task.unclaim();
    core.executor.enqueue(task);
}
