//! A task on its way: waiting for others, running, done.
//!
//! A node is one allocation: what every task has (its [`Head`]), and behind it what it does (its [`Body`]).

use crate::{
    core::Core,
    error::{Cause, Failure, TaskLabel},
    sync::Event,
};
use anabranch_graph::{Effect, TaskId};
use anabranch_par::{CancellationToken, Job};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{
    fmt,
    ops::Deref,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::*},
    },
};

/// Where a task is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a compute worker.
    Compute,
    /// On a host lane, because it may block, or on a thread that waits for the runtime anyway.
    Host,
    /// On whatever thread finds it ready: it is over in a moment.
    Inline,
}

/// What a task does.
pub(crate) trait Body: Send + 'static {
    /// Whether cancellation tokens are for it: not for fences, by which the program looks at what is left.
    const UNDER_TOKENS: bool = true;

    /// Does it, once. What the program gave for it (closures, and with them everything that they hold) is gone when this
    /// returns: destructors are the program's code, too, and run as part of the task.
    fn run(&mut self, core: &Core) -> Result<(), Cause>;

    /// Is called instead of `run` where something that the task needs is not there, or it was cancelled; drops what
    /// `run` would have dropped.
    fn skip(&mut self, core: &Core, why: &Arc<Failure>);
}

/// A node with its type erased.
pub(crate) trait Task: Job {
    fn head(&self) -> &Head;
    fn run_body(&self, core: &Core) -> Result<(), Cause>;
    fn skip_body(&self, core: &Core, why: &Arc<Failure>);
}

#[repr(C)]
struct Entry<B> {
    head: Head,
    /// Whoever has claimed the task locks it; nobody else does.
    body: Mutex<B>,
}

impl<B: Body> Task for Entry<B> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn run_body(&self, core: &Core) -> Result<(), Cause> {
        self.body.lock().run(core)
    }

    fn skip_body(&self, core: &Core, why: &Arc<Failure>) {
        self.body.lock().skip(core, why);
    }
}

impl<B: Body> Job for Entry<B> {
    fn run(self: Arc<Self>) {
        Node(self).run_as_job();
    }
}

/// A shared handle to a task's node.
#[derive(Clone)]
pub(crate) struct Node(Arc<dyn Task>);

impl Node {
    pub(crate) fn new<B: Body>(head: Head, body: B) -> Self {
        Self(Arc::new(Entry { head, body: Mutex::new(body) }))
    }

    pub(crate) fn task(&self) -> &dyn Task {
        &*self.0
    }

    /// For the queue of the workers or lanes.
    pub(crate) fn into_job(self) -> Arc<dyn Task> {
        self.0
    }

    /// From such a queue.
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

/// What a task needs of one that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// That it is over.
    End,
    /// The host object, as it leaves it.
    Object,
    /// The contents of a buffer that it writes.
    Contents,
}

impl Needs {
    /// Whether the failure of one is a reason to skip the other. A task that was cancelled has not touched its host objects,
    /// and that it would not was the program's wish: they are good.
    pub(crate) fn suffers(self, failure: &Arc<Failure>) -> bool {
        match self {
            Self::End => false,
            Self::Object => !matches!(failure.root().cause, Cause::Cancelled),
            Self::Contents => true,
        }
    }
}

/// Who is told when a task is done.
pub(crate) enum Successor {
    /// A task that depends on it.
    Task { node: Node, needs: Needs },
    /// A synchronisation.
    Latch(Arc<Latch>),
}

#[derive(Default)]
struct Links {
    successors: SmallVec<[Successor; 2]>,
    /// Why what it was to write is not there: its own failure, or that of a task that it needs.
    poison: Option<Arc<Failure>>,
}

impl Links {
    fn add_latch(&mut self, latch: &Arc<Latch>) {
        // Latches that nobody waits for any more must not pile up on a task that takes long.
        if self.successors.len() >= 16 && self.successors.len().is_power_of_two() {
            self.successors
                .retain(|s| !matches!(s, Successor::Latch(latch) if Arc::strong_count(latch) == 1));
        }
        latch.left.fetch_add(1, Relaxed);
        self.successors.push(Successor::Latch(Arc::clone(latch)));
    }
}

/// Somebody runs the task or has run it.
const CLAIMED: u8 = 1;
/// Nobody needs to wait for it any more.
const DONE: u8 = 2;
/// There is a poison in the links.
const POISONED: u8 = 4;
/// It is not to be run.
const CANCELLED: u8 = 8;

