//! What waits for a task to complete.

use super::{
    node::{Head, Node},
    properties::Needs,
};
use crate::{
    error::{Cause, Failure},
    events::latch::{Latch, Latches},
};
use smallvec::SmallVec;
use std::{mem, sync::Arc};

/// A task that depends on another one.
pub(crate) struct Successor {
    pub(crate) node: Node,
    pub(crate) needs: Needs,
    /// Whether it goes to the queue of the task, which has been handed over: see [`queued`](super::queued).
    pub(crate) is_handed: bool,
}

/// See [`TaskHandle::on_done`](crate::execute::TaskHandle::on_done).
pub(crate) type Callback = Box<dyn FnOnce(&Head) + Send>;

pub(crate) type Successors = SmallVec<[Successor; 3]>;

/// What waits for a task to complete.
#[derive(Default)]
pub(super) struct Links {
    pub(super) successors: Successors,
    /// The latch of a waiting thread or future.
    latch: Option<Arc<Latch>>,
    /// More latches than one, and callbacks. Most tasks have none.
    pub(super) others: Option<Box<Others>>,
    /// Why the task has not written its results: its own failure, or that of a task that it needs.
    pub(super) poison: Option<Arc<Failure>>,
}

#[derive(Default)]
pub(super) struct Others {
    latches: Vec<Arc<Latch>>,
    /// Functions of the program, which are called when the task is done.
    pub(super) callbacks: Vec<Callback>,
    /// Why a task of a queue has failed that has not ended: see [`queued`](super::queued).
    pub(super) outcome: Option<Cause>,
}

/// Latches for which no thread waits any more. They are dropped outside locks: a waker in them is the program's own.
pub(crate) type DeadLatches = Vec<Arc<Latch>>;

impl Links {
    /// Adds a latch. Latches for which no thread waits any more must not pile up on a task that runs for long: some of them are
    /// moved to `dead`.
    pub(super) fn add_latch(&mut self, latch: &Arc<Latch>, dead: &mut DeadLatches) {
        latch.add();
        let latch = Arc::clone(latch);
        match &mut self.latch {
            None => self.latch = Some(latch),
            Some(first) if Arc::strong_count(first) == 1 => dead.push(mem::replace(first, latch)),
            Some(_) => {
                let latches = &mut self.others.get_or_insert_default().latches;
                if latches.len() >= 16 && latches.len().is_power_of_two() {
                    dead.extend(latches.extract_if(.., |latch| Arc::strong_count(latch) == 1));
                }
                latches.push(latch);
            }
        }
    }

    /// Takes the callbacks, if there are any.
    #[inline]
    pub(super) fn take_callbacks(&mut self) -> Option<Vec<Callback>> {
        let callbacks = &mut self.others.as_mut()?.callbacks;
        (!callbacks.is_empty()).then(|| mem::take(callbacks))
    }

    /// Takes the latches, if there are any.
    #[inline]
    pub(super) fn take_latches(&mut self) -> Option<Latches> {
        let first = self.latch.take()?;
        let others = self.others.take().map_or_else(Vec::new, |others| others.latches);
        Some(Latches::new(first, others))
    }
}

/// What waited for a task that is done.
pub(crate) struct Completed {
    pub(crate) successors: Successors,
    pub(crate) latches: Option<Latches>,
    /// The failure because of which the task has not written its results.
    pub(crate) poison: Option<Arc<Failure>>,
}
