//! Nodes: tasks from their submission until nothing refers to them any more.
//!
//! # One allocation
//! A node is one `Arc`: the [`Head`], which every task has, and behind it the [`Body`], which is the closure with its bound
//! accesses. The same `Arc` is the job in the queues of the pool and the lanes. The thread that runs a task empties the body,
//! because destructors are the program's code and part of the task. The memory of the node itself stays in the
//! [live tasks](crate::execute::live_tasks) for a while, until the runner has let go of it. So the thread that submits, which
//! allocates nodes again and again, is also the thread that frees them: memory that one thread allocates and another
//! frees is expensive. The memory of a long list of successors stays with the node for the same reason.
//!
//! # Protocol
//! Two atomic fields hold the state of a node: the count `pending` of unfinished dependencies, and the bits of `state`.
//!
//! 1. A submitter creates the node with `pending` = [`SUBMITTING`], so that it cannot become ready yet. Under the lock of the
//!    runtime's state it adds the node to the successors of its unfinished dependencies.
//! 2. The submitter replaces `SUBMITTING` by the number of these dependencies ([`Head::wait_for_dependencies`]). Those that
//!    have completed meanwhile are subtracted already.
//! 3. Each dependency that completes subtracts one ([`Head::release`]), and so does one that is handed over to the same queue: see
//!    [`queued`](super::queued). The thread that reaches zero makes the task ready: it queues or claims it, or gives it to the
//!    scheduler of conflicts.
//! 4. A thread that finds a ready task claims it by setting `CLAIMED` ([`Head::claim`]). Of several threads one succeeds. It
//!    may give the claim back before it begins ([`Head::unclaim`]), to queue the task again.
//! 5. That thread runs the body, or skips it if the task is poisoned or cancelled. A failure becomes the poison of the node.
//!    The end of a body that has taken its [`Completion`] comes later: see [`later`](super::later). How a task of a queue ends is
//!    decided there.
//! 6. The same thread takes out the callbacks and calls them, until there are none. Then it sets `DONE` under the lock of the
//!    links and takes out the successors ([`Head::complete`]). A thread that locks the links later sees `DONE` and adds none.
//! 7. It hands the poison on to the successors that need it, and releases them.
//! 8. If the task is in a group, the thread counts it as completed for the group and calls the functions that wait for the group.
//! 9. It sets `CLOSED` under the lock and takes out the latches ([`Head::close`]). A thread that locks the links later adds none. A task
//!    that is in no group is closed in step 6.
//! 10. It counts the task as completed, and releases the latches.
//!
//! | state | `pending` | bits | next state |
//! |---|---|---|---|
//! | being submitted | `SUBMITTING` or a little less | | waiting or ready, by the submitter |
//! | waiting | > 0 | | ready, by the last dependency |
//! | ready | 0 | | claimed, by a worker, a lane or a waiting thread |
//! | claimed | 0 | `CLAIMED` | done, or ready again before it begins, by the claiming thread |
//! | ends later | 0 | `CLAIMED`, `LATER`, then `BEGUN` or `ENDED` | done, by the thread that sets the second of the two |
//! | done | 0 | `CLAIMED`, `DONE` | closed, by the claiming thread |
//! | closed | 0 | `CLAIMED`, `DONE`, `CLOSED` | |
//!
//! `CANCELLED` is set by any thread until the task is claimed or committed. `POISONED` is set when there is a poison in the links: by the
//! submitter, by a dependency that completes, or by the claiming thread. `QUEUED` and `HIDDEN` are set before the node is shared, and stay.
//!
//! | field | read by | written by |
//! |---|---|---|
//! | `id`, `label`, `place`, `queue`, `runtime`, `marks`, `group`, `contention`, `observes`, `part` | all threads | the submitter, before the node is shared |
//! | the place in the scheduler, in `contention` | the claiming thread | once, by the thread that makes the task ready, under the lock of the scheduler |
//! | `core` | the claiming thread, until it has counted the task as completed; threads that find the task not done under the lock of the links | the submitter |
//! | `links.successors`, callbacks | the claiming thread, in step 6 | submitters and other threads until `DONE`, under the lock |
//! | latches | the claiming thread, in step 6 or 9 | waiting threads until `CLOSED`, under the lock |
//! | `links.poison` | all threads, under the lock | the submitter, dependencies, the claiming thread, under the lock |
//! | body | the claiming thread | the claiming thread |
//!
//! # Failures
//! A *poison* is the failure because of which a task has not written its results: its own, or that of a task whose results
//! it needs. It is handed on along dependencies according to what the successor [needs](Needs): along true dependencies on a
//! buffer, and along the serial dependencies of a host object. If a task is poisoned for several reasons, the failure with the
//! oldest root counts, in whatever order they happen; a cancellation gives way to a failure, and one before a task began to one after that.
//!
//! With several nodes, dependencies hand nothing on. Each node knows which regions are poisoned instead (`nodes::poison`).
//!
//! # Cancellation
//! A handle cancels its task by a bit of the state. The token of its [group](Group) is read when the turn of the task has come. A
//! cancelled task poisons the buffers that it was to write. It has not touched its host objects, as the program wished,
//! so they stay good, and later tasks on them run. Replays that have begun end early, and poison them. A cancellation is not reported.
//!
//! A task that begins on all nodes or on none is *committed* on a node when that node tells the others that it is ready
//! ([`Head::commit`]). From then on a cancellation comes too late. When all nodes are ready, it is *permitted* ([`Head::permit`]), and runs also
//! if the run on several nodes ends meanwhile.

