//! A task on its way: waiting for others, running, done.

use crate::{
    core::Core,
    error::{Cause, Failure, TaskLabel},
    sync::Event,
};
use anabranch_graph::TaskId;
use anabranch_par::{Job, Schedule, keep_denormals};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{
    cell::Cell,
    error::Error,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
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

/// Which kind of thread runs a task: it decides what that thread may go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// A compute worker.
    Worker,
    /// A host lane.
    Lane,
    /// A thread of the program, which waits for this task or has just submitted it: it must not be kept by others.
    Program,
}

impl Runner {
    /// Whether a task for `place` may be run on this thread.
    fn takes(self, place: Place) -> bool {
        match place {
            Place::Inline => true,
            Place::Compute => self == Self::Worker,
            Place::Host => self == Self::Lane,
        }
    }
}

type HostError = Arc<dyn Error + Send + Sync>;

/// The copy of a fence.
type Copy = Box<dyn FnOnce(Result<(), &Arc<Failure>>) + Send>;

/// After so many tasks that each made the next one ready, a thread looks at its queue again: a chain without end must
/// not keep others waiting.
const FOLLOWED: usize = 64;

/// What a task does.
pub(crate) enum Work {
    /// A kernel, chunk by chunk, in parallel.
    Kernel(Box<dyn Kernel>),
    /// A host function.
    Host(Box<dyn FnOnce() -> Result<(), HostError> + Send>),
    /// A fence: told whether what it is to copy is good.
    Fence(Copy),
}

impl Work {
    /// Of a task that cannot do what it was to do.
    pub(crate) fn failing(error: crate::Error) -> Self {
        Self::Host(Box::new(move || Err(Arc::new(error))))
    }
}

/// The chunks of a kernel.
pub(crate) trait Kernel: Send + Sync {
    /// How many there are.
    fn chunks(&self) -> usize;
    /// Calls the kernel for one of them.
    fn call(&self, chunk: usize);
    /// A chunk as error messages call it.
    fn describe(&self, chunk: usize) -> String;
    /// Whether denormal numbers are zero while it runs.
    fn flush_denormals(&self) -> bool;
}

/// Who is told when a task is done.
pub(crate) enum Successor {
    /// A task; `needs`: it needs what this one gives, and is skipped if that fails.
    Task { node: Arc<Node>, needs: bool },
    /// A synchronisation.
    Latch(Arc<Latch>),
}

#[derive(Default)]
struct Links {
    done: bool,
    successors: SmallVec<[Successor; 2]>,
}

pub(crate) struct Node {
    pub(crate) id: TaskId,
    pub(crate) label: TaskLabel,
    place: Place,
    /// Dependencies that are not done, and one for the submission itself.
    pending: AtomicUsize,
    /// Somebody runs it or has run it.
    claimed: AtomicBool,
    done: AtomicBool,
    /// Taken when the task is run. Until then the task keeps the runtime alive, and no longer: the runtime's books keep
    /// tasks that are done.
    body: Mutex<Option<(Work, Arc<Core>)>>,
    links: Mutex<Links>,
    /// Why what it was to write is not there: its own failure, or that of a task that it needs.
    poison: Mutex<Option<Arc<Failure>>>,
}

impl Node {
    pub(crate) fn new(id: TaskId, label: TaskLabel, place: Place, core: Arc<Core>, work: Work) -> Self {
        Self {
            id,
            label,
            place,
            pending: AtomicUsize::new(1),
            claimed: AtomicBool::new(false),
            done: AtomicBool::new(false),
            body: Mutex::new(Some((work, core))),
            links: Mutex::default(),
            poison: Mutex::new(None),
        }
    }

    /// Whether it has been run, or skipped.
    pub(crate) fn is_done(&self) -> bool {
        // Acquire: what the task did happens before what is done by whoever skips a dependency on it.
        self.done.load(Acquire)
    }

    /// Why there is nothing good where it was to write.
    pub(crate) fn poison(&self) -> Option<Arc<Failure>> {
        self.poison.lock().clone()
    }

