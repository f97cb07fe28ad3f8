//! The state that all handles of one runtime share: the graphs, the live tasks, the executor, the failures.
//!
//! This file has the structure itself and the changes that are not submissions. Other files of this folder add to it:
//! [`submission`](super::submission), [`run`](super::run), [`waiting`](super::waiting) and [`shutdown`](super::shutdown).

use super::{
    conflicts::Conflicts,
    current_task::RuntimeId,
    graphs::Graphs,
    groups::group::Group,
    in_flight::InFlight,
    live_tasks::LiveTasks,
    shutdown::DeferredShutdown,
    task::node::Node,
    threads::executor::{Executor, Threads},
};
use crate::{
    data::owner::Owner,
    error::Error,
    observe::{Recorder, UnreportedFailures, Watchdog},
    settings::Settings,
};
use anabranch_graph::{BufferId, ObjectId};
use anabranch_grid::Extent;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{Arc, Weak},
};

pub(crate) struct Core {
    this: Weak<Self>,
    id: RuntimeId,
    pub(super) executor: Executor,
    pub(super) in_flight: InFlight,
    /// On its own cache lines, because workers read the neighbouring fields.
    pub(super) state: CachePadded<Mutex<State>>,
    pub(super) conflicts: Conflicts,
    pub(super) failures: UnreportedFailures,
    recorder: Option<Arc<Recorder>>,
    nodes: u16,
    pub(super) watchdog: Watchdog,
    pub(super) shutdown: DeferredShutdown,
}

/// State that submissions change, one at a time, under the lock.
#[derive(Default)]
pub(super) struct State {
    pub(super) graphs: Graphs,
    pub(super) tasks: LiveTasks,
    /// The last barrier, until it completes. Tasks that are submitted later come after it.
    pub(super) barrier: Option<Node>,
}

impl Core {
    /// Starts the threads of a runtime.
    pub(crate) fn start(threads: usize, settings: &Settings) -> Result<Arc<Self>, Error> {
        let threads = Threads::start(threads, settings)?;
        let record = &settings.record;
        let recorder = record.is_recording().then(|| Arc::new(Recorder::new(record.clone())));
        let state = State { graphs: Graphs::new(recorder.clone()), ..State::default() };
        let id = RuntimeId::new();
        Ok(Arc::new_cyclic(|this: &Weak<Self>| Self {
            this: Weak::clone(this),
            id,
            executor: Executor::new(id, Weak::<Self>::clone(this), threads),
            in_flight: InFlight::new(settings.max_in_flight),
            state: CachePadded::new(Mutex::new(state)),
            conflicts: Conflicts::default(),
            failures: UnreportedFailures::default(),
            recorder,
            nodes: record.nodes.unwrap_or(1),
            watchdog: Watchdog::new(settings.patience),
            shutdown: DeferredShutdown::default(),
        }))
    }

    /// A strong reference, which keeps the memory of the runtime alive.
    pub(super) fn share(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    /// The reference that buffers and host objects have to the runtime.
    pub(crate) fn owner(&self) -> Weak<dyn Owner> {
        Weak::<Self>::clone(&self.this)
    }

    pub(super) fn id(&self) -> RuntimeId {
        self.id
    }

    /// The number of compute threads.
    pub(crate) fn threads(&self) -> usize {
        self.executor.compute().threads()
    }

    /// The number of nodes: one, or the number of a dry run.
    pub(crate) fn nodes(&self) -> u16 {
        self.nodes
    }

    /// Whether the graphs of the program are recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// The recorder, if there is one, with everything that was submitted so far. Inside a task it may lack the latest.
    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        let recorder = self.recorder.as_deref()?;
        if !self.id.is_inside_task() {
            recorder.catch_up();
        }
        Some(recorder)
    }

    /// Applies the queued changes of the recorded graphs, except inside a task: a mapper that another thread has queued may wait
    /// for the task. The caller holds no lock.
    #[inline]
    pub(super) fn apply_recorded(&self) {
        if let Some(recorder) = &self.recorder
            && !self.id.is_inside_task()
        {
            recorder.apply();
        }
    }

    /// Changes the graphs, and then applies the change to the recorded graphs.
    fn change_graphs<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state.lock());
        self.apply_recorded();
        result
    }

    /// Adds a buffer with elements of `bytes` bytes; returns its id, and its number for messages.
    pub(crate) fn create_buffer(
        &self,
        extent: Extent<3>,
        initialised: bool,
        bytes: usize,
    ) -> (BufferId, u64) {
        self.change_graphs(|state| state.graphs.create_buffer(extent, initialised, bytes))
    }

    /// Adds a host object; returns its id, and its number for messages.
    pub(crate) fn create_object(&self) -> (ObjectId, u64) {
        self.change_graphs(|state| state.graphs.create_object())
    }

    /// Whether no task is in flight.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_idle()
    }

    /// Takes the failures of a group, or those of tasks in no group, since their last report. Returns them as an error, if
    /// there are any.
    #[inline]
    pub(crate) fn report(&self, group: Option<&Group>) -> Result<(), Error> {
        self.failures_of(group).report()
    }

    /// The failures of a group, or of tasks in no group.
    pub(super) fn failures_of<'a>(&'a self, group: Option<&'a Group>) -> &'a UnreportedFailures {
        group.map_or(&self.failures, |group| &group.failures)
    }

    /// An error if the calling thread works inside a task of this runtime: waiting there would be waiting for itself.
    #[inline]
    pub(crate) fn check_outside(&self, call: &'static str) -> Result<(), Error> {
        if self.id.is_inside_task() { Err(Error::WaitInsideTask { call }) } else { Ok(()) }
    }
}

impl Owner for Core {
    fn set_versions(&self, buffer: BufferId, versions: usize) {
        self.change_graphs(|state| state.graphs.set_versions(buffer, versions));
    }

    fn discard(&self, buffer: BufferId) {
        self.change_graphs(|State { graphs, tasks, .. }| {
            graphs.discard(buffer, &|task| tasks.is_forgettable(task));
        });
    }

    fn remove_buffer(&self, buffer: BufferId) {
        self.change_graphs(|state| state.graphs.remove_buffer(buffer));
    }

    fn remove_object(&self, object: ObjectId) {
        self.change_graphs(|state| state.graphs.remove_object(object));
    }
}

impl Drop for Core {
    /// No handle is left through which the program could ask for the failures of tasks in no group.
    fn drop(&mut self) {
        self.failures.print(format_args!("the runtime"));
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("threads", &self.threads())
            .field("in_flight", &self.in_flight.count())
            .finish_non_exhaustive()
    }
}