use super::{
    later::Later,
    links::{Callback, Completed, DeadLatches, Links, Successor, Successors},
    part::Part,
    place::Place,
    properties::{Contention, Needs, Properties},
};
use crate::{
    error::{Cause, Failure},
    events::latch::{Latch, Latches},
    execute::{core::Core, current_task::RuntimeId, groups::group::Group, threads::compute::Compute},
    label::TaskLabel,
    sync::{
        Mutex,
        atomic::{AtomicU16, AtomicU32, Ordering::*},
    },
};
use anabranch_graph::{MemoryId, TaskId};
use anabranch_par::{Job, Marks};
use std::{fmt, mem, ops::Deref, ptr::NonNull, sync::Arc};

/// The work of a task.
pub(crate) trait Body: Send + 'static {
    /// Does the work, once. Drops the closures of the program, with everything that they hold, before it returns: destructors
    /// are the program's code and run as part of the task.
    fn run(&mut self, compute: &Compute) -> Result<(), Cause>;

    /// Begins the work, on a thread that has claimed the task. The task ends when this returns, unless the body has taken the
    /// [`Completion`] of the task: then it ends when that is finished, too.
    #[inline]
    fn begin(&mut self, compute: &Compute, _: Later<'_>) -> Result<(), Cause> {
        self.run(compute)
    }

    /// Is called instead of `run` if the task is poisoned or cancelled. Drops everything that `run` drops.
    fn skip(&mut self, why: &Arc<Failure>);

    /// Is called before a task of a [queue](super::queued) ends, well or not, also after `skip`. It calls no code of the program.
    #[inline]
    fn end(&mut self, _well: bool) {}
}

/// A node with the type of its body erased.
pub(crate) trait Task: Job {
    fn head(&self) -> &Head;
    fn begin_body(&self, compute: &Compute, later: Later<'_>) -> Result<(), Cause>;
    fn skip_body(&self, why: &Arc<Failure>);
    fn end_body(&self, well: bool);
}

#[repr(C)]
struct Entry<B> {
    head: Head,
    /// Only the thread that has claimed the task locks it, and then the thread that ends a task of a queue.
    body: Mutex<B>,
}

impl<B: Body> Task for Entry<B> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn begin_body(&self, compute: &Compute, later: Later<'_>) -> Result<(), Cause> {
        self.body.lock().begin(compute, later)
    }

    fn skip_body(&self, why: &Arc<Failure>) {
        self.body.lock().skip(why);
    }

    fn end_body(&self, well: bool) {
        self.body.lock().end(well);
    }
}

impl<B: Body> Job for Entry<B> {
    fn run(self: Arc<Self>) {
        Node(self).run_as_job();
    }
}

/// A shared handle to the node of a task.
#[derive(Clone)]
pub(crate) struct Node(Arc<dyn Task>);

impl Node {
    /// A node with the head and the body that these functions make. They are called when there is memory for the node, so that the
    /// compiler writes both where they stay instead of copying them there.
    #[inline(always)]
    pub(crate) fn new<B: Body>(head: impl FnOnce() -> Head, body: impl FnOnce() -> B) -> Self {
        let entry = Arc::<Entry<B>>::new_uninit();
        let place = Arc::as_ptr(&entry).cast::<Entry<B>>().cast_mut();
        // SAFETY: no other thread has the new `Arc`. Both fields are written before the entry counts as initialised. If one of the
        // functions panics, the entry never does, and what was written is leaked.
        unsafe {
            (&raw mut (*place).head).write(head());
            (&raw mut (*place).body).write(Mutex::new(body()));
            Self(entry.assume_init())
        }
    }