    /// Notes that this task needs what failed. The oldest failure stays, whatever the order in which they happen.
    pub(crate) fn poison_with(&self, failure: &Arc<Failure>) {
        let mut poison = self.poison.lock();
        if poison.as_ref().is_none_or(|old| failure.id < old.id) {
            *poison = Some(Arc::clone(failure));
        }
    }

    /// Makes `node` wait for this task; where it is done already, only its failure counts.
    pub(crate) fn precede(&self, node: &Arc<Self>, needs: bool) {
        if !self.is_done() {
            let mut links = self.links.lock();
            if !links.done {
                // Relaxed: the submission holds one count, so it cannot reach zero here.
                node.pending.fetch_add(1, Relaxed);
                links.successors.push(Successor::Task { node: Arc::clone(node), needs });
                return;
            }
        }
        if needs && let Some(failure) = self.poison() {
            node.poison_with(&failure);
        }
    }

    /// Makes a latch wait for this task, unless it is done.
    pub(crate) fn hold(&self, latch: &Arc<Latch>) {
        let mut links = self.links.lock();
        if !links.done {
            latch.left.fetch_add(1, Relaxed);
            links.successors.push(Successor::Latch(Arc::clone(latch)));
        }
    }

    /// One thing less to wait for; `true` for whoever was the last.
    pub(crate) fn release(&self) -> bool {
        // AcqRel: what all predecessors did happens before the task runs.
        self.pending.fetch_sub(1, AcqRel) == 1
    }

    /// Whether everything that it waits for is done.
    pub(crate) fn is_ready(&self) -> bool {
        self.pending.load(Acquire) == 0
    }

    /// Takes the task, if nobody else has.
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.load(Relaxed) && !self.claimed.swap(true, AcqRel)
    }

    /// Runs the claimed task here, then whatever it made ready that belongs on this thread.
    pub(crate) fn run_on(self: Arc<Self>, runner: Runner) {
        let mut next = Some(self);
        let mut followed = 0;
        while let Some(node) = next {
            let (work, core) = node.body.lock().take().expect("a task is run once");
            let outcome = node.execute(work, &core);
            next = node.retire(outcome, &core, runner);
            followed += 1;
            if followed == FOLLOWED
                && let Some(node) = next.take()
            {
                node.requeue(&core);
            }
        }
    }

    /// Does the work. The closure, with everything that it holds, is gone when this returns: its destructors, too, are the
    /// program's code, and run as part of the task.
    fn execute(&self, work: Work, core: &Arc<Core>) -> Result<(), Arc<Failure>> {
        let _inside = Inside::enter(core);
        // A thread of the program may be in another mode; results must not depend on who runs a task.
        let done = keep_denormals(|| catch_unwind(AssertUnwindSafe(|| self.work(work, core))));
        done.unwrap_or_else(|payload| Err(Cause::from_panic(payload, None)))
            .map_err(|cause| Arc::new(Failure { id: self.id, task: self.label.clone(), cause }))
    }

    fn work(&self, work: Work, core: &Arc<Core>) -> Result<(), Cause> {
        match (work, self.poison()) {
            (Work::Fence(copy), poison) => copy(poison.as_ref().map_or(Ok(()), Err)),
            (skipped, Some(cause)) => {
                core.skipped(&cause);
                drop(skipped);
            }
            (Work::Kernel(kernel), None) => Self::run_kernel(kernel, core)?,
            (Work::Host(function), None) => function().map_err(Cause::Error)?,
        }
        Ok(())
    }

    fn run_kernel(kernel: Box<dyn Kernel>, core: &Arc<Core>) -> Result<(), Cause> {
        let region = core
            .pool()
            .region(kernel.chunks())
            .schedule(Schedule::Static)
            .participants(core.threads())
            .flush_denormals(kernel.flush_denormals());
        let result = region.try_run(|chunk| {
            let _inside = Inside::enter(core);
            kernel.call(chunk);
        });
        result.map_err(|panic| {
            let chunk = kernel.describe(panic.index());
            Cause::from_panic(panic.into_payload(), Some(chunk))
        })
    }

    /// The task is done: tells everyone who waits for it. What became ready is queued, but for one task that may follow
    /// here and now.
    fn retire(
        &self,
        outcome: Result<(), Arc<Failure>>,
        core: &Arc<Core>,
        runner: Runner,
    ) -> Option<Arc<Self>> {
        if let Err(failure) = outcome {
            core.failed(&failure);
            *self.poison.lock() = Some(failure);
        }
        let successors = {
            let mut links = self.links.lock();
            links.done = true;
            // Release: pairs with the Acquire in `is_done`.
            self.done.store(true, Release);
            std::mem::take(&mut links.successors)
        };
        let poison = if successors.is_empty() { None } else { self.poison() };
        let mut next = None;
        let mut latches = SmallVec::<[Arc<Latch>; 2]>::new();
        for successor in successors {
            match successor {
                Successor::Latch(latch) => latches.push(latch),
                Successor::Task { node, needs } => {
                    if let (true, Some(failure)) = (needs, &poison) {
                        node.poison_with(failure);
                    }
                    if node.release() {
                        next = node.follow(next, core, runner);
                    }
                }
            }
        }
        core.completed();
        // Last: whoever waits for the latch may find everything else settled.
        latches.iter().for_each(|latch| latch.release());
        next
    }
}

