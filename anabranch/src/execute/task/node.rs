//! Nodes: tasks from their submission until nothing refers to them any more.
//!
//! This file has the types. What they do is in [`head`](super::head), [`links`](super::links),
//! [`later`](super::later) and [`queued`](super::queued).
//!
//! # One allocation
//! A node is one `Arc`: the [`Head`], which every task has, and behind it the [`Body`], which is the closure
//! with its bound accesses. The same `Arc` is the job in the queues of the pool and the lanes. The thread
//! that runs a task empties the body, because destructors are the program's code and part of the task. The
//! memory of the node itself stays in the [live tasks](crate::execute::live_tasks) for a while, until the
//! runner has let go of it. So the thread that submits, which allocates nodes again and again, is also the
//! thread that frees them: memory that one thread allocates and another frees is expensive. The memory of a
//! long list of successors stays with the node for the same reason.
//!
//! # Protocol
//! Two atomic fields hold the state of a node: the count `pending` of unfinished dependencies, and the bits
//! of `state`.
//!
//! 1. A submitter creates the node with `pending` = `SUBMITTING`, so that it cannot become ready yet. Under
//!    the lock of the runtime's state it adds the node to the successors of its unfinished dependencies.
//! 2. The submitter replaces `SUBMITTING` by the number of these dependencies
//!    ([`Head::wait_for_dependencies`]). Those that have completed meanwhile are subtracted already.
//! 3. Each dependency that completes subtracts one ([`Head::release`]), and so does one that is handed over
//!    to the same queue: see [`queued`](super::queued). The thread that reaches zero makes the task ready: it
//!    queues or claims it, or gives it to the scheduler of conflicts.
//! 4. A thread that finds a ready task claims it by setting `CLAIMED` ([`Head::claim`]). Of several threads
//!    one succeeds. It may give the claim back before it begins ([`Head::unclaim`]), to queue the task again.
//! 5. That thread runs the body, or skips it if the task is poisoned or cancelled. A failure becomes the
//!    poison of the node. The end of a body that has taken its [`Completion`] comes later: see
//!    [`later`](super::later). How a task of a queue ends is decided there.
//! 6. The same thread takes out the callbacks and calls them, until there are none. Then it sets `DONE` under
//!    the lock of the links and takes out the successors ([`Head::complete`]). A thread that locks the links
//!    later sees `DONE` and adds none.
//! 7. It hands the poison on to the successors that need it, and releases them.
//! 8. If the task is in a group, the thread counts it as completed for the group and calls the functions that
//!    wait for the group.
//! 9. It sets `CLOSED` under the lock and takes out the latches ([`Head::close`]). A thread that locks the
//!    links later adds none. A task that is in no group is closed in step 6.
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
//! `CANCELLED` is set by any thread until the task is claimed or committed. `POISONED` is set when there is a
//! poison in the links: by the submitter, by a dependency that completes, or by the claiming thread. `QUEUED`
//! and `HIDDEN` are set before the node is shared, and stay.
//!
//! | field | read by | written by |
//! |---|---|---|
//! | `id`, `label`, `place`, `queue`, `runtime`, `marks`, `group`, `contention`, `observes`, `part` | all threads | the submitter, before the node is shared |
//! | the place in the scheduler, in `contention` | the claiming thread | once, by the thread that makes the task ready, under the lock of the scheduler |
//! | `core` | the claiming thread, until it has counted the task as completed; the thread that finishes its completion; threads that find the task not done under the lock of the links | the submitter |
//! | `links.successors`, callbacks | the claiming thread, in step 6 | submitters and other threads until `DONE`, under the lock |
//! | latches | the claiming thread, in step 6 or 9 | waiting threads until `CLOSED`, under the lock |
//! | `links.poison` | all threads, under the lock | the submitter, dependencies, the claiming thread, under the lock |
//! | body | the claiming thread | the claiming thread |
//!
//! # Failures
//! A *poison* is the failure because of which a task has not written its results: its own, or that of a task
//! whose results it needs. It is handed on along dependencies according to what the successor [needs](Needs):
//! along true dependencies on a buffer, and along the serial dependencies of a host object. If a task is
//! poisoned for several reasons, the failure with the oldest root counts, in whatever order they happen; a
//! cancellation gives way to a failure, and one before a task began to one after that.
//!
//! With several nodes, dependencies hand nothing on. Each node knows which regions are poisoned instead
//! (`nodes::poison`).
//!
//! # Cancellation
//! A handle cancels its task by a bit of the state. The token of its [group](Group) is read when the turn of
//! the task has come. A cancelled task poisons the buffers that it was to write. It has not touched its host
//! objects, as the program wished, so they stay good, and later tasks on them run. Replays that have begun
//! end early, and poison them. A cancellation is not reported.
//!
//! A task that begins on all nodes or on none is *committed* on a node when that node reports to the others
//! that it is ready ([`Head::commit`]). From then on a cancellation comes too late. When all nodes are ready,
//! it is *permitted* ([`Head::permit`]), and runs also if the run on several nodes ends meanwhile.

