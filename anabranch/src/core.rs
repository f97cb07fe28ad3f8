//! What the handles of one runtime share: the graph, the tasks in flight, the threads, the failures.

use crate::{
    declare::Declaration,
    error::{Error, Failure, Failures, TaskLabel},
    lanes::Lanes,
    memory::Allocation,
    node::{Inside, Latch, Node, Place, Work},
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
    memory: HashMap<BufferId, Memory>,
}

/// The tasks that are not known to be done, and some that are: all from the oldest that was not done when it was last
/// looked at.
struct Live {
    nodes: VecDeque<Arc<Node>>,
    /// The id of the first of them.
    first: u64,
}

impl Default for Live {
    fn default() -> Self {
        Self { nodes: VecDeque::new(), first: TaskId::EPOCH.0 + 1 }
    }
}

impl Live {
    /// The task, unless it is forgotten, and so done.
    fn get(&self, task: TaskId) -> Option<&Arc<Node>> {
        self.nodes.get(usize::try_from(task.0.checked_sub(self.first)?).ok()?)
    }

    fn is_done(&self, task: TaskId) -> bool {
        self.get(task).is_none_or(|node| node.is_done())
    }

    fn push(&mut self, node: Arc<Node>) {
        debug_assert_eq!(self.first + self.nodes.len() as u64, node.id.0);
        self.nodes.push_back(node);
    }

    /// Forgets the oldest tasks, as far as they are done.
    fn forget_done(&mut self, mut failed: impl FnMut(TaskId, Arc<Failure>)) {
        while let Some(oldest) = self.nodes.front().filter(|n| n.is_done()) {
            oldest.poison().into_iter().for_each(|failure| failed(oldest.id, failure));
            self.nodes.pop_front();
            self.first += 1;
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
    fn add(&mut self, failure: &Arc<Failure>) {
        self.failures.insert(failure.id, Arc::clone(failure));
        if self.failures.len() > FAILURES_KEPT {
            self.failures.pop_last();
            self.omitted += 1;
        }
    }
}

impl State {
    /// Forgets what no later task can depend on.
    fn forget_done(&mut self) {
        self.live.forget_done(|task, failure| {
            self.failed.insert(task, failure);
        });
        if self.failed.len() >= FAILED_BOOKS {
            let graph = &self.graph;
            let mut wanted = HashSet::new();
            graph.last_writers(|task| {
                wanted.insert(task);
            });
            self.failed.retain(|task, _| wanted.contains(task));
        }
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
        work: impl FnOnce(&mut dyn Iterator<Item = Arc<Allocation>>) -> Work,
    ) -> Result<Arc<Node>, Error> {
        self.hold_back();
        let node = {
            let mut state = self.state.lock();
            state.forget_done();
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
            let work = match refused {
                None => work(&mut memory.into_iter()),
                Some((buffer, bytes)) => {
                    // The graph has the task: it stays, as one that fails.
                    let error = Error::OutOfMemory { buffer: declaration.label_of(buffer), bytes };
                    Work::Host(Box::new(move || Err(Arc::new(error))))
                }
            };
            let node = Arc::new(Node::new(submitted.id, label, place, Arc::clone(self), work));
            for dependency in &submitted.dependencies {
                state.link(&node, dependency);
            }
            state.live.push(Arc::clone(&node));
            self.in_flight.fetch_add(1, SeqCst);
            node
        };
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
            if !self.help() {
                self.sleep_at_gate();
            }
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

    /// Runs a host task that no lane has begun, on a thread that waits.
    pub(crate) fn help(&self) -> bool {
        let Some(node) = self.lanes.steal() else { return false };
        if node.claim() {
            node.run_on(crate::node::Runner::Lane);
        }
        true
    }

    /// A latch for all tasks submitted so far.
    pub(crate) fn latch(&self) -> Arc<Latch> {
        let latch = Latch::new();
        {
            let state = self.state.lock();
            state.live.nodes.iter().for_each(|node| node.hold(&latch));
        }
        latch.release();
        latch
    }

    /// Notes that a task has failed, to be reported at the next synchronisation.
    pub(crate) fn failed(&self, failure: &Arc<Failure>) {
        self.failures.lock().add(failure);
        self.any_failure.store(true, Release);
    }

    /// Notes that a task was skipped, and because of which failure.
    pub(crate) fn skipped(&self, cause: &Arc<Failure>) {
        let mut failures = self.failures.lock();
        failures.add(cause);
        failures.skipped += 1;
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
