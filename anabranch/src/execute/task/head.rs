//! The states of a [node](super::node), and the steps from one to the next.

use super::{
    links::Completed,
    node::{Callback, DeadLatches, Head, Links, Node, Successor, Successors, TaskRuntime},
    place::{Place, Runner},
    properties::{Needs, Properties},
};
use crate::{
    error::{Cause, Failure},
    events::latch::{Latch, Latches},
    execute::{current_task::RuntimeId, groups::group::Group},
    sync::{
        Mutex,
        atomic::{AtomicU16, AtomicU32, Ordering::*},
    },
};
use anabranch_graph::{MemoryId, TaskId};
use std::{mem, ptr::NonNull, sync::Arc};

/// A thread runs the task or has run it.
const CLAIMED: u16 = 1;
/// The task has completed.
const DONE: u16 = 2;
/// There is a poison in the links.
const POISONED: u16 = 4;
/// The task is to be skipped.
const CANCELLED: u16 = 8;
/// The task is done, and the functions were called that waited for its group.
const CLOSED: u16 = 16;
/// The body has taken the completion of the task.
pub(super) const LATER: u16 = 32;
/// The body has returned, of a task that ends later.
const BEGUN: u16 = 64;
/// The completion was finished.
const ENDED: u16 = 128;
/// The task begins on all nodes or on none, and this node has reported to the others that it is ready: it
/// cannot be cancelled any more.
const COMMITTED: u16 = 256;
/// All nodes were ready: the task begins, whatever happens.
const PERMITTED: u16 = 512;
/// An internal step, such as a transfer: it gets no tracing span.
const HIDDEN: u16 = 1024;
/// The task was handed over to its queue.
pub(super) const HANDED: u16 = 2048;
/// The task goes to a queue. It is set before the node is shared.
pub(super) const QUEUED: u16 = 4096;

/// Added to the count of a task that is being submitted: it cannot become ready before the number of its
/// dependencies is known.
const SUBMITTING: u32 = 1 << 31;

impl Node {
    /// Runs the task as a job from the queue of the workers or of the lanes.
    pub(super) fn run_as_job(self) {
        let runner = match self.place {
            Place::Host | Place::Blocking => Runner::Lane,
            Place::Compute | Place::Inline | Place::Transfer => Runner::Worker,
        };
        if self.claim() {
            self.run_on(runner);
        }
    }

    /// Runs the claimed task on this thread, and then tasks that it made ready and that may run here.
    pub(crate) fn run_on(self, runner: Runner) {
        // SAFETY: the calling thread has claimed the task. No thread counts it as completed before its body
        // has returned.
        let core = unsafe { self.core() };
        core.run(self, runner);
    }

    /// Ends the task, whose body has returned before: see [`TaskRuntime::end_later`].
    pub(super) fn end_later(self, result: Result<(), Cause>, is_last: bool) {
        // SAFETY: a task is not counted as completed before its completion is finished.
        let core = unsafe { self.core() };
        core.end_later(self, result, is_last);
    }

    /// A latch for this task.
    pub(crate) fn latch(&self) -> Arc<Latch> {
        let (latch, mut dead) = (Latch::new(self.id), DeadLatches::new());
        self.add_latch(&latch, &mut dead);
        latch.release();
        latch
    }
}

impl Head {
    /// A task that is being submitted. `core` points to the runtime that counts it: `Core::head` is the only
    /// caller, but for the models, which never ask a node for its runtime.
    #[inline(always)]
    pub(crate) fn new(
        id: TaskId,
        properties: Properties,
        core: NonNull<dyn TaskRuntime>,
        runtime: RuntimeId,
    ) -> Self {
        let Properties { label, place, observes, group, contention, queue } = properties;
        // Before all fields: those that are evaluated before a call that may panic are copied once more.
        let marks = runtime.other_marks();
        Self {
            pending: AtomicU32::new(SUBMITTING),
            runtime,
            state: AtomicU16::new(if queue.is_some() { QUEUED } else { 0 }),
            place,
            observes,
            links: Mutex::default(),
            core,
            group,
            id,
            label,
            contention,
            marks,
            part: None,
            unended: AtomicU32::new(1),
            queue: queue.unwrap_or(MemoryId::HOST),
        }
    }

