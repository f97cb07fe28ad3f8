//! What the handles of one runtime share: the graph, the tasks in flight, the threads, the failures.

use crate::{
    declare::Declaration,
    error::{Error, Failure, Failures, TaskLabel},
    lanes::Lanes,
    memory::Allocation,
    node::{Inside, Latch, Node, Place, Runner, Work},
    runtime::Settings,
};
use anabranch_graph::{BufferId, Dependency, Kind, ObjectId, Origin, TaskGraph, TaskId};
use anabranch_grid::Extent;
use anabranch_par::Pool;
use parking_lot::{Condvar, Mutex};
use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
};

/// A report has no more failures than this: a program that never synchronises must not fill the memory with them.
const FAILURES_KEPT: usize = 64;

/// After so many failed tasks in the books, those whose results are gone are struck off.
const FAILED_BOOKS: usize = 1024;

pub struct Core {
    pool: Pool,
    lanes: Lanes,
    threads: usize,
    lead: usize,
    state: Mutex<State>,
    /// Tasks that were submitted and are not done.
    in_flight: AtomicUsize,
    /// Submitters that wait for `in_flight` to fall.
    held: AtomicUsize,
    gate: Mutex<()>,
    gate_opens: Condvar,
    /// Whether `failures` is worth a look.
    any_failure: AtomicBool,
    failures: Mutex<Unreported>,
}

/// What one submission after the other works on.
#[derive(Default)]
struct State {
    graph: TaskGraph,
    live: Live,
    /// Failures of tasks that are no longer live, as long as later tasks may need their results.
    failed: HashMap<TaskId, Arc<Failure>>,
    /// How many of these there may be before it is looked which are still wanted.
    failed_bound: usize,
    memory: HashMap<BufferId, Memory>,
}

/// The tasks that are not known to be done, and some that are; by their ids, ascending.
#[derive(Default)]
struct Live(VecDeque<(TaskId, Arc<Node>)>);

impl Live {
    /// The task, unless it is forgotten, and so done.
    fn get(&self, task: TaskId) -> Option<&Arc<Node>> {
        let at = self.0.binary_search_by_key(&task, |(id, _)| *id).ok()?;
        Some(&self.0[at].1)
    }

    fn is_done(&self, task: TaskId) -> bool {
        self.get(task).is_none_or(|node| node.is_done())
    }

    fn push(&mut self, node: Arc<Node>) {
        self.0.push_back((node.id, node));
    }

    /// Forgets the oldest tasks, as far as they are done; and all that are done where one that is not holds up more than
    /// twice as many as there are in flight.
    fn forget_done(&mut self, in_flight: usize, mut failed: impl FnMut(TaskId, Arc<Failure>)) {
        let mut forget = |id: TaskId, node: &Node| {
            let done = node.is_done();
            if done && let Some(failure) = node.poison() {
                failed(id, failure);
            }
            done
        };
        while self.0.front().is_some_and(|(id, node)| forget(*id, node)) {
            self.0.pop_front();
        }
        if self.0.len() > 2 * in_flight + 64 {
            self.0.retain(|(id, node)| !forget(*id, node));
        }
    }
}

/// The allocations of one buffer, by version.
struct Memory {
    versions: Vec<Option<Arc<Allocation>>>,
    bytes: u128,
    allocate: fn(Extent<3>) -> Option<Allocation>,
    extent: Extent<3>,
}

/// Failures that no synchronisation has reported yet, by task.
#[derive(Default)]
struct Unreported {
    failures: BTreeMap<TaskId, Arc<Failure>>,
    /// Newer failures that were not kept.
    omitted: u64,
    skipped: u64,
}

impl Unreported {
    /// Keeps the failure, if it is among the oldest; one that must make way comes back.
    fn keep(&mut self, failure: &Arc<Failure>) -> Option<Arc<Failure>> {
        self.failures.insert(failure.id, Arc::clone(failure));
        if self.failures.len() > FAILURES_KEPT {
            self.failures.pop_last().map(|(_, last)| last)
        } else {
            None
        }
    }
}

impl State {
    /// Forgets what no later task can depend on. What comes out is to be dropped outside the lock: errors are the
    /// program's own, and so are their destructors.
    fn forget_done(&mut self, in_flight: usize) -> Vec<Arc<Failure>> {
        self.live.forget_done(in_flight, |task, failure| {
            self.failed.insert(task, failure);
        });
        if self.failed.len() < self.failed_bound.max(FAILED_BOOKS) {
            return Vec::new();
        }
        let mut wanted = HashSet::new();
        self.graph.last_writers(|task| {
            wanted.insert(task);
        });
        let gone =
            self.failed.extract_if(|task, _| !wanted.contains(task)).map(|(_, failure)| failure).collect();
        self.failed_bound = 2 * self.failed.len();
        gone
    }

