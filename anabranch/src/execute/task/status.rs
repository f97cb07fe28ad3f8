//! The status of a task or group, and functions that are called with the last status.

use super::node::{Callback, Head, Node};
use crate::{
    error::Cause,
    execute::groups::{
        group::{Callback as GroupCallback, Group},
        handle::GroupHandle,
    },
    label::TaskLabel,
};
use anabranch_par::Marks;
use std::panic::Location;

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It waits for other tasks, or for a thread.
    Waiting,
    /// It is running.
    Running,
    /// It has ended without a failure.
    Done,
    /// It has failed.
    Failed,
    /// It was skipped, because it needs results of a failed or cancelled task.
    Skipped,
    /// It was cancelled before it began.
    Cancelled,
}

impl Head {
    /// The status of the task.
    pub(crate) fn status(&self) -> Status {
        if !self.is_done() {
            return match (self.is_claimed(), self.is_cancelled()) {
                (true, _) => Status::Running,
                (false, true) => Status::Cancelled,
                (false, false) => Status::Waiting,
            };
        }
        self.last_status()
    }

    /// The status of a task that has run or was skipped.
    fn last_status(&self) -> Status {
        match self.poison().as_ref().map(|failure| &failure.cause) {
            None => Status::Done,
            Some(Cause::Skipped { .. }) => Status::Skipped,
            Some(Cause::Cancelled) => Status::Cancelled,
            Some(_) => Status::Failed,
        }
    }
}

impl Node {
    /// Calls `callback` once, with the last status of the task: on the thread that completes it, or now if it is done.
    pub(crate) fn on_done(&self, callback: impl FnOnce(Status) + Send + 'static) {
        let marks = Marks::current();
        let callback: Callback = Box::new(move |head| {
            let call = || head.marks.enter(|| callback(head.last_status()));
            head.runtime.inside_callback(&marks, call);
        });
        if let Err(callback) = self.add_callback(callback) {
            callback(self);
        }
    }
}

impl Group {
    /// The status of the group as a whole.
    fn status(&self) -> Status {
        match (self.failures.is_empty(), self.token().is_cancelled()) {
            (false, _) => Status::Failed,
            (true, true) => Status::Cancelled,
            (true, false) => Status::Done,
        }
    }
}

impl GroupHandle {
    /// Calls `callback` once, with the status of the group: when no task is in flight, on the thread that completes the last one,
    /// or now. `location` is where the program has given it.
    pub(crate) fn on_done(
        &self,
        location: &'static Location<'static>,
        callback: impl FnOnce(Status) + Send + 'static,
    ) {
        let (marks, runtime) = (Marks::current(), self.core().id());
        let callback = move |group: &Group| runtime.inside_callback(&marks, || callback(group.status()));
        let label = TaskLabel { name: format!("group {}", self.name()).into(), location };
        if let Err(callback) = self.add_callback(GroupCallback { call: Box::new(callback), label }) {
            (callback.call)(self);
        }
    }
}