use super::{
    part::Part,
    place::{Place, Runner},
    properties::{Contention, Needs},
};
use crate::{
    error::{Cause, Failure},
    events::{event::Event, latch::Latch},
    execute::{current_task::RuntimeId, groups::group::Group, threads::compute::Compute},
    label::TaskLabel,
    sync::{
        Mutex,
        atomic::{AtomicU16, AtomicU32},
    },
};
use anabranch_graph::{MemoryId, TaskId};
use anabranch_par::{Job, Marks};
use smallvec::SmallVec;
use std::{
    cell::UnsafeCell,
    fmt,
    ops::Deref,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll},
};

/// The work of a task.
pub(crate) trait Body: Send + 'static {
    /// Does the work, once. Drops the closures of the program, with everything that they hold, before it
    /// returns: destructors are the program's code and run as part of the task.
    fn run(&mut self, compute: &Compute) -> Result<(), Cause>;

    /// Begins the work, on a thread that has claimed the task. The task ends when this returns, unless the
    /// body has taken the [`Completion`] of the task: then it ends when that is finished, too.
    #[inline]
    fn begin(&mut self, compute: &Compute, _: Later<'_>) -> Result<(), Cause> {
        self.run(compute)
    }

    /// Is called instead of `run` if the task is poisoned or cancelled. Drops everything that `run` drops.
    fn skip(&mut self, why: &Arc<Failure>);

    /// Is called before a task of a [queue](super::queued) ends, well or not, also after `skip`. It calls no
    /// code of the program.
    #[inline]
    fn end(&mut self, _well: bool) {}
}

/// A node with the type of its body erased.
pub(crate) trait Task: Job {
    fn head(&self) -> &Head;
    /// Begins the body. The cause is in a box, so that the result is one word, which is returned in a register.
    fn begin_body(&self, compute: &Compute, later: Later<'_>) -> Result<(), Box<Cause>>;
    fn skip_body(&self, why: &Arc<Failure>);
    fn end_body(&self, well: bool);
}

#[repr(C)]
struct Entry<B> {
    head: Head,
    /// Only the thread that has claimed the task locks it, and then the thread that ends a task of a queue.
    body: Locked<B>,
}

/// A value and its lock, which [`Node::new`] writes one after the other. A `Mutex<B>` can only be made with
/// its value in it, and moved as a whole. The lock is one byte, and the compiler copied the rest from the odd
/// address behind it: then submitting a kernel took a fifth longer.
#[repr(C)]
struct Locked<B> {
    lock: Mutex<()>,
    value: UnsafeCell<B>,
}

// SAFETY: only `with` gives the value, to one thread at a time.
unsafe impl<B: Send> Sync for Locked<B> {}

impl<B> Locked<B> {
    /// Calls a function with the value, under the lock.
    fn with<R>(&self, f: impl FnOnce(&mut B) -> R) -> R {
        let _locked = self.lock.lock();
        // SAFETY: this thread has the lock until the function has returned, and nothing else gives the value.
        f(unsafe { &mut *self.value.get() })
    }
}

impl<B: Body> Task for Entry<B> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn begin_body(&self, compute: &Compute, later: Later<'_>) -> Result<(), Box<Cause>> {
        self.body.with(|body| body.begin(compute, later).map_err(Box::new))
    }

    fn skip_body(&self, why: &Arc<Failure>) {
        self.body.with(|body| body.skip(why));
    }

