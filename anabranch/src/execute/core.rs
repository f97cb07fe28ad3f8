//! The state that all handles of one runtime share: the graphs, the live tasks, the executor, the failures.
//!
//! This file has the structure itself and the changes that are not submissions. Other files of this folder
//! add to it: [`start`](super::start), [`accept`](super::accept), [`run`](super::run),
//! [`waiting`](super::waiting), [`report`](super::report), [`shutdown`](super::shutdown) and others.

use super::{
    conflicts::Conflicts,
    current_task::RuntimeId,
    deferred_shutdown::DeferredShutdown,
    devices::Residents,
    graphs::Graphs,
    groups::group::Group,
    in_flight::InFlight,
    live_tasks::LiveTasks,
    nodes::{Communicators, Nodes},
    task::node::Node,
    threads::executor::Executor,
};
use crate::{
    data::owner::Owner,
    device::Device,
    error::{Error, NodeError},
    observe::{Recorder, UnreportedFailures, Warnings},
    program_cache::ProgramCache,
};
use anabranch_graph::{
    Access, BufferId, GraphError, ObjectId, TaskId,
    command::{CommandId, Weights},
};
use anabranch_grid::Extent;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{Arc, Weak, atomic::AtomicBool},
};

pub(crate) struct Core {
    pub(super) this: Weak<Self>,
    pub(super) id: RuntimeId,
    pub(super) executor: Executor,
    pub(super) in_flight: InFlight,
    /// On its own cache lines, because workers read the neighbouring fields.
    pub(super) state: CachePadded<Mutex<State>>,
    pub(super) conflicts: Conflicts,
    pub(super) failures: UnreportedFailures,
    pub(super) recorder: Option<Arc<Recorder>>,
    /// The number of nodes, or that of a dry run.
    pub(super) nodes: u16,
    /// What the runtime needs only with several nodes.
    pub(super) several: Option<Box<Nodes>>,
    /// `None` if the program has not asked for communicators.
    pub(super) communicators: Option<Communicators>,
    /// The device that recorded kernels run on, if no task says otherwise.
    pub(crate) device: Option<Arc<dyn Device>>,
    /// Whether a task has been submitted for a device.
    pub(super) meets_devices: AtomicBool,
    /// The programs of recorded kernels and shaders.
    pub(crate) programs: ProgramCache,
    pub(super) warnings: Warnings,
    pub(super) shutdown: DeferredShutdown<Self>,
}

/// State that submissions change, one at a time, under the lock.
#[derive(Default)]
pub(super) struct State {
    pub(super) graphs: Graphs,
    pub(super) tasks: LiveTasks,
    /// The last barrier, until it completes. Tasks that are submitted later come after it.
    pub(super) barrier: Option<Node>,
    /// `None` as long as no task runs on a device.
    pub(super) residents: Option<Box<Residents>>,
}

impl Core {
    /// A strong reference, which keeps the memory of the runtime alive.
    pub(super) fn share(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    /// The reference that buffers and host objects have to the runtime.
    pub(crate) fn owner(&self) -> Weak<dyn Owner> {
        Weak::<Self>::clone(&self.this)
    }

    pub(crate) fn id(&self) -> RuntimeId {
        self.id
    }

    /// The number of compute threads.
    pub(crate) fn threads(&self) -> usize {
        self.executor.compute().threads()
    }

    /// The number of nodes of the run, or of the dry run.
    pub(crate) fn nodes(&self) -> u16 {
        self.nodes
    }

    /// Whether tasks need a record: for recorded graphs, or for command graphs.
    #[inline]
    pub(crate) fn needs_records(&self) -> bool {
        self.recorder.is_some() || self.several.is_some()
    }

    /// The recorder, if there is one, with everything that was submitted so far. Inside a task it may lack
    /// the latest.
    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        let recorder = self.recorder.as_deref()?;
        if !self.id.is_inside_task() {
            recorder.catch_up();
        }
        Some(recorder)
    }

    /// Applies the queued changes of the recorded graphs, except inside a task: a mapper that another thread
    /// has queued may wait for the task. The caller holds no lock.
    #[inline]
    pub(super) fn apply_recorded(&self) {
        if let Some(recorder) = &self.recorder
            && !self.id.is_inside_task()
        {
            recorder.apply();
        }
    }

