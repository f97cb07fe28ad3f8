//! The status of a task or group, and functions that are called with the last status.

use super::node::{Callback, Node, Pieces};
use crate::{
    error::{Cause, Failure},
    execute::groups::{
        group::{Callback as GroupCallback, Group},
        handle::GroupHandle,
    },
    label::TaskLabel,
};
use anabranch_par::Marks;
use parking_lot::Mutex;
use std::{
    panic::Location,
    slice,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::AcqRel},
    },
};

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
    /// It was cancelled before it began; or it was [replays](crate::Sequence::replay), which end early.
    Cancelled,
}

impl Node {
    /// The status of the task.
    pub(crate) fn status(&self) -> Status {
        of_pieces(slice::from_ref(self))
    }
}

/// The status of a task with these pieces.
pub(super) fn of_pieces(pieces: &[Node]) -> Status {
    if pieces.iter().all(|piece| piece.is_done()) {
        return last_status(pieces);
    }
    if pieces.iter().any(|piece| piece.is_claimed()) {
        return Status::Running;
    }
    if pieces.iter().all(|piece| piece.is_cancelled()) { Status::Cancelled } else { Status::Waiting }
}

/// The status of a task whose pieces have run or were skipped.
fn last_status(pieces: &[Node]) -> Status {
    let failure = pieces.iter().filter_map(|piece| piece.poison()).min_by_key(|failure| failure.age());
    failure.map_or(Status::Done, |failure| of_failure(&failure))
}

fn of_failure(failure: &Failure) -> Status {
    match &failure.cause {
        Cause::Skipped { .. } => Status::Skipped,
        cause if cause.is_cancellation() => Status::Cancelled,
        _ => Status::Failed,
    }
}

/// Calls `callback` once, with the last status of a task with these pieces: on the thread that completes the
/// last of them, or now if they are done.
pub(super) fn on_done(pieces: &Pieces, callback: impl FnOnce(Status) + Send + 'static) {
    if let [only] = &pieces[..] {
        return only.on_done(callback);
    }
    if pieces.is_empty() {
        return callback(Status::Done);
    }
    // Each piece has the callback, and the last one calls it.
    let (left, callback) = (AtomicUsize::new(pieces.len()), Mutex::new(Some(callback)));
    let shared = Arc::new((left, callback, pieces.clone()));
    for piece in pieces {
        let shared = Arc::clone(&shared);
        piece.on_done(move |_| {
            let (left, callback, pieces) = &*shared;
            // AcqRel: the effects and failures of all pieces are visible.
            if left.fetch_sub(1, AcqRel) == 1
                && let Some(callback) = { callback.lock().take() }
            {
                callback(last_status(pieces));
            }
        });
    }
}

impl Node {
    /// Calls `callback` once, with the last status of the task: on the thread that completes it, or now if it
    /// is done.
    pub(crate) fn on_done(&self, callback: impl FnOnce(Status) + Send + 'static) {
        let marks = Marks::current();
        let callback: Callback = Box::new(move |head| {
            let status = head.poison().map_or(Status::Done, |failure| of_failure(&failure));
            let call = || head.marks.enter(|| callback(status));
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
    /// Calls `callback` once, with the status of the group: when no task is in flight, on the thread that
    /// completes the last one, or now. `location` is where the program has given it.
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
