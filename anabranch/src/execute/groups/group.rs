//! The state of a task group: which of its tasks are in flight, what cancels them, and their failures.
//!
//! # Protocol
//! One atomic field counts the tasks of the group that are in flight and has three flags.
//!
//! 1. A submission adds one, under the lock of the runtime's state ([`Group::submit`]). The thread that ran
//!    or skipped the task subtracts one ([`Group::complete`]), before it counts the task as completed for the
//!    runtime.
//! 2. A group with tasks in flight counts as one such task of the group that it is nested in. So the change
//!    from no task to one task also adds one to the parent, and the change back subtracts it, after the group
//!    itself has changed. The count of a parent may thus be too high for a moment. It is never too low once a
//!    submission has returned.
//! 3. The callbacks of a group with tasks in flight count as one more task, so that the group is idle only
//!    after they were called. A thread that adds the first callback adds one and sets `CALLBACKS`, under the
//!    lock ([`Group::add_callback`]). A thread whose subtraction leaves one with this flag takes the lock. If
//!    the callbacks are still the only ones in flight, it clears the flag and takes them. It calls them
//!    without the lock and then subtracts the one, as for a task. Callbacks that they add begin this step
//!    again.
//! 4. A thread or future that waits adds its latch to `waiting` and sets `AWAITED`, both under the lock
//!    ([`Group::latch`]). The thread that subtracts the last one sees the flag in what it subtracts from. It
//!    takes the latches under the lock, if the group is still idle then; otherwise the next thread that
//!    subtracts the last one does so.
//! 5. The last handle of the program sets `ABANDONED` ([`Group::abandon`]). From then on no call can report a
//!    failure. That thread prints the failures if the group is idle, and otherwise the thread that subtracts
//!    the last one does.
//!
//! A task keeps its group as long as its node stays in memory. By the time the group is freed, nothing of the
//! program's own is left in it: its failures are reported or printed, and no latch waits.

use crate::{
    events::latch::Latch,
    label::TaskLabel,
    observe::UnreportedFailures,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::*},
    },
};
use anabranch_graph::TaskId;
use anabranch_par::CancellationToken;
use std::{borrow::Cow, fmt, mem, sync::Arc};

/// There may be latches in `waiting`.
const AWAITED: u64 = 1;
/// The program has no handle any more.
const ABANDONED: u64 = 2;
/// There are callbacks in `waiting`, which count as one task.
const CALLBACKS: u64 = 4;
/// One task in flight.
const TASK: u64 = 8;

pub(crate) struct Group {
    name: Cow<'static, str>,
    /// The group that this one is nested in.
    parent: Option<Arc<Self>>,
    token: CancellationToken,
    pub(crate) failures: UnreportedFailures,
    /// The number of tasks in flight, times [`TASK`], and the flags.
    state: AtomicU64,
    waiting: Mutex<Waiting>,
}

/// What waits for a group that has tasks in flight.
#[derive(Default)]
struct Waiting {
    /// The latches of threads and futures.
    latches: Vec<Arc<Latch>>,
    /// Functions of the program.
    callbacks: Vec<Callback>,
}

/// A function that the program has given to a group: see [`TaskGroup::on_done`](crate::TaskGroup::on_done).
pub(crate) struct Callback {
    pub(crate) call: Box<dyn FnOnce(&Group) + Send>,
    /// The group and the place in the program, for the message if the function panics.
    pub(crate) label: TaskLabel,
}

/// Callbacks of a group. The thread that has them calls them, and then [completes](Group::complete) the group
/// once more.
pub(crate) struct Due<'g> {
    pub(crate) group: &'g Group,
    pub(crate) callbacks: Vec<Callback>,
}

impl Group {
    pub(crate) fn new(name: Cow<'static, str>, parent: Option<&Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            name,
            parent: parent.cloned(),
            token: parent.map_or_else(CancellationToken::new, |parent| parent.token.child()),
            failures: UnreportedFailures::default(),
            state: AtomicU64::new(0),
            waiting: Mutex::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The token that cancels tasks of this group and of the groups in it.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Whether no task of this group or of a group in it is in flight.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        // Acquire: the effects of completed tasks are visible.
        self.state.load(Acquire) < TASK
    }

    /// Whether this is `group`, or a group in it.
    pub(crate) fn is_within(&self, group: &Self) -> bool {
        let mut inner = Some(self);
        while let Some(this) = inner {
            if std::ptr::eq(this, group) {
                return true;
            }
            inner = this.parent.as_deref();
        }
        false
    }

    /// Counts a submission.
    pub(crate) fn submit(&self) {
        let mut group = self;
        // Relaxed: the thread that submits a task is also the one that hands it over.
        while group.state.fetch_add(TASK, Relaxed) < TASK
            && let Some(parent) = &group.parent
        {
            group = parent;
        }
    }