    pub(crate) fn task(&self) -> &dyn Task {
        &*self.0
    }

    /// The job for the queue of the workers or of the lanes.
    pub(crate) fn into_job(self) -> Arc<dyn Task> {
        self.0
    }

    /// The node of a job from such a queue.
    pub(crate) fn from_job(task: Arc<dyn Task>) -> Self {
        Self(task)
    }

    /// A latch for this task.
    pub(crate) fn latch(&self) -> Arc<Latch> {
        let (latch, mut dead) = (Latch::new(self.id), DeadLatches::new());
        self.add_latch(&latch, &mut dead);
        latch.release();
        latch
    }
}

impl Deref for Node {
    type Target = Head;

    #[inline]
    fn deref(&self) -> &Head {
        self.0.head()
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.label)
    }
}

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
/// The task begins on all nodes or on none, and this node has told the others that it is ready: it cannot be cancelled any more.
const COMMITTED: u16 = 256;
/// All nodes were ready: the task begins, whatever happens.
const PERMITTED: u16 = 512;
/// It is no run of a task of the program: it has no span.
const HIDDEN: u16 = 1024;
/// The task was handed over to its queue.
pub(super) const HANDED: u16 = 2048;
/// The task goes to a queue. It is set before the node is shared.
pub(super) const QUEUED: u16 = 4096;

/// The part of a node that every task has. Fields that change come first, next to the reference counts in front of them, so
/// that a thread which looks at a task that another thread has run fetches one cache line. What only tasks of queues use comes last.
#[repr(C)]
pub(crate) struct Head {
    /// Dependencies that are not done; [`SUBMITTING`] more while the task is being submitted.
    pending: AtomicU32,
    /// The id of the runtime, which may be gone once the task is done.
    pub(crate) runtime: RuntimeId,
    pub(super) state: AtomicU16,
    pub(crate) place: Place,
    /// See [`Submission::observes`](crate::execute::Submission::observes).
    pub(crate) observes: bool,
    core: NonNull<Core>,
    pub(super) links: Mutex<Links>,
    /// The group that the task belongs to.
    pub(crate) group: Option<Arc<Group>>,
    pub(crate) id: TaskId,
    pub(crate) label: TaskLabel,
    /// Only of a task that may conflict with others: the scheduler of conflicts then starts it.
    pub(crate) contention: Option<Box<Contention>>,
    /// The marks of other runtimes around the submission: the task counts as inside their tasks.
    pub(crate) marks: Marks,
    /// With several nodes, of the part of a task that this one executes.
    pub(crate) part: Option<Box<Part>>,
    /// Of a task of a queue: its own work if that has not ended, and the dependencies that were handed over and have not ended.
    pub(super) unended: AtomicU32,
    /// Of a task of a queue: the memory of its device.
    pub(super) queue: MemoryId,
}

/// Added to the count of a task that is being submitted: it cannot become ready before the number of its dependencies is known.
const SUBMITTING: u32 = 1 << 31;

// SAFETY: `core` is the only field that is not Send and Sync by itself; `Core` is both.
unsafe impl Send for Head {}
// SAFETY: as above.
unsafe impl Sync for Head {}

impl Head {
    #[inline(always)]
    pub(crate) fn new(id: TaskId, properties: Properties, core: &Arc<Core>) -> Self {
        Self::with_core(id, properties, NonNull::from_ref(&**core), core.id())
    }

    #[inline(always)]
    pub(crate) fn with_core(
        id: TaskId,
        properties: Properties,
        core: NonNull<Core>,
        runtime: RuntimeId,
    ) -> Self {
        let Properties { label, place, observes, group, contention } = properties;
        Self {
            pending: AtomicU32::new(SUBMITTING),
            runtime,
            state: AtomicU16::new(0),
            place,
            observes,
            core,
            links: Mutex::default(),
            group,
            id,
            label,
            contention,
            marks: runtime.other_marks(),
            part: None,
            unended: AtomicU32::new(1),
            queue: MemoryId::HOST,
        }
    }

    /// The head of a step that is no run of a task.
    pub(crate) fn without_span(self) -> Self {
        // No other thread has it yet.
        self.state.fetch_or(HIDDEN, Relaxed);
        self
    }

