//! What the handles of one runtime share: the graph, the tasks in flight, the threads, the failures.

use crate::{
    access::AccessList,
    books::Books,
    conflicts::Conflicts,
    declare::Declaration,
    error::{Cause, Error, Failure, TaskLabel},
    failures::Unreported,
    inside::Inside,
    lead::{Lead, Padded},
    node::{Body, Head, Latch, Needs, Node, Place, Task},
    record::Recorder,
    run::Runner,
    runtime::Settings,
    seeded::Seeded,
    sync::Event,
    watch::Watch,
};
use anabranch_graph::{BufferId, ObjectId, Submitted, TaskGraph, TaskId};
use anabranch_grid::Extent;
use anabranch_par::{CancellationToken, Lanes, PoolError, ThreadPool};
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

/// How often a thread that waits looks whether another one has left something to run, where only waiting threads run anything.
const SEEDED_WATCH: Duration = Duration::from_millis(1);

pub struct Core {
    this: Weak<Self>,
    lanes: Lanes<dyn Task>,
    pool: ThreadPool,
    threads: usize,
    lead: Lead,
    /// Alone on its lines: runners read what is around it.
    state: Padded<Mutex<State>>,
    conflicts: Conflicts,
    failures: Unreported,
    seeded: Option<Seeded>,
    recorded: bool,
    nodes: u16,
    watch: Watch,
    /// Of a runtime that was dropped inside one of its own tasks: kept until the last task is done.
    kept: Mutex<Option<Arc<Core>>>,
    is_kept: AtomicBool,
}

/// What one submission after the other works on.
#[derive(Default)]
struct State {
    graph: TaskGraph,
    /// The graph's last answer, whose memory serves for the next.
    submitted: Submitted,
    /// Buffers and host objects so far.
    names: u64,
    books: Books,
    token: Option<CancellationToken>,
    /// The last barrier, until it is done: everything submitted later comes after it.
    barrier: Option<Node>,
    recorder: Option<Box<Recorder>>,
}

