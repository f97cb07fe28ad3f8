//! The runtimes inside whose tasks the current thread works. Waiting for one of them there would be waiting
//! for itself.
//!
//! A runtime sets its [`Mark`] while a thread runs one of its tasks. The mark goes with all work that the
//! task begins, on whatever threads: loops, joins, scopes, spawned jobs, tasks of other runtimes. Work that
//! goes on when the task has ended counts as inside, too: whether the task has ended is a question of the
//! schedule, and answers must not depend on it. Only a thread that the program starts by itself is outside.
//!
//! Callbacks and wakers are called on whichever thread completes a task, which may be in the middle of a task
//! of another runtime, or not. They count as inside the tasks of every runtime, so that their answers do not
//! depend on that.

use crate::error::Error;
use anabranch_par::{Mark, Marks, Process};
use std::io;

/// Identifies a runtime, also after the runtime is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeId {
    mark: Mark,
    /// The process in which the threads of the runtime are.
    process: Process,
}

impl RuntimeId {
    /// Fails if the system refuses to report forks.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { mark: Mark::new(), process: Process::current()? })
    }

    /// Whether this process has the threads of the runtime: not if it was forked after they were started.
    /// Other threads may then have held any lock of the runtime at the fork, for ever.
    #[inline]
    pub(crate) fn is_in_this_process(self) -> bool {
        self.process.is_current()
    }

    /// An error in a forked process.
    #[inline]
    pub(crate) fn check_process(self, call: &'static str) -> Result<(), Error> {
        if self.is_in_this_process() { Ok(()) } else { Err(Error::Forked { call }) }
    }

    /// An error if the calling thread works inside a task of the runtime: waiting there would be waiting for
    /// itself. An error in a forked process, too.
    #[inline]
    pub(crate) fn check_outside(self, call: &'static str) -> Result<(), Error> {
        self.check_process(call)?;
        if self.is_inside_task() { Err(Error::WaitInsideTask { call }) } else { Ok(()) }
    }

    /// Calls `f`, in which the calling thread counts as inside a task of the runtime.
    #[inline]
    pub(super) fn inside_task<R>(self, f: impl FnOnce() -> R) -> R {
        self.mark.enter(f)
    }

    /// Calls `f`, a function that the program has left where `marks` were set, for the end of tasks of the
    /// runtime. The thread may be in the middle of other work, so `f` counts as inside the tasks of every
    /// runtime. What it submits is begun by a task of this runtime.
    pub(super) fn inside_callback<R>(self, marks: &Marks, f: impl FnOnce() -> R) -> R {
        marks.enter_callback(|| self.inside_task(f))
    }

    /// Whether the calling thread works inside a task of the runtime.
    #[inline]
    pub(crate) fn is_inside_task(self) -> bool {
        self.mark.is_set()
    }

    /// The marks of other runtimes around a task that the calling thread submits to this one.
    #[inline]
    pub(super) fn other_marks(self) -> Marks {
        Marks::current_without(self.mark)
    }

    /// Whether the calling thread is inside of nothing that a task of this runtime with these other marks is
    /// not inside of. Only then may the thread run the task while it waits: otherwise the task would get
    /// other answers than on another thread.
    #[inline]
    pub(super) fn may_help(self, other_marks: &Marks) -> bool {
        other_marks.contain_current_except(self.mark)
    }
}