    /// Panics in a forked process: for calls that return no error.
    fn expect_process(&self, call: &'static str) {
        if let Err(error) = self.id.check_process(call) {
            panic!("{error}");
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
        self.expect_process("Runtime::buffer");
        let created = self.change_graphs(|state| state.graphs.create_buffer(extent, initialised, bytes));
        if let Some(nodes) = &self.several {
            self.check_change_on_nodes("Runtime::buffer");
            nodes.create_buffer(created.0, extent, initialised);
        }
        created
    }

    /// Adds a host object, of the whole cluster if it has a home; returns its id, and its number for
    /// messages.
    pub(crate) fn create_object(&self, home: Option<u16>) -> (ObjectId, u64) {
        let call = if home.is_none() { "Runtime::host_object" } else { "Runtime::cluster_object" };
        self.expect_process(call);
        let created = self.change_graphs(|state| state.graphs.create_object(home));
        if let Some(nodes) = &self.several {
            self.check_change_on_nodes(call);
            nodes.create_object(created.0, home);
        }
        created
    }

    /// Checks a task with these accesses as a submission does, and submits nothing.
    pub(crate) fn check_accesses(&self, accesses: &[Access]) -> Result<(), GraphError> {
        self.state.lock().graphs.live().check_accesses(accesses)
    }

    /// Sets the weights of the nodes in the recorded graphs.
    pub(super) fn record_weights(&self, weights: &Weights) {
        self.change_graphs(|state| state.graphs.set_weights(weights));
    }

    /// With several nodes: ends the run if the calling thread may not create or change a buffer or a host
    /// object.
    fn check_change_on_nodes(&self, call: &'static str) {
        if let Err(error) = self.check_submitter(|| call.into())
            && let Some(cluster) = self.cluster()
        {
            cluster.stop(NodeError::Here { why: error.to_string() });
        }
    }

    /// Whether no task is in flight.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_idle()
    }

    /// With several nodes: whether a command of this node is done.
    pub(super) fn is_command_done(&self, command: CommandId) -> bool {
        self.state.lock().tasks.is_forgettable(TaskId(command.0))
    }

    /// Counts a submitted task, under the lock of the state.
    pub(super) fn count_submitted(&self, node: &Node) {
        self.in_flight.submit();
        node.group.iter().for_each(|group| group.submit());
    }

    /// The failures of a group, or of tasks in no group.
    pub(super) fn failures_of<'a>(&'a self, group: Option<&'a Group>) -> &'a UnreportedFailures {
        group.map_or(&self.failures, |group| &group.failures)
    }

    /// See [`RuntimeId::check_outside`].
    #[inline]
    pub(crate) fn check_outside(&self, call: &'static str) -> Result<(), Error> {
        self.id.check_outside(call)
    }
}

/// In a forked process these calls do nothing: nothing will use the graphs again.
impl Owner for Core {
    fn has_several_nodes(&self) -> bool {
        self.several.is_some()
    }

    fn set_versions(&self, buffer: BufferId, versions: usize) {
        if !self.id.is_in_this_process() {
            return;
        }
        self.change_graphs(|state| state.graphs.set_versions(buffer, versions));
        if let Some(nodes) = &self.several {
            self.check_change_on_nodes("Buffer::with_versions");
            nodes.set_versions(buffer, versions);
        }
    }

    fn discard(&self, buffer: BufferId) {
        if !self.id.is_in_this_process() {
            return;
        }
        if let Some(nodes) = &self.several {
            self.check_change_on_nodes("Buffer::discard");
            // What is done differs among the nodes, and the task graph must not.
            self.change_graphs(|state| state.graphs.discard(buffer, &|_| false));
            return nodes.discard(buffer, &|command| self.is_command_done(command));
        }
        self.change_graphs(|State { graphs, tasks, .. }| {
            graphs.discard(buffer, &|task| tasks.is_forgettable(task));
        });
    }

    fn remove_buffer(&self, buffer: BufferId) {
        if !self.id.is_in_this_process() {
            return;
        }
        let _resident = self.change_graphs(|state| {
            state.graphs.remove_buffer(buffer);
            state.residents.as_mut().and_then(|residents| residents.remove(buffer))
        });
        self.several.iter().for_each(|nodes| nodes.remove_buffer(buffer));
    }

    fn remove_object(&self, object: ObjectId) {
        if !self.id.is_in_this_process() {
            return;
        }
        self.change_graphs(|state| state.graphs.remove_object(object));
        self.several.iter().for_each(|nodes| nodes.remove_object(object));
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
