//! Tasks of queues. A device does its work in the order in which it was handed over. So a task need not wait
//! for the end of a task that it depends on if both go to one device: it begins as soon as the other one was
//! *handed over*. A chain of launches reaches its device without a pause, and the device may do all of it at
//! once.
//!
//! # Protocol
//! The body of a task of a queue hands its work to the device and takes the completion: see
//! [`later`](super::later). The count `unended` has one for this work of the task, and one for each task that
//! it depends on and that has been handed over to the same queue, but has not ended.
//!
//! 1. A thread claims the task and runs its body, or skips it. A failure is kept as the *outcome*: it is not
//!    the failure of the task yet.
//! 2. If the body has begun the work, the same thread hands the task over, before it sets `BEGUN`
//!    ([`Head::hand_over`]). Under the lock of the links it sets `HANDED`, adds one to `unended` of each
//!    successor of the same queue and marks its link. Without the lock it then releases these successors, as
//!    a dependency that is done does. All others still wait.
//! 3. A submitter that makes a task of the same queue wait for this one takes the same lock. If it finds
//!    `HANDED`, it adds one to `unended` and not to `pending` ([`Head::add_successor`]).
//! 4. The thread that finds both `BEGUN` and the completion finished subtracts the one for the work
//!    ([`Head::work_has_ended`]). An error of the device has become the outcome before, if there was none.
//! 5. The thread that brings `unended` to zero ends the task (`Node::conclude`). All that the task depends on
//!    has ended. So the poison is final: with a poison the task counts as skipped, although the device may
//!    have done its work, with values that no task sees. Otherwise the outcome counts. The thread passes the
//!    outcome to the body ([`Body::end`](super::node::Body::end)), and the task is retired.
//! 6. A task that is retired hands its poison on. Then it subtracts one from `unended` of the successors
//!    whose links are marked ([`Head::dependency_has_ended`]), and from `pending` of the others. The thread
//!    goes on with tasks that this has ended.
//!
//! So a task of a queue ends after all that it depends on, like any task, and with the same failure in every
//! schedule.
//!
//! A task of a queue has the bit `QUEUED` from the beginning.
//!
//! | state | `pending` | `unended` | bits |
//! |---|---|---|---|
//! | waiting | > 0 | 1, and one for each dependency that was handed over | |
//! | handed over | 0 | the same | `CLAIMED`, `LATER`, `HANDED` |
//! | its work has ended | 0 | dependencies that have not ended | `CLAIMED`, and both `BEGUN` and `ENDED` if it was handed over |
//! | done | 0 | 0 | `DONE`, too |
//!
//! | field | read by | written by |
//! |---|---|---|
//! | `queue` | all threads | the submitter, before the node is shared |
//! | `unended` | | threads that hand over or end dependencies, submitters, the thread that ends the work |
//! | `links.others.outcome` | the thread that ends the task | the claiming thread, then the thread that finishes the completion, under the lock |

use super::{
    head::{HANDED, LATER, QUEUED},
    node::{Head, Node, Successor},
};
use crate::{error::Cause, sync::atomic::Ordering::*};
use smallvec::SmallVec;

/// A successor that goes one step further because another task has ended.
pub(crate) enum Next {
    /// It can begin.
    Ready(Node),
    /// It has ended, and is to be retired.
    Ended(Node),
}

impl Head {
    /// Whether the task goes to a device.
    #[inline]
    pub(crate) fn is_queued(&self) -> bool {
        self.state.load(Relaxed) & QUEUED != 0
    }

    /// Whether `node` goes to the queue of this task, which goes to one.
    fn has_queue_of(&self, node: &Node) -> bool {
        node.is_queued() && self.queue == node.queue
    }

    /// Whether `node` goes to the queue of this task, which has been handed over. The caller holds the lock
    /// of the links.
    pub(super) fn is_handed_to_queue_of(&self, node: &Node) -> bool {
        self.state.load(Relaxed) & HANDED != 0 && self.has_queue_of(node)
    }

    /// Adds a dependency that was handed over. The caller holds the lock of its links.
    pub(super) fn add_unended(&self) {
        // Relaxed: the lock orders this before the subtraction.
        self.unended.fetch_add(1, Relaxed);
    }

    /// Hands the task over, if its body has begun its work, on the thread that has claimed it. Calls `ready`
    /// with each successor of the same queue whose other dependencies are done.
    pub(crate) fn hand_over(&self, mut ready: impl FnMut(Node)) {
        if self.state.load(Relaxed) & LATER == 0 {
            return;
        }
        let mut links = self.links.lock();
        if links.others.as_ref().is_some_and(|others| others.outcome.is_some()) {
            return;
        }
        self.state.fetch_or(HANDED, Relaxed);
        let mut released = SmallVec::<[Node; 2]>::new();
        for Successor { node, is_handed, .. } in &mut links.successors {
            if self.has_queue_of(node) {
                node.add_unended();
                *is_handed = true;
                released.push(node.clone());
            }
        }
        drop(links);
        for node in released {
            if node.release() {
                ready(node);
            }
        }
    }

    /// Keeps why the work of the task has failed, unless it has failed before.
    #[cold]
    pub(crate) fn keep_outcome(&self, cause: Cause) {
        let mut links = self.links.lock();
        let outcome = &mut links.others.get_or_insert_default().outcome;
        let refused = if outcome.is_none() { outcome.replace(cause) } else { Some(cause) };
        // An error may have a destructor of the program.
        drop(links);
        drop(refused);
    }

    /// Takes why the work of the task has failed, if it has.
    pub(crate) fn take_outcome(&self) -> Option<Cause> {
        self.links.lock().others.as_mut()?.outcome.take()
    }

    /// The work of the task has ended. Returns whether the calling thread ends the task: not if it depends on
    /// a task that has not ended.
    pub(crate) fn work_has_ended(&self) -> bool {
        self.has_ended_one()
    }

    /// A task that was handed over before this one has ended. Returns whether the calling thread ends this
    /// task: not if its work, or another dependency, has not ended.
    pub(crate) fn dependency_has_ended(&self) -> bool {
        self.has_ended_one()
    }

    fn has_ended_one(&self) -> bool {
        // AcqRel: the thread that ends the task sees all that the others have done, and the poisons that they
        // have handed on.
        self.unended.fetch_sub(1, AcqRel) == 1
    }
}