    /// The head of an internal step, such as a transfer, which gets no tracing span.
    pub(crate) fn without_span(self) -> Self {
        // No other thread has it yet.
        self.state.fetch_or(HIDDEN, Relaxed);
        self
    }

    /// Whether the task gets a tracing span: it is no internal step.
    pub(crate) fn has_span(&self) -> bool {
        self.state.load(Relaxed) & HIDDEN == 0
    }

    /// The runtime of a task that has not completed.
    ///
    /// # Safety
    /// The task was submitted and has not been counted as completed.
    unsafe fn core<'c>(&self) -> &'c dyn TaskRuntime {
        // SAFETY: `Core::head` has made the pointer. The runtime is not freed before all tasks are counted as
        // completed and all its threads have ended: see `shutdown`.
        unsafe { self.core.as_ref() }
    }

    /// Whether the calling thread may run the task while it waits: see [`RuntimeId::may_help`].
    #[inline]
    pub(crate) fn may_help(&self) -> bool {
        self.runtime.may_help(&self.marks)
    }

    /// The task's runtime, unless the task is done.
    pub(crate) fn pending_core(&self) -> Option<Arc<dyn TaskRuntime>> {
        let links = self.links.lock();
        if self.is_done() {
            return None;
        }
        // SAFETY: a task becomes done under this lock, and is counted as completed after that.
        let core = unsafe { self.core() }.share();
        drop(links);
        core
    }

    /// Whether the task may conflict with others.
    pub(crate) fn contends(&self) -> bool {
        self.contention.is_some()
    }

    /// Whether the task was run or skipped.
    pub(crate) fn is_done(&self) -> bool {
        // Acquire: the effects of the task happen before everything that a thread does which skips a
        // dependency on it.
        self.state.load(Acquire) & DONE != 0
    }