/// What every task has. What changes comes first, next to the reference counts before it: whoever looks after a task that
/// another thread has run fetches one line of its memory.
#[repr(C)]
pub(crate) struct Head {
    /// Dependencies that are not done; while it is being submitted, [`SUBMITTING`] more.
    pending: AtomicU32,
    state: AtomicU8,
    pub(crate) place: Place,
    core: NonNull<Core>,
    links: Mutex<Links>,
    pub(crate) token: Option<CancellationToken>,
    pub(crate) id: TaskId,
    pub(crate) label: TaskLabel,
    /// Its effects, where it may conflict with others by them: it runs when the conflicts' scheduler says so.
    pub(crate) contention: Option<Box<[Effect]>>,
    /// Among tasks that contend.
    pub(crate) priority: i32,
}

/// Added to the count of a task that is being submitted: it cannot become ready before it is known how many it waits for.
const SUBMITTING: u32 = 1 << 31;

// SAFETY: `core` is the only field that is not Send and Sync by itself; `Core` is both.
unsafe impl Send for Head {}
// SAFETY: as above.
unsafe impl Sync for Head {}

impl Head {
    pub(crate) fn new(id: TaskId, label: TaskLabel, place: Place, core: &Arc<Core>) -> Self {
        Self {
            id,
            label,
            place,
            contention: None,
            priority: 0,
            state: AtomicU8::new(0),
            pending: AtomicU32::new(SUBMITTING),
            core: NonNull::from_ref(&**core),
            token: None,
            links: Mutex::default(),
        }
    }

    /// The runtime of a task that is not done.
    ///
    /// # Safety
    /// The task was submitted and has not been counted as completed.
    pub(crate) unsafe fn core<'c>(&self) -> &'c Core {
        // SAFETY: the runtime is not freed before all tasks are counted as completed and all its threads have ended:
        // see `Runtime`'s `drop` and `Core::keep`.
        unsafe { self.core.as_ref() }
    }

    /// Where the task's runtime is, or was.
    pub(crate) fn core_address(&self) -> *const Core {
        self.core.as_ptr()
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

    /// Whether it may conflict with others.
    pub(crate) fn contends(&self) -> bool {
        self.contention.is_some()
    }

    /// Whether it has been run, or skipped.
    pub(crate) fn is_done(&self) -> bool {
        // Acquire: what the task did happens before what is done by whoever skips a dependency on it.
        self.state.load(Acquire) & DONE != 0
    }

    /// Whether somebody runs it or has run it.
    pub(crate) fn is_claimed(&self) -> bool {
        self.state.load(Relaxed) & CLAIMED != 0
    }

    /// Whether there is nothing good where it was to write.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.state.load(Acquire) & POISONED != 0
    }

    /// Why there is nothing good where it was to write.
    pub(crate) fn poison(&self) -> Option<Arc<Failure>> {
        if self.state.load(Acquire) & POISONED == 0 {
            return None;
        }
        self.links.lock().poison.clone()
    }

    /// Notes that this task needs what failed. The one with the oldest root stays, and of those the oldest, whatever the
    /// order in which they happen; but what was cancelled makes way for what has failed, which matters to more of those
    /// that come after.
    #[cold]
    #[must_use = "what it takes the place of may be the program's own, and is to be dropped outside locks"]
    pub(crate) fn poison_with(&self, failure: &Arc<Failure>) -> Option<Arc<Failure>> {
        let mut links = self.links.lock();
        let age = |failure: &Arc<Failure>| {
            let root = failure.root();
            (matches!(root.cause, Cause::Cancelled), root.id, failure.id)
        };
        if links.poison.as_ref().is_some_and(|old| age(failure) >= age(old)) {
            return None;
        }
        self.state.fetch_or(POISONED, Release);
        links.poison.replace(Arc::clone(failure))
    }

    /// Its own failure takes the place of what it was poisoned with.
    #[cold]
    pub(crate) fn fail(&self, failure: Arc<Failure>) {
        self.links.lock().poison = Some(failure);
        self.state.fetch_or(POISONED, Release);
    }

    /// Makes `node`, which is being submitted, wait for this task; whether it has to. Where this task is done already,
    /// only its failure counts.
    pub(crate) fn precede(&self, node: &Node, needs: Needs) -> bool {
        if !self.is_done() {
            let mut links = self.links.lock();
            if !self.is_done() {
                links.successors.push(Successor::Task { node: node.clone(), needs });
                return true;
            }
        }
        if needs != Needs::End
            && let Some(failure) = self.poison()
            && needs.suffers(&failure)
        {
            // The task is not known to anybody else yet: what is replaced has another owner.
            let _replaced = node.poison_with(&failure);
        }
        false
    }