    fn end_body(&self, well: bool) {
        self.body.with(|body| body.end(well));
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
    /// A node with the head and the body that these functions make. They are called when there is memory for
    /// the node, so that the compiler writes both where they stay instead of copying them there.
    #[inline(always)]
    pub(crate) fn new<B: Body>(head: impl FnOnce() -> Head, body: impl FnOnce() -> B) -> Self {
        let entry = Arc::<Entry<B>>::new_uninit();
        let place = Arc::as_ptr(&entry).cast::<Entry<B>>().cast_mut();
        // SAFETY: no other thread has the new `Arc`. All fields are written before the entry counts as
        // initialised. If one of the functions panics, the entry never does, and what was written is leaked.
        unsafe {
            (&raw mut (*place).head).write(head());
            (&raw mut (*place).body.lock).write(Mutex::new(()));
            UnsafeCell::raw_get(&raw const (*place).body.value).write(body());
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

/// The methods of the runtime that a node calls. `Core` implements them, so that the files about nodes need
/// not import `Core`.
pub(crate) trait TaskRuntime: Send + Sync {
    /// Runs a claimed task on this thread, and then tasks that it made ready and that may run here. The
    /// runtime may be gone when this returns.
    fn run(&self, node: Node, runner: Runner);

    /// Ends a task whose body has returned before. The thread that receives the completion of its work calls
    /// this. `is_last` says that the transfer of this task ends no other task after it. The runtime may be
    /// gone when this returns.
    fn end_later(&self, node: Node, result: Result<(), Cause>, is_last: bool);

    /// A strong reference, which keeps the memory of the runtime alive.
    fn share(&self) -> Option<Arc<dyn TaskRuntime>>;

    /// Waits for an event that a task with these pieces sets. The calling thread runs the pieces that can
    /// start, and no other task.
    fn wait_for_task(&self, pieces: &[Node], event: &Event, call: &'static str);

    /// Polls an event for a future. A future never blocks, but in a seeded runtime it runs tasks.
    fn poll(&self, event: &Event, context: &mut Context<'_>) -> Poll<()>;
}

/// The part of a node that every task has. Fields that change come first, next to the reference counts in
/// front of them, so that a thread which looks at a task that another thread has run fetches one cache line.
/// What only tasks of queues use comes last.
#[repr(C)]
pub(crate) struct Head {
    /// Dependencies that are not done; `SUBMITTING` more while the task is being submitted.
    pub(super) pending: AtomicU32,
    /// The id of the runtime, which may be gone once the task is done.
    pub(crate) runtime: RuntimeId,
    pub(super) state: AtomicU16,
    pub(crate) place: Place,
    /// See [`Submission::observes`](crate::execute::Submission::observes).
    pub(crate) observes: bool,
    pub(super) links: Mutex<Links>,
    pub(super) core: NonNull<dyn TaskRuntime>,
    /// The group that the task belongs to.
    pub(crate) group: Option<Arc<Group>>,
    pub(crate) id: TaskId,
    pub(crate) label: TaskLabel,
    /// `None` for a task that cannot conflict with others. Otherwise the scheduler of conflicts starts the
    /// task.
    pub(crate) contention: Option<Box<Contention>>,
    /// The marks of other runtimes around the submission: the task counts as inside their tasks.
    pub(crate) marks: Marks,
    /// With several nodes: the part of the task that this node executes.
    pub(crate) part: Option<Box<Part>>,
    /// For a task of a queue, the number of dependencies that were handed over and have not ended, plus one
    /// until its own work has ended.
    pub(super) unended: AtomicU32,
    /// For a task of a queue, the memory of its device.
    pub(super) queue: MemoryId,
}

// SAFETY: `core` is the only field that is not Send and Sync by itself, and `TaskRuntime` requires both.
unsafe impl Send for Head {}
// SAFETY: as above.
unsafe impl Sync for Head {}

/// The nodes of the pieces of a task.
pub(crate) type Pieces = SmallVec<[Node; 1]>;

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
    pub(super) latch: Option<Arc<Latch>>,
    /// More latches than one, and callbacks. Most tasks have none.
    pub(super) others: Option<Box<Others>>,
    /// Why the task has not written its results: its own failure, or that of a task that it needs.
    pub(super) poison: Option<Arc<Failure>>,
}

#[derive(Default)]
pub(super) struct Others {
    pub(super) latches: Vec<Arc<Latch>>,
    /// Functions of the program, which are called when the task is done.
    pub(super) callbacks: Vec<Callback>,
    /// Why a task of a queue has failed that has not ended: see [`queued`](super::queued).
    pub(super) outcome: Option<Cause>,
}

/// Latches for which no thread waits any more. They are dropped outside locks: a waker in them is the
/// program's own.
pub(crate) type DeadLatches = Vec<Arc<Latch>>;

/// The right of a body that has begun to end its task later.
#[derive(Clone, Copy)]
pub(crate) struct Later<'a>(pub(super) &'a Node);

/// The end of a task whose body has begun it. Only [`later`](super::later) makes one.
#[must_use = "the task ends when this is finished"]
pub(crate) struct Completion(pub(super) Option<Node>);