impl Node {
    /// This task has become ready on a thread that may go on with one task, `next` so far. The other one is queued.
    fn follow(self: Arc<Self>, next: Option<Arc<Self>>, core: &Core, runner: Runner) -> Option<Arc<Self>> {
        let preferred = next.is_none() || self.place == Place::Inline;
        if !preferred || !runner.takes(self.place) {
            self.enqueue(core);
            return next;
        }
        if !self.claim() {
            // A waiting thread was faster.
            return next;
        }
        if let Some(other) = next {
            other.requeue(core);
        }
        Some(self)
    }

    /// Gives a claimed task that has not begun to whoever comes.
    fn requeue(self: Arc<Self>, core: &Core) {
        self.claimed.store(false, Release);
        self.enqueue(core);
    }

    /// Queues the ready task where it is to be run.
    fn enqueue(self: Arc<Self>, core: &Core) {
        match self.place {
            Place::Host => core.lanes().push(self),
            Place::Compute | Place::Inline => core.pool().submit(self),
        }
    }

    /// The submission is complete: runs or queues the task if it is ready.
    pub(crate) fn submitted(self: Arc<Self>, core: &Core) {
        if self.release()
            && let Some(node) = self.follow(None, core, Runner::Program)
        {
            node.run_on(Runner::Program);
        }
    }
}

impl Job for Node {
    fn run(self: Arc<Self>) {
        if self.claim() {
            self.run_on(Runner::Worker);
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.label)
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

    pub(crate) fn release(&self) {
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.event.set();
        }
    }
}

thread_local! {
    /// The runtime whose task this thread is running.
    static INSIDE: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Marks this thread as running a task of a runtime.
pub(crate) struct Inside {
    before: *const Core,
}

impl Inside {
    fn enter(core: &Arc<Core>) -> Self {
        Self { before: INSIDE.replace(Arc::as_ptr(core)) }
    }

    /// Whether this thread is running a task of `core`.
    pub(crate) fn is(core: &Core) -> bool {
        ptr::eq(INSIDE.get(), core)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

/// A fence's task, reachable for whoever waits for it: a waiting thread runs it itself.
#[derive(Debug, Default)]
pub(crate) struct Handle(OnceLock<Arc<Node>>);

impl Handle {
    pub(crate) fn set(&self, node: Arc<Node>) {
        self.0.set(node).expect("a fence has one task");
    }

    /// Runs the task here if it is ready and nobody has begun.
    pub(crate) fn help(&self) -> bool {
        match self.0.get() {
            Some(node) if node.is_ready() && node.claim() => {
                Arc::clone(node).run_on(Runner::Program);
                true
            }
            _ => false,
        }
    }
}