    /// Makes a latch wait for this task, unless it is done.
    pub(crate) fn hold(&self, latch: &Arc<Latch>) {
        let mut links = self.links.lock();
        if !self.is_done() {
            links.add_latch(latch);
        }
    }

    /// The same for a latch that waits for all: it need not wait for this task where it waits for one that follows.
    pub(crate) fn hold_last(&self, latch: &Arc<Latch>) {
        let mut links = self.links.lock();
        if self.is_last(&links) {
            links.add_latch(latch);
        }
    }

    /// Makes a task that comes after all others wait for this one, where none follows that it waits for anyway; whether it
    /// has to.
    pub(crate) fn precede_last(&self, node: &Node) -> bool {
        let mut links = self.links.lock();
        let last = self.is_last(&links);
        if last {
            links.successors.push(Successor::Task { node: node.clone(), needs: Needs::End });
        }
        last
    }

    /// Whether it is not done, and no other task waits for it.
    fn is_last(&self, links: &Links) -> bool {
        !self.is_done() && !links.successors.iter().any(|s| matches!(s, Successor::Task { .. }))
    }

    /// Marks the task as done, and tells `f` who waits for it, and why there is nothing good where it was to write.
    ///
    /// The list is emptied where it is, not taken out: its memory, where there are many, goes back with the node, on the
    /// thread that allocated it. `f` is called under the lock, which nobody waits for for long: who comes now sees that the
    /// task is done.
    pub(crate) fn done(&self, mut f: impl FnMut(Successor, Option<&Arc<Failure>>)) {
        let Links { successors, poison } = &mut *self.links.lock();
        // Release: pairs with the Acquire in `is_done`. Under the lock: nobody is added after this.
        self.state.fetch_or(DONE, Release);
        successors.drain(..).for_each(|successor| f(successor, poison.as_ref()));
    }

    /// The submission is complete, and the task waits for so many others, some of which may be done by now; whether it is
    /// ready.
    pub(crate) fn waits_for(&self, others: u32) -> bool {
        // Modulo 2^32 the count has fallen by what is done already. AcqRel: as in `release`.
        let change = others.wrapping_sub(SUBMITTING);
        self.pending.fetch_add(change, AcqRel).wrapping_add(change) == 0
    }

    /// One thing less to wait for; `true` for whoever was the last.
    pub(crate) fn release(&self) -> bool {
        // AcqRel: what all predecessors did happens before the task runs.
        self.pending.fetch_sub(1, AcqRel) == 1
    }

    /// Whether everything that it depends on is done.
    pub(crate) fn is_ready(&self) -> bool {
        self.pending.load(Acquire) == 0
    }

    /// Takes the task, if nobody else has.
    pub(crate) fn claim(&self) -> bool {
        self.state.fetch_or(CLAIMED, AcqRel) & CLAIMED == 0
    }

    /// Gives back a claimed task that has not begun.
    pub(crate) fn unclaim(&self) {
        self.state.fetch_and(!CLAIMED, Release);
    }

    /// Asks that it is not run; `false` where it has begun or is done.
    pub(crate) fn cancel(&self) -> bool {
        // Never on a task that somebody has claimed: between that and its beginning, `false` must hold, too.
        let unclaimed = |state| (state & CLAIMED == 0).then_some(state | CANCELLED);
        self.state.fetch_update(AcqRel, Acquire, unclaimed).is_ok()
    }

    /// Whether somebody asked that it is not run.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.load(Relaxed) & CANCELLED != 0 || self.token.as_ref().is_some_and(|t| t.is_cancelled())
    }
}

/// Counts tasks down to an event.
#[derive(Debug)]
pub(crate) struct Latch {
    left: AtomicUsize,
    /// The last task that it may wait for.
    pub(crate) last: TaskId,
    pub(crate) event: Event,
}

impl Latch {
    /// Holds one count, to be [released](Self::release) when everything that it waits for has been told.
    pub(crate) fn new(last: TaskId) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(1), last, event: Event::default() })
    }

    /// A latch for one task.
    pub(crate) fn of(node: &Node) -> Arc<Self> {
        let latch = Self::new(node.id);
        node.hold(&latch);
        latch.release();
        latch
    }

    pub(crate) fn release(&self) {
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.event.set();
        }
    }
}