    /// Whether the task is done, and the functions were called that waited for its group.
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: as above, and the effects of these functions.
        self.state.load(Acquire) & CLOSED != 0
    }

    /// Whether a thread runs the task or has run it.
    pub(crate) fn is_claimed(&self) -> bool {
        self.state.load(Relaxed) & CLAIMED != 0
    }

    /// Whether the task has not written its results, or will not.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.state.load(Acquire) & POISONED != 0
    }

    /// The failure because of which the task has not written its results.
    pub(crate) fn poison(&self) -> Option<Arc<Failure>> {
        if self.state.load(Acquire) & POISONED == 0 {
            return None;
        }
        self.links.lock().poison.clone()
    }

    /// Poisons this task, which needs results of the failed one. If it is poisoned already, the failure with
    /// the oldest root stays, and of those with one root the oldest, in whatever order they happen. But a
    /// cancellation gives way to a failure, which concerns more of the later tasks.
    #[cold]
    #[must_use = "the replaced failure may be the program's own, and is to be dropped outside locks"]
    pub(crate) fn poison_with(&self, failure: &Arc<Failure>) -> Option<Arc<Failure>> {
        let mut links = self.links.lock();
        if links.poison.as_ref().is_some_and(|old| failure.age() >= old.age()) {
            return None;
        }
        self.state.fetch_or(POISONED, Release);
        links.poison.replace(Arc::clone(failure))
    }

    /// Replaces the poison by the task's own failure.
    #[cold]
    pub(crate) fn fail(&self, failure: Arc<Failure>) {
        let replaced = self.links.lock().poison.replace(failure);
        self.state.fetch_or(POISONED, Release);
        // Outside the lock: errors are the program's own, and so are their destructors.
        drop(replaced);
    }

    /// Makes `node`, which is being submitted, wait for this task. Returns whether it has to wait before it
    /// begins: not if this task is done. Then only its failure counts. And not if this task was handed over
    /// to the same queue: then `node` waits before it ends.
    pub(crate) fn add_successor(&self, node: &Node, needs: Needs) -> bool {
        if !self.is_done() {
            let mut links = self.links.lock();
            if !self.is_done() {
                let is_handed = self.is_handed_to_queue_of(node);
                if is_handed {
                    node.add_unended();
                }
                links.successors.push(Successor { node: node.clone(), needs, is_handed });
                return !is_handed;
            }
        }
        if needs != Needs::End && self.is_poisoned() {
            self.hand_poison_to(node, needs);
        }
        false
    }

    /// Poisons `node`, which is being submitted, if it needs results that this task has not written.
    #[cold]
    fn hand_poison_to(&self, node: &Node, needs: Needs) {
        if let Some(failure) = self.poison().filter(|failure| needs.is_broken_by(failure)) {
            // Dropped under a lock, but no other thread knows the task yet: the replaced failure has another
            // owner.
            let _replaced = node.poison_with(&failure);
        }
    }

    /// Makes `node`, which comes after all others, wait for this task, unless another task that it waits for
    /// comes after this one. Returns whether it has to wait.
    pub(crate) fn add_successor_if_last(&self, node: &Node) -> bool {
        let mut links = self.links.lock();
        let is_last = self.is_last(&links);
        if is_last {
            links.successors.push(Successor { node: node.clone(), needs: Needs::End, is_handed: false });
        }
        is_last
    }

    /// Makes a latch wait for this task, unless it is closed. The caller drops the dead latches outside
    /// locks.
    pub(crate) fn add_latch(&self, latch: &Arc<Latch>, dead: &mut DeadLatches) {
        let mut links = self.links.lock();
        if !self.is_closed() {
            links.add_latch(latch, dead);
        }
    }

    /// Adds a callback, unless the task is done: then returns it.
    pub(crate) fn add_callback(&self, callback: Callback) -> Result<(), Callback> {
        let mut links = self.links.lock();
        if self.is_done() {
            return Err(callback);
        }
        links.others.get_or_insert_default().callbacks.push(callback);
        Ok(())
    }

    /// Makes a latch that waits for all tasks wait for this one, unless another task comes after this one. A
    /// task that comes after it may be closed before the functions return that wait for the group of this
    /// one. The caller drops the dead latches outside locks.
    pub(crate) fn add_latch_if_last(&self, latch: &Arc<Latch>, dead: &mut DeadLatches) {
        let mut links = self.links.lock();
        if self.is_last(&links) || self.group.is_some() && !self.is_closed() {
            links.add_latch(latch, dead);
        }
    }

    /// Whether the task is not done and no other task waits for it.
    fn is_last(&self, links: &Links) -> bool {
        !self.is_done() && links.successors.is_empty()
    }

    /// Calls the callbacks, outside the lock, and then marks the task as done: whatever waits for the task or
    /// for the runtime goes on after the callbacks. Returns what waits; the latches of a task in a group are
    /// those of [`close`](Self::close). It is dropped outside locks: a successor may be the last reference to
    /// an error of the program.
    #[inline]
    pub(crate) fn complete(&self, mut call: impl FnMut(Callback)) -> Completed {
        let mut links = self.links.lock();
        while let Some(callbacks) = links.take_callbacks() {
            drop(links);
            callbacks.into_iter().for_each(&mut call);
            links = self.links.lock();
        }
        let closes = self.group.is_none();
        // Release: pairs with the Acquire in `is_done`. Under the lock, so that nothing is added after this.
        self.state.fetch_or(if closes { DONE | CLOSED } else { DONE }, Release);
        let latches = closes.then(|| links.take_latches()).flatten();
        let poison = links.poison.clone();
        // The successors last: what is taken before a call that may panic is copied once more.
        Completed { successors: mem::take(&mut links.successors), latches, poison }
    }

    /// Marks a task of a group as closed. Returns the latches that wait for it.
    pub(crate) fn close(&self) -> Option<Latches> {
        let mut links = self.links.lock();
        // Release and the lock: as in `complete`.
        self.state.fetch_or(CLOSED, Release);
        links.take_latches()
    }

    /// Keeps the memory of a long list of successors, which the thread that submits frees with the node.
    #[inline]
    pub(crate) fn keep_memory(&self, successors: Successors) {
        if successors.spilled() {
            self.links.lock().successors = successors;
        }
    }

    /// Ends the submission of a task with this many dependencies, some of which may be done by now. Returns
    /// whether the task is ready.
    pub(crate) fn wait_for_dependencies(&self, dependencies: u32) -> bool {
        // The count has already fallen by the dependencies that are done. All sums are modulo 2^32. AcqRel:
        // as in `release`.
        let change = dependencies.wrapping_sub(SUBMITTING);
        self.pending.fetch_add(change, AcqRel).wrapping_add(change) == 0
    }

    /// Counts a dependency that is done. Returns `true` for the last one.
    pub(crate) fn release(&self) -> bool {
        // AcqRel: the effects of all dependencies happen before the task runs.
        self.pending.fetch_sub(1, AcqRel) == 1
    }

    /// Whether all dependencies are done.
    pub(crate) fn is_ready(&self) -> bool {
        self.pending.load(Acquire) == 0
    }

    /// Claims the task. Returns `false` if another thread has claimed it.
    pub(crate) fn claim(&self) -> bool {
        self.state.fetch_or(CLAIMED, AcqRel) & CLAIMED == 0
    }

    /// Gives back a claimed task that has not begun.
    pub(crate) fn unclaim(&self) {
        self.state.fetch_and(!CLAIMED, Release);
    }

    /// Notes that the end of the claimed task comes later than that of its body.
    pub(crate) fn defer_end(&self) {
        let before = self.state.fetch_or(LATER, Relaxed);
        assert!(before & LATER == 0, "a task has one completion");
    }

    /// The body has returned. Returns whether the calling thread retires the task: not if its end is still to
    /// come. Then the task may be gone, and the runtime with it.
    #[inline]
    pub(crate) fn body_has_returned(&self) -> bool {
        // AcqRel: the thread that retires the task sees everything that the other one has done.
        self.state.load(Relaxed) & LATER == 0 || self.state.fetch_or(BEGUN, AcqRel) & ENDED != 0
    }

    /// The completion was finished. Returns whether the calling thread retires the task: not if its body has
    /// not returned yet.
    pub(crate) fn completion_is_finished(&self) -> bool {
        // AcqRel: as above.
        self.state.fetch_or(ENDED, AcqRel) & BEGUN != 0
    }

    /// Cancels the task. Returns `false` if it has begun or is done.
    pub(crate) fn cancel(&self) -> bool {
        // Never a claimed task: also between the claim and the beginning of the task, the answer must be
        // `false`.
        let unclaimed = |state| (state & (CLAIMED | COMMITTED) == 0).then_some(state | CANCELLED);
        self.state.fetch_update(AcqRel, Acquire, unclaimed).is_ok()
    }

    /// From now on the task cannot be cancelled. Returns `false` if it has been, by a handle or with its
    /// group.
    pub(crate) fn commit(&self) -> bool {
        if self.is_cancelled() {
            return false;
        }
        let uncancelled = |state| (state & CANCELLED == 0).then_some(state | COMMITTED);
        self.state.fetch_update(AcqRel, Acquire, uncancelled).is_ok()
    }

    /// The task begins on all nodes, also if the run ends.
    pub(crate) fn permit(&self) {
        self.state.fetch_or(PERMITTED, Release);
    }

    /// Whether the task begins on all nodes.
    pub(crate) fn is_permitted(&self) -> bool {
        self.state.load(Acquire) & PERMITTED != 0
    }

    /// Whether the task was cancelled, by a handle or with its group.
    pub(crate) fn is_cancelled(&self) -> bool {
        let state = self.state.load(Relaxed);
        let with_group = || self.group.as_ref().is_some_and(|group| group.token().is_cancelled());
        state & CANCELLED != 0 || state & COMMITTED == 0 && !self.observes && with_group()
    }

    /// Whether the task belongs to this group or to a group in it.
    pub(crate) fn is_within(&self, group: &Group) -> bool {
        self.group.as_ref().is_some_and(|own| own.is_within(group))
    }
}