impl Core {
    pub(crate) fn new(threads: usize, settings: &Settings) -> Result<Arc<Self>, Error> {
        let workers = if settings.seed.is_some() { 0 } else { threads };
        let mut pool = ThreadPool::builder().workers(workers).name(settings.name.clone());
        if let Some(pin) = settings.pin {
            pool = pool.pin(pin);
        }
        let pool = pool.build()?;
        // A thread of the program submits or waits meanwhile, and helps while it waits.
        let eager = (threads - 1).max(1);
        let lanes = Lanes::new(eager, settings.host_lanes, format!("{}host-", settings.name))
            .map_err(|source| PoolError::Spawn { started: threads, source })?;
        let wanted = &settings.record;
        let recorder = wanted.anything().then(|| Box::new(Recorder::new(wanted.clone())));
        Ok(Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            lanes,
            pool,
            threads,
            lead: Lead::new(settings.lead),
            state: Padded(Mutex::new(State { recorder, ..State::default() })),
            conflicts: Conflicts::default(),
            failures: Unreported::default(),
            seeded: settings.seed.map(Seeded::new),
            recorded: wanted.anything(),
            nodes: wanted.nodes.unwrap_or(1),
            watch: Watch::new(settings.patience),
            kept: Mutex::new(None),
            is_kept: AtomicBool::new(false),
        }))
    }

    /// A share of the runtime: as long as there is one, its memory stays.
    pub(crate) fn share(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    pub(crate) fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn conflicts(&self) -> &Conflicts {
        &self.conflicts
    }

    /// A new buffer's id, and its number for error messages. `bytes`: of an element.
    pub(crate) fn create_buffer(
        &self,
        extent: Extent<3>,
        initialised: bool,
        bytes: usize,
    ) -> (BufferId, u64) {
        let mut state = self.state.0.lock();
        let id = state.graph.create_buffer(extent, initialised);
        state.recorder.iter_mut().for_each(|r| r.create_buffer(extent, initialised, id, bytes));
        state.names += 1;
        (id, state.names)
    }

    pub(crate) fn set_versions(&self, id: BufferId, versions: usize) {
        let mut state = self.state.0.lock();
        state.graph.set_versions(id, versions);
        state.recorder.iter_mut().for_each(|r| r.set_versions(id, versions));
    }

    pub(crate) fn discard(&self, id: BufferId) {
        let State { graph, books, recorder, .. } = &mut *self.state.0.lock();
        graph.discard(id, &|task| books.is_forgettable(task));
        recorder.iter_mut().for_each(|r| r.discard(id));
    }

    pub(crate) fn remove_buffer(&self, id: BufferId) {
        let mut state = self.state.0.lock();
        state.graph.remove_buffer(id);
        state.recorder.iter_mut().for_each(|r| r.remove_buffer(id));
    }

    /// A new host object's id, and its number for error messages.
    pub(crate) fn create_object(&self) -> (ObjectId, u64) {
        let mut state = self.state.0.lock();
        let id = state.graph.create_object();
        state.recorder.iter_mut().for_each(|r| r.create_object(id));
        state.names += 1;
        (id, state.names)
    }

    pub(crate) fn remove_object(&self, id: ObjectId) {
        let mut state = self.state.0.lock();
        state.graph.remove_object(id);
        state.recorder.iter_mut().for_each(|r| r.remove_object(id));
    }

    /// How many nodes there are: one, or as many as a dry run pretends.
    pub(crate) fn nodes(&self) -> u16 {
        self.nodes
    }

    /// Whether the program's graphs are recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// What is recorded, if anything is.
    pub(crate) fn recorder<R>(&self, f: impl FnOnce(&Recorder) -> R) -> Option<R> {
        self.state.0.lock().recorder.as_deref().map(f)
    }

    pub(crate) fn set_cancellation(&self, token: Option<CancellationToken>) {
        self.state.0.lock().token = token;
    }

    /// Submits a task: derives its dependencies, attaches memory to `bound`, links it, and lets it go. `body` is told
    /// what is attached, or why it cannot be.
    pub(crate) fn submit<const K: usize, L: AccessList<K>, B: Body>(
        self: &Arc<Self>,
        declaration: &Declaration<'_, K>,
        mut bound: L::Bound,
        place: Place,
        body: impl FnOnce(Result<L::Bound, Box<Error>>) -> B,
    ) -> Result<Node, Error> {
        self.hold_back();
        let forgotten;
        let mut refused = None;
        let (node, waits_for) = {
            let mut state = self.state.0.lock();
            let State { graph, submitted, books, token, barrier, recorder, .. } = &mut *state;
            forgotten = books.forget_some(graph, || self.lead.in_flight());
            let done = |task| books.is_forgettable(task);
            graph
                .submit_into(&declaration.accesses, &declaration.effects, &done, submitted)
                .map_err(|error| declaration.explain(error, &L::labels(&bound)))?;
            if let (Some(recorder), Some(told)) = (recorder, &declaration.told) {
                recorder.task(declaration.task, told, &declaration.accesses, &declaration.effects);
            }
            let attached = L::attach(&mut bound, &mut submitted.versions.iter().copied());
            // Where memory is refused, the graph has the task already: it stays, as one that fails. What it holds must not go
            // under the lock: that may be the last handle to a buffer.
            let body = match attached {
                Ok(()) => body(Ok(bound)),
                Err(error) => {
                    refused = Some(bound);
                    body(Err(Box::new(error)))
                }
            };
            let mut head = Head::new(submitted.id, declaration.task.clone(), place, self);
            head.token = token.clone().filter(|_| B::UNDER_TOKENS);
            head.contention = declaration.contends().then(|| declaration.effects.as_slice().into());
            head.priority = declaration.priority;
            let node = Node::new(head, body);
            let mut waits_for = 0;
            for dependency in &submitted.dependencies {
                waits_for += u32::from(books.link(&node, dependency));
            }
            barrier.take_if(|barrier| barrier.is_done());
            if let Some(barrier) = barrier {
                waits_for += u32::from(barrier.precede(&node, Needs::End));
            }
            books.enter(node.clone());
            if self.watch.samples(node.id) {
                self.watch.sample(self.lead.is_idle());
            }
            self.lead.submit();
            (node, waits_for)
        };
        drop((forgotten, refused));
        node.submitted(waits_for, self);
        if let Some(seeded) = &self.seeded {
            seeded.step_some(self);
        }
        Ok(node)
    }

    /// Submits an epoch that the program asks for.
    ///
    /// It is told to the books and not to the graph, where it would become the writer of everything: who it was that wrote
    /// must stay known, because a later task that reads what was never written well is to be skipped. In the record its
    /// captures are the epoch.
    pub(crate) fn submit_epoch(self: &Arc<Self>, label: TaskLabel) -> Node {
        let (node, waits_for) = {
            let mut state = self.state.0.lock();
            let State { graph, books, barrier, .. } = &mut *state;
            let submitted = graph.submit(&[], &[], &|_| true).expect("nothing that could be refused");
            let node = Node::new(Head::new(submitted.id, label, Place::Inline, self), Epoch);
            let waits_for = books.iter().map(|before| u32::from(before.precede_last(&node))).sum();
            *barrier = Some(node.clone());
            books.enter(node.clone());
            self.lead.submit();
            (node, waits_for)
        };
        node.submitted(waits_for, self);
        node
    }

    /// Waits while too many tasks are in flight, so that an endless stream of tasks needs bounded memory. A task that
    /// submits others is never held back: it may be one of those that are waited for.
    #[inline]
    fn hold_back(&self) {
        if self.lead.is_exhausted() && !Inside::is(self) {
            if let Some(seeded) = &self.seeded {
                while self.lead.is_exhausted() && seeded.step(self) {}
            } else {
                while self.lead.is_exhausted() {
                    self.lead.hold(self.watch_interval(), || self.watch());
                }
            }
        }
    }

    /// Queues a task that can be started.
    pub(crate) fn enqueue(&self, node: Node) {
        if let Some(seeded) = &self.seeded {
            seeded.push(node);
            return;
        }
        match node.place {
            Place::Host => self.lanes.submit(node.into_job()),
            Place::Compute | Place::Inline => self.pool.submit(node.into_job()),
        }
    }

    /// Whether tasks run in an order drawn from a seed, on the threads that wait.
    pub(crate) fn is_seeded(&self) -> bool {
        self.seeded.is_some()
    }

    pub(crate) fn seeded(&self) -> Option<&Seeded> {
        self.seeded.as_ref()
    }

    /// A task is done. If it was the last one of a runtime that was dropped inside a task, that comes back, to be
    /// dropped.
    pub(crate) fn completed(&self) -> Option<Stopping> {
        self.lead.complete();
        // SeqCst, as in `keep`: whoever keeps the runtime sees our count, or we see that it is kept.
        if !self.is_kept.load(SeqCst) || !self.lead.is_idle() {
            return None;
        }
        self.kept.lock().take().map(Stopping)
    }

    /// Whether no task is in flight.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.lead.is_idle()
    }

    /// Waits for a latch, and meanwhile runs host tasks that it waits for and that no lane has begun.
    pub(crate) fn settle(&self, latch: &Latch) {
        let mut helps = true;
        latch.event.wait(
            || helps && self.help(latch.last, &mut helps),
            self.watch_interval(),
            || self.watch(),
        );
    }

    /// Waits for one task. The calling thread runs that one, if it can be started, and nothing else: it must not be kept by
    /// what it does not wait for.
    pub(crate) fn settle_one(&self, node: &Node) {
        let latch = Latch::of(node);
        latch.event.wait(|| self.help_one(node), self.watch_interval(), || self.watch());
    }

    /// Runs the task here if it can be started and nobody has begun.
    pub(crate) fn help_one(&self, node: &Node) -> bool {
        if let Some(seeded) = &self.seeded {
            return seeded.step(self);
        }
        // Who may conflict with others is started by the conflicts' scheduler only.
        let begins = !node.contends() && node.is_ready() && node.claim();
        if begins {
            node.clone().run_on(Runner::Program);
        }
        begins
    }

    /// Runs what there is to run until the event, where only the threads that wait run anything.
    pub(crate) fn drive(&self, event: &Event) {
        if let Some(seeded) = &self.seeded {
            while !event.is_set() && seeded.step(self) {}
        }
    }

    /// Runs a host task, if one is queued and was submitted no later than `last`. Where another one is first, the caller
    /// does not help any more: it must not be kept by what it does not wait for.
    fn help(&self, last: TaskId, helps: &mut bool) -> bool {
        if let Some(seeded) = &self.seeded {
            return seeded.step(self);
        }
        let Some(task) = self.lanes.steal() else { return false };
        let node = Node::from_job(task);
        if node.id > last {
            *helps = false;
            self.lanes.submit(node.into_job());
            return false;
        }
        if node.claim() {
            node.run_on(Runner::Program);
        }
        true
    }

    /// A latch for all tasks submitted so far.
    pub(crate) fn latch(&self) -> Arc<Latch> {
        let state = self.state.0.lock();
        let latch = Latch::new(TaskId(state.graph.len()));
        state.books.iter().for_each(|node| node.hold_last(&latch));
        drop(state);
        latch.release();
        latch
    }

    /// Forgets tasks that are done, and with them what they hold.
    pub(crate) fn tidy(&self) {
        self.state.0.lock().books.forget_all();
    }

    /// Notes that a task has failed, to be reported at the next synchronisation.
    pub(crate) fn failed(&self, failure: &Arc<Failure>) {
        self.failures.failed(failure);
    }

    /// Notes that a task was skipped, and because of which failure.
    pub(crate) fn skipped(&self, failure: &Arc<Failure>) {
        let root = failure.root();
        if root.cause.is_news() {
            self.failures.skipped(root);
        }
    }

    /// The failures since the last report, if there are any.
    #[inline]
    pub(crate) fn report(&self) -> Result<(), Error> {
        self.failures.report()
    }

    /// An error where the calling thread runs a task of this runtime: waiting there would be waiting for itself.
    pub(crate) fn check_outside(&self, call: &'static str) -> Result<(), Error> {
        if Inside::is(self) { Err(Error::WaitInsideTask { call }) } else { Ok(()) }
    }

    /// Looks whether anything is wrong, on a thread that has waited for a while.
    pub(crate) fn watch(&self) {
        if let Some(seeded) = &self.seeded {
            // Another thread, which ran what this one waits for, may have left something behind.
            while seeded.step(self) {}
        }
        let live: Vec<Node> = self.state.0.lock().books.iter().cloned().collect();
        self.watch.look(self.lead.completed(), self.conflicts.waiting(), live.iter());
    }

    /// How often a blocked thread is to do that.
    pub(crate) fn watch_interval(&self) -> Duration {
        if self.is_seeded() { SEEDED_WATCH } else { self.watch.interval() }
    }

    /// Notes that the program waits for everything.
    pub(crate) fn note_wait(&self) {
        self.watch.waits(self.lead.submitted());
    }

    /// Ends the threads; nothing may be in flight.
    pub(crate) fn stop(&self) {
        self.lanes.stop();
        self.pool.stop();
    }

    /// The runtime is dropped inside one of its own tasks, which cannot wait for itself: the last task that is done will
    /// end it.
    pub(crate) fn keep(self: &Arc<Self>) {
        *self.kept.lock() = Some(Arc::clone(self));
        self.is_kept.store(true, SeqCst);
    }
}

/// What an epoch does.
struct Epoch;

impl Body for Epoch {
    fn run(&mut self, _: &Core) -> Result<(), Cause> {
        Ok(())
    }

    fn skip(&mut self, _: &Core, _: &Arc<Failure>) {}
}

/// A runtime whose last task is done.
pub(crate) struct Stopping(Arc<Core>);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.recorder(Recorder::finish);
        // First the threads, which may still look at what the runtime's memory holds.
        self.0.stop();
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("threads", &self.threads)
            .field("in_flight", &self.lead.in_flight())
            .finish_non_exhaustive()
    }
}