    /// Whether it is a run of a task.
    pub(crate) fn has_span(&self) -> bool {
        self.state.load(Relaxed) & HIDDEN == 0
    }

    /// The runtime of a task that has not completed.
    ///
    /// # Safety
    /// The task was submitted and has not been counted as completed.
    pub(crate) unsafe fn core<'c>(&self) -> &'c Core {
        // SAFETY: the runtime is not freed before all tasks are counted as completed and all its threads have ended: see
        // `shutdown`.
        unsafe { self.core.as_ref() }
    }

    /// Whether the calling thread may run the task while it waits: see [`RuntimeId::may_help`].
    #[inline]
    pub(crate) fn may_help(&self) -> bool {
        self.runtime.may_help(&self.marks)
    }

    /// The task's runtime, unless the task is done.
    pub(crate) fn pending_core(&self) -> Option<Arc<Core>> {
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
        // Acquire: the effects of the task happen before everything that a thread does which skips a dependency on it.
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

    /// Poisons this task, which needs results of the failed one. If it is poisoned already, the failure with the oldest root
    /// stays, and of those with one root the oldest, in whatever order they happen. But a cancellation gives way to a failure,
    /// which concerns more of the later tasks.
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

    /// Makes `node`, which is being submitted, wait for this task. Returns whether it has to wait before it begins: not if this task is
    /// done. Then only its failure counts. And not if this task was handed over to the same queue: then `node` waits before it ends.
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
        if needs != Needs::End
            && let Some(failure) = self.poison()
            && needs.is_broken_by(&failure)
        {
            // Dropped under a lock, but no other thread knows the task yet: the replaced failure has another owner.
            let _replaced = node.poison_with(&failure);
        }
        false
    }

    /// Makes `node`, which comes after all others, wait for this task, unless another task that it waits for comes after this
    /// one. Returns whether it has to wait.
    pub(crate) fn add_successor_if_last(&self, node: &Node) -> bool {
        let mut links = self.links.lock();
        let is_last = self.is_last(&links);
        if is_last {
            links.successors.push(Successor { node: node.clone(), needs: Needs::End, is_handed: false });
        }
        is_last
    }

    /// Makes a latch wait for this task, unless it is closed. The caller drops the dead latches outside locks.
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

    /// Makes a latch that waits for all tasks wait for this one, unless another task comes after this one. A task that comes after
    /// it may be closed before the functions return that wait for the group of this one. The caller drops the dead latches outside
    /// locks.
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

    /// Calls the callbacks, outside the lock, and then marks the task as done: whatever waits for the task or for the runtime
    /// goes on after the callbacks. Returns what waits; the latches of a task in a group are those of [`close`](Self::close). It is
    /// dropped outside locks: a successor may be the last reference to an error of the program.
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
        Completed {
            successors: mem::take(&mut links.successors),
            latches: closes.then(|| links.take_latches()).flatten(),
            poison: links.poison.clone(),
        }
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

    /// Ends the submission of a task with this many dependencies, some of which may be done by now. Returns whether the task
    /// is ready.
    pub(crate) fn wait_for_dependencies(&self, dependencies: u32) -> bool {
        // The count has already fallen by the dependencies that are done. All sums are modulo 2^32. AcqRel: as in `release`.
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

    /// The body has returned. Returns whether the calling thread retires the task: not if its end is still to come. Then the
    /// task may be gone, and the runtime with it.
    #[inline]
    pub(crate) fn body_has_returned(&self) -> bool {
        // AcqRel: the thread that retires the task sees everything that the other one has done.
        self.state.load(Relaxed) & LATER == 0 || self.state.fetch_or(BEGUN, AcqRel) & ENDED != 0
    }

    /// The completion was finished. Returns whether the calling thread retires the task: not if its body has not returned yet.
    pub(crate) fn completion_is_finished(&self) -> bool {
        // AcqRel: as above.
        self.state.fetch_or(ENDED, AcqRel) & BEGUN != 0
    }

    /// Cancels the task. Returns `false` if it has begun or is done.
    pub(crate) fn cancel(&self) -> bool {
        // Never a claimed task: also between the claim and the beginning of the task, the answer must be `false`.
        let unclaimed = |state| (state & (CLAIMED | COMMITTED) == 0).then_some(state | CANCELLED);
        self.state.fetch_update(AcqRel, Acquire, unclaimed).is_ok()
    }

    /// From now on the task cannot be cancelled. Returns `false` if it has been, by a handle or with its group.
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
