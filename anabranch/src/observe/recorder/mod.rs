//! Recording: the graphs of a program, for pictures, and dry runs for more nodes than there are.
//!
//! A recorded program runs as it always does. The recorder repeats everything that it submits in a second
//! task graph. That graph has horizons and conflict edges, and forgets tasks by horizons instead of by their
//! completion, so it is the same in every run. In a dry run the recorder also submits everything to the
//! command graphs of as many nodes as the program asks for; none of these nodes exists. With several real
//! nodes and without a dry run, the recorder draws the commands that this node executes. Drawings of both are
//! bounded: what they leave out, they count.
//!
//! # No lock around mappers
//! A dry run calls the range mappers of the program for chunks of nodes that do not exist. A mapper is the
//! program's code: it may submit tasks, drop buffers and wait. So a change of the graphs is only queued under
//! the lock of the runtime's state. When the thread has released the lock, it [applies](Recorder::apply) what
//! is queued, unless another thread is doing that: then the other thread goes on with it. A mapper that
//! submits a task on the way queues a change for the loop around it. Tasks of the same runtime queue changes,
//! too, but leave it to the threads of the program to apply them: a mapper may wait for the tasks.

mod change;
#[cfg(feature = "print")]
mod copies;
mod counts;
#[cfg(feature = "print")]
mod drawings;
mod names;
#[cfg(feature = "print")]
mod node_copies;
mod nodes;
mod queue;
mod recording;
mod task_record;

pub(crate) use self::{
    change::{NodeAccess, Place, RecordedTask, Touched},
    task_record::TaskRecord,
};

use self::{change::Change, queue::Queue, recording::Recording};
use crate::{label::TaskLabel, settings::RecordSettings, stderr};
use anabranch_graph::{
    BufferId, ObjectId,
    command::{Command, Weights},
};
use anabranch_grid::Extent;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A thread that has queued this number of changes waits for the thread that applies them.
const MAX_AHEAD: u64 = 1024;

pub(crate) struct Recorder {
    settings: RecordSettings,
    queue: Queue,
    recording: Mutex<Recording>,
    /// Whether the runtime has ended inside a mapper: then the recorder finishes after the mapper.
    finishes_later: AtomicBool,
}

impl Recorder {
    pub(crate) fn new(settings: RecordSettings) -> Self {
        let nodes = settings.nodes.unwrap_or(0);
        Self {
            queue: Queue::new(nodes),
            recording: Mutex::new(Recording::new(nodes, settings.node)),
            settings,
            finishes_later: AtomicBool::new(false),
        }
    }

    /// Queues a new buffer with elements of `bytes` bytes.
    pub(crate) fn create_buffer(&self, extent: Extent<3>, initialised: bool, id: BufferId, bytes: usize) {
        self.queue.push(Change::CreateBuffer { extent, initialised, id, bytes });
    }

    pub(crate) fn remove_buffer(&self, id: BufferId) {
        self.queue.push(Change::RemoveBuffer(id));
    }

    /// Queues a new host object, of the whole cluster if it has a home.
    pub(crate) fn create_object(&self, id: ObjectId, home: Option<u16>) {
        self.queue.push(Change::CreateObject(id, home));
    }

    pub(crate) fn remove_object(&self, id: ObjectId) {
        self.queue.push(Change::RemoveObject(id));
    }

    pub(crate) fn set_versions(&self, id: BufferId, versions: usize) {
        self.queue.push(Change::SetVersions(id, versions));
    }

    pub(crate) fn discard(&self, id: BufferId) {
        self.queue.push(Change::Discard(id));
    }

    /// Queues the weights of the nodes of a dry run. Those of another number of nodes do not concern it.
    pub(crate) fn set_weights(&self, weights: &Weights) {
        if self.settings.nodes.map(usize::from) == Some(weights.nodes()) {
            self.queue.push(Change::SetWeights(weights.clone()));
        }
    }

    /// Queues a task that the live graph has accepted.
    pub(crate) fn submit(&self, task: RecordedTask) {
        self.queue.push(Change::Submit(task));
    }

    /// Queues the commands of this node, of several, for the task that was submitted last. A dry run has
    /// commands of its own.
    pub(crate) fn execute(&self, label: &TaskLabel, commands: &[Command]) {
        if let (None, Some(node)) = (self.settings.nodes, self.settings.node) {
            self.queue.push(Change::Execute { node, label: label.clone(), commands: commands.to_vec() });
        }
    }

    /// Queues what a command of this node, of several, reads and writes in one of its memories. A dry run has
    /// no devices.
    pub(crate) fn touch(&self, touched: Touched) {
        if let (None, Some(node)) = (self.settings.nodes, self.settings.node) {
            self.queue.push(Change::Touch { node, touched });
        }
    }

    /// Applies the queued changes. If another thread is doing that and is far behind, the calling thread
    /// waits. The caller holds no lock and is in no task of the runtime.
    pub(crate) fn apply(&self) {
        self.queue.catch_up(MAX_AHEAD, &self.recording);
        if self.finishes_later.load(Relaxed)
            && !self.queue.is_my_turn()
            && self.finishes_later.swap(false, Relaxed)
        {
            self.write();
        }
    }

    /// Waits until all changes are applied that were queued so far, except inside a mapper. The caller is in
    /// no task of the runtime.
    pub(crate) fn catch_up(&self) {
        self.queue.catch_up(0, &self.recording);
    }

    fn read<R>(&self, f: impl FnOnce(&Recording) -> R) -> R {
        f(&self.recording.lock())
    }

    /// The summary of a dry run.
    pub(crate) fn summary(&self) -> Option<String> {
        self.settings.nodes?;
        Some(self.read(|recording| {
            let refused = recording.refused.iter();
            let refused = refused.map(|error| format!("; commands end where this was refused: {error}"));
            recording.counts.to_string() + &refused.collect::<String>()
        }))
    }

    /// Prints the summary of a dry run and writes the graphs to the file that the environment asks for.
    pub(crate) fn finish(&self) {
        if self.queue.is_my_turn() {
            self.finishes_later.store(true, Relaxed);
        } else {
            self.write();
        }
    }

    fn write(&self) {
        self.catch_up();
        if self.settings.is_quiet() {
            return;
        }
        if let Some(summary) = self.summary() {
            stderr::print(format_args!("{summary}"));
        }
        #[cfg(feature = "print")]
        if let Some(path) = &self.settings.path
            && let Err(error) = self.read(|r| r.drawings.write(path, self.settings.has_commands()))
        {
            stderr::print(format_args!("the graphs could not be written to {}: {error}", path.display()));
        }
    }
}

#[cfg(feature = "print")]
impl Recorder {
    /// The task graph so far.
    pub(crate) fn tasks(&self) -> anabranch_graph::print::Drawing {
        self.read(|recording| recording.drawings.tasks().clone())
    }

    /// The command graphs so far, in a dry run or with several nodes.
    pub(crate) fn commands(&self) -> Option<anabranch_graph::print::Drawing> {
        self.settings.has_commands().then(|| self.read(|recording| recording.drawings.commands().clone()))
    }
}