    /// Makes `node` wait for the task that it depends on.
    fn link(&self, node: &Arc<Node>, dependency: &Dependency) {
        let needs = match dependency.kind {
            Kind::True => true,
            // Whether an object is good depends on all tasks that touched it before.
            Kind::Serial => dependency.origin != Origin::Graph,
            Kind::Anti | Kind::Output => false,
        };
        match self.live.get(dependency.on) {
            Some(before) => before.precede(node, needs),
            None if needs => self.failed.get(&dependency.on).into_iter().for_each(|f| node.poison_with(f)),
            None => {}
        }
    }

    /// The memory of a buffer's version.
    fn allocation(&mut self, buffer: BufferId, version: u32) -> Result<Arc<Allocation>, u128> {
        let memory = self.memory.get_mut(&buffer).expect("a buffer of this runtime");
        let version = version as usize;
        if memory.versions.len() <= version {
            memory.versions.resize(version + 1, None);
        }
        if let Some(allocation) = &memory.versions[version] {
            return Ok(Arc::clone(allocation));
        }
        let allocation = Arc::new((memory.allocate)(memory.extent).ok_or(memory.bytes)?);
        memory.versions[version] = Some(Arc::clone(&allocation));
        Ok(allocation)
    }
}

impl Core {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let pool = Pool::builder()
            .workers(settings.threads)
            .name(settings.name.clone())
            .pin(settings.pin)
            .build()?;
        let lanes = Lanes::new(settings.host_lanes, settings.name.clone())
            .map_err(|source| anabranch_par::PoolError::Spawn { started: settings.threads, source })?;
        Ok(Self {
            pool,
            lanes,
            threads: settings.threads,
            lead: settings.lead,
            state: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            gate: Mutex::new(()),
            gate_opens: Condvar::new(),
            any_failure: AtomicBool::new(false),
            failures: Mutex::default(),
        })
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn create_buffer(
        &self,
        extent: Extent<3>,
        initial: Option<Allocation>,
        element: usize,
        allocate: fn(Extent<3>) -> Option<Allocation>,
    ) -> BufferId {
        let mut state = self.state.lock();
        let id = state.graph.create_buffer(extent, initial.is_some());
        let bytes = extent.0.iter().map(|&n| n as u128).product::<u128>() * element as u128;
        let versions = initial.into_iter().map(|memory| Some(Arc::new(memory))).collect();
        state.memory.insert(id, Memory { versions, bytes, allocate, extent });
        id
    }

    pub(crate) fn set_versions(&self, id: BufferId, versions: usize) {
        self.state.lock().graph.set_versions(id, versions);
    }

    pub(crate) fn remove_buffer(&self, id: BufferId) {
        let memory = {
            let mut state = self.state.lock();
            state.graph.remove_buffer(id);
            state.memory.remove(&id)
        };
        // Freed outside the lock: it may take a while.
        drop(memory);
    }

    pub(crate) fn create_object(&self) -> ObjectId {
        self.state.lock().graph.create_object()
    }

    pub(crate) fn remove_object(&self, id: ObjectId) {
        self.state.lock().graph.remove_object(id);
    }

    /// Submits a task: derives its dependencies, attaches memory by `attach`, links it, and lets it go.
    pub(crate) fn submit<const K: usize>(
        self: &Arc<Self>,
        declaration: &Declaration<'_, K>,
        label: TaskLabel,
        place: Place,
        work: impl FnOnce(Result<&mut dyn Iterator<Item = Arc<Allocation>>, Error>) -> Work,
    ) -> Result<Arc<Node>, Error> {
        self.hold_back();
        let forgotten;
        let node = {
            let mut state = self.state.lock();
            forgotten = state.forget_done(self.in_flight.load(Relaxed));
            let state = &mut *state;
            let live = &state.live;
            let submitted = state
                .graph
                .submit(&declaration.accesses, &declaration.effects, &|task| live.is_done(task))
                .map_err(|error| declaration.explain(error))?;
            let mut memory = Vec::with_capacity(declaration.accesses.len());
            let mut refused = None;
            for (access, &version) in declaration.accesses.iter().zip(&submitted.versions) {
                match state.allocation(access.buffer, version) {
                    Ok(allocation) => memory.push(allocation),
                    Err(bytes) => refused = refused.or(Some((access.buffer, bytes))),
                }
            }
            let mut memory = memory.into_iter();
            let work = work(match refused {
                None => Ok(&mut memory),
                // The graph has the task: it stays, as one that fails.
                Some((buffer, bytes)) => {
                    Err(Error::OutOfMemory { buffer: declaration.label_of(buffer), bytes })
                }
            });
            let node = Arc::new(Node::new(submitted.id, label, place, Arc::clone(self), work));
            for dependency in &submitted.dependencies {
                state.link(&node, dependency);
            }
            state.live.push(Arc::clone(&node));
            self.in_flight.fetch_add(1, SeqCst);
            node
        };
        drop(forgotten);
        Arc::clone(&node).submitted(self);
        Ok(node)
    }