    /// Counts a completed task, or callbacks that were called. Adds the latches that waited for it to
    /// `latches`, which the caller releases. Returns callbacks whose turn has come.
    pub(crate) fn complete(&self, latches: &mut Vec<Arc<Latch>>) -> Option<Due<'_>> {
        let mut group = self;
        loop {
            // AcqRel: the effects of all tasks are visible to a thread that finds the group idle.
            let before = group.state.fetch_sub(TASK, AcqRel);
            if before >= 2 * TASK {
                let are_due = before & CALLBACKS != 0 && before < 3 * TASK;
                return are_due.then(|| group.take_callbacks()).flatten();
            }
            if before & AWAITED != 0 {
                latches.extend(group.take_latches());
            }
            if before & ABANDONED != 0 {
                group.print_failures();
            }
            group = group.parent.as_deref()?;
        }
    }

    /// Takes the callbacks, unless there is a task in flight again, or another thread was faster.
    #[cold]
    fn take_callbacks(&self) -> Option<Due<'_>> {
        let mut waiting = self.waiting.lock();
        // Acquire: the effects of tasks that were submitted and completed meanwhile are visible to the
        // callbacks.
        let state = self.state.load(Acquire);
        if state & CALLBACKS == 0 || state >= 2 * TASK {
            return None;
        }
        self.state.fetch_and(!CALLBACKS, Relaxed);
        Some(Due { group: self, callbacks: mem::take(&mut waiting.callbacks) })
    }

    /// Takes the latches, unless there is a task in flight again.
    #[cold]
    fn take_latches(&self) -> Vec<Arc<Latch>> {
        let mut waiting = self.waiting.lock();
        if !self.is_idle() {
            return Vec::new();
        }
        self.state.fetch_and(!AWAITED, Relaxed);
        mem::take(&mut waiting.latches)
    }

    /// A latch that is released as soon as no task of this group is in flight.
    pub(crate) fn latch(&self) -> Arc<Latch> {
        let latch = Latch::new(TaskId(u64::MAX));
        let mut forgotten = Vec::new();
        let mut waiting = self.waiting.lock();
        self.state.fetch_or(AWAITED, AcqRel);
        // Under the lock, and after the flag: either this thread finds the group idle, or the thread that
        // completes the last task finds the flag and then what was added.
        let is_idle = self.is_idle();
        if !is_idle {
            let latches = &mut waiting.latches;
            // Latches for which nothing waits any more must not pile up beside a task that runs for long.
            if latches.len() >= 16 && latches.len().is_power_of_two() {
                forgotten.extend(latches.extract_if(.., |latch| Arc::strong_count(latch) == 1));
            }
            latches.push(Arc::clone(&latch));
        }
        drop(waiting);
        // Outside the lock: they may have wakers, which are the program's code.
        drop(forgotten);
        if is_idle {
            latch.release();
        }
        latch
    }

    /// Adds a callback, which is called as soon as no task of this group is in flight. Returns it if the
    /// group is idle.
    pub(crate) fn add_callback(&self, callback: Callback) -> Result<(), Callback> {
        let mut waiting = self.waiting.lock();
        let add = |state| match state {
            idle if idle < TASK => None,
            first if first & CALLBACKS == 0 => Some((first | CALLBACKS) + TASK),
            more => Some(more),
        };
        // Acquire: if the group is idle, the caller calls the callback, and the effects of all tasks are
        // visible to it.
        if self.state.fetch_update(AcqRel, Acquire, add).is_err() {
            return Err(callback);
        }
        waiting.callbacks.push(callback);
        Ok(())
    }

    /// The program drops its last handle.
    pub(crate) fn abandon(&self) {
        if self.state.fetch_or(ABANDONED, AcqRel) < TASK {
            self.print_failures();
        }
    }

    #[cold]
    fn print_failures(&self) {
        self.failures.print(format_args!("the task group {:?}", self.name));
    }
}

impl Drop for Group {
    /// Frees a long line of parents one after the other: a destructor inside a destructor for each of them
    /// needs a large stack.
    fn drop(&mut self) {
        let mut parent = self.parent.take();
        while let Some(group) = parent {
            parent = Arc::into_inner(group).and_then(|mut group| group.parent.take());
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("name", &self.name)
            .field("in_flight", &(self.state.load(Relaxed) / TASK))
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn complete(group: &Group) -> Vec<Arc<Latch>> {
        let mut latches = Vec::new();
        assert!(group.complete(&mut latches).is_none(), "there are no callbacks");
        latches
    }

    #[test]
    fn a_task_of_an_inner_group_is_one_of_the_outer_group() {
        let _deadline = testing::deadline();
        let outer = Group::new("outer".into(), None);
        let inner = Group::new("inner".into(), Some(&outer));
        assert!(inner.is_within(&outer) && inner.is_within(&inner) && !outer.is_within(&inner));
        inner.submit();
        inner.submit();
        outer.submit();
        assert!(!inner.is_idle() && !outer.is_idle());
        complete(&inner);
        complete(&inner);
        assert!(inner.is_idle() && !outer.is_idle());
        complete(&outer);
        assert!(outer.is_idle());
    }

    #[test]
    fn a_latch_is_handed_out_once_when_the_last_task_completes() {
        let _deadline = testing::deadline();
        let outer = Group::new("outer".into(), None);
        let inner = Group::new("inner".into(), Some(&outer));
        assert!(outer.latch().event.is_set());
        inner.submit();
        inner.submit();
        let latches = [outer.latch(), inner.latch()];
        assert!(complete(&inner).is_empty());
        assert_eq!(complete(&inner).len(), 2);
        inner.submit();
        assert!(complete(&inner).is_empty());
        drop(latches);
    }

    #[test]
    fn latches_for_which_nothing_waits_are_forgotten() {
        let _deadline = testing::deadline();
        let group = Group::new("group".into(), None);
        group.submit();
        (0..1000).for_each(|_| drop(group.latch()));
        assert!(group.waiting.lock().latches.len() <= 32);
        let kept = group.latch();
        let latches = complete(&group);
        assert!(latches.iter().any(|latch| Arc::ptr_eq(latch, &kept)));
    }
}