    /// Waits while too many tasks are in flight, so that an endless stream of tasks needs bounded memory. A task that
    /// submits others is never held back: it may be one of those that are waited for.
    fn hold_back(&self) {
        if self.in_flight.load(Relaxed) < self.lead || Inside::is(self) {
            return;
        }
        while self.in_flight.load(Relaxed) >= self.lead {
            self.sleep_at_gate();
        }
    }

    #[cold]
    fn sleep_at_gate(&self) {
        self.held.fetch_add(1, SeqCst);
        let mut gate = self.gate.lock();
        // SeqCst on both counters: either `completed` sees that we are held, or we see that it has counted down.
        while self.in_flight.load(SeqCst) > self.low_water() {
            self.gate_opens.wait(&mut gate);
        }
        drop(gate);
        self.held.fetch_sub(1, SeqCst);
    }

    /// Held submitters are let go when so few tasks are left: not for every one, which would be a wake-up each.
    fn low_water(&self) -> usize {
        self.lead - 1 - self.lead / 4
    }

    /// A task is done.
    pub(crate) fn completed(&self) {
        let left = self.in_flight.fetch_sub(1, SeqCst) - 1;
        if left <= self.low_water() && self.held.load(SeqCst) > 0 {
            drop(self.gate.lock());
            self.gate_opens.notify_all();
        }
    }

    /// Whether no task is in flight.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.load(Acquire) == 0
    }

    /// Waits for a latch, and meanwhile runs host tasks that it waits for and that no lane has begun.
    pub(crate) fn settle(&self, latch: &Latch) {
        latch.event.wait(|| {
            let Some(node) = self.lanes.steal(latch.last) else { return false };
            if node.claim() {
                node.run_on(Runner::Program);
            }
            true
        });
    }

    /// A latch for all tasks submitted so far.
    pub(crate) fn latch(&self) -> Arc<Latch> {
        let state = self.state.lock();
        let latch = Latch::new(TaskId(state.graph.len()));
        state.live.0.iter().for_each(|(_, node)| node.hold(&latch));
        drop(state);
        latch.release();
        latch
    }

    /// Notes that a task has failed, to be reported at the next synchronisation.
    pub(crate) fn failed(&self, failure: &Arc<Failure>) {
        let mut failures = self.failures.lock();
        let omitted = failures.keep(failure);
        failures.omitted += u64::from(omitted.is_some());
        drop(failures);
        self.any_failure.store(true, Release);
    }

    /// Notes that a task was skipped, and because of which failure.
    pub(crate) fn skipped(&self, cause: &Arc<Failure>) {
        let mut failures = self.failures.lock();
        let _omitted = failures.keep(cause);
        failures.skipped += 1;
        drop(failures);
        self.any_failure.store(true, Release);
    }

    /// The failures since the last report, if there are any.
    #[inline]
    pub(crate) fn report(&self) -> Result<(), Error> {
        if self.any_failure.load(Acquire) { self.report_failures() } else { Ok(()) }
    }

    #[cold]
    fn report_failures(&self) -> Result<(), Error> {
        // First the flag: a failure that comes in between raises it again.
        self.any_failure.store(false, Release);
        let Unreported { mut failures, omitted, skipped } = std::mem::take(&mut *self.failures.lock());
        match failures.pop_first() {
            Some((_, first)) => {
                let others = failures.into_values().collect();
                Err(Failures { first, others, omitted, skipped }.into())
            }
            None => Ok(()),
        }
    }

    /// An error where the calling thread runs a task of this runtime: waiting there would be waiting for itself.
    pub(crate) fn check_outside(&self, call: &'static str) -> Result<(), Error> {
        if Inside::is(self) { Err(Error::WaitInsideTask { call }) } else { Ok(()) }
    }

    /// Ends the threads; nothing may be in flight.
    pub(crate) fn stop(&self) {
        self.lanes.stop();
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("threads", &self.threads)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}
