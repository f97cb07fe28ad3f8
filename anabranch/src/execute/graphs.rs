//! The graphs of a program: the one that its execution follows, and the recorded ones if there are any.
//!
//! Every change goes through this type, so the graphs stay equal. The live graph changes at once. The changes
//! of the recorded graphs are queued, because range mappers of the program run there: see [`Recorder`].

use crate::{
    label::TaskLabel,
    observe::{RecordedPlace, RecordedTask, Recorder, TaskRecord},
};
use anabranch_graph::{
    Access, BufferId, Dependency, Effect, GraphError, ObjectId, Settings, Submitted, TaskGraph, TaskId,
    command::{Weights, Work},
};
use anabranch_grid::Extent;
use std::{mem, sync::Arc};

#[derive(Default)]
pub(super) struct Graphs {
    live: TaskGraph,
    /// What the live graph returned last. Its memory is used for the next call.
    submitted: Submitted,
    /// What the live graph returned for the last task that was submitted in pieces.
    pieces: Pieces,
    /// The number of buffers and host objects so far.
    named: u64,
    recorder: Option<Arc<Recorder>>,
    /// Where the next task accesses its buffers. Once a device is known, each submission sets it.
    place: RecordedPlace,
}

/// What the live graph returned for the pieces of a task.
#[derive(Default)]
pub(super) struct Pieces {
    /// The id of each piece, and the end of its own among the dependencies.
    pieces: Vec<(TaskId, usize)>,
    /// The dependencies of the first piece, then those of the second, and so on.
    dependencies: Vec<Dependency>,
}

impl Pieces {
    /// The memory for more dependencies than this is not kept for the next task.
    const MOST_KEPT: usize = 1 << 12;

    fn clear(&mut self) {
        self.pieces.clear();
        self.dependencies.clear();
    }

    fn is_large(&self) -> bool {
        self.dependencies.capacity().max(self.pieces.capacity()) > Self::MOST_KEPT
    }

    fn push(&mut self, piece: &Submitted) {
        self.dependencies.extend_from_slice(&piece.dependencies);
        self.pieces.push((piece.id, self.dependencies.len()));
    }

    pub(super) fn id(&self, piece: usize) -> TaskId {
        self.pieces[piece].0
    }

    /// The dependencies of each piece.
    pub(super) fn dependencies(&self) -> impl Iterator<Item = &[Dependency]> {
        let mut first = 0;
        self.pieces.iter().map(move |&(_, end)| &self.dependencies[mem::replace(&mut first, end)..end])
    }
}

/// What the graphs must know of a task.
pub(super) struct Declared<'a> {
    pub(super) label: &'a TaskLabel,
    pub(super) accesses: &'a [Access],
    pub(super) effects: &'a [Effect],
    /// Further facts for the recorder, in a recorded runtime.
    pub(super) record: Option<&'a Arc<TaskRecord>>,
}

impl Graphs {
    /// With several nodes, the live graph has horizons, as the command graphs need them; it is the same on
    /// all nodes.
    pub(super) fn new(recorder: Option<Arc<Recorder>>, several_nodes: bool) -> Self {
        let horizons = several_nodes.then(Default::default);
        // One node makes no epochs: its barriers are no part of the graph.
        let live = TaskGraph::with(Settings { horizons, conflicts: false, epochs: several_nodes });
        Self { live, recorder, ..Self::default() }
    }

    /// The graph that execution follows.
    pub(super) fn live(&self) -> &TaskGraph {
        &self.live
    }

    /// The graph that execution follows, for a question before which it stops recalling tasks.
    pub(super) fn live_mut(&mut self) -> &mut TaskGraph {
        &mut self.live
    }

    /// Adds a buffer with elements of `bytes` bytes; returns its id, and its number for messages.
    pub(super) fn create_buffer(
        &mut self,
        extent: Extent<3>,
        initialised: bool,
        bytes: usize,
    ) -> (BufferId, u64) {
        let id = self.live.create_buffer(extent, initialised);
        if let Some(recorder) = &self.recorder {
            recorder.create_buffer(extent, initialised, id, bytes);
        }
        self.named += 1;
        (id, self.named)
    }

    pub(super) fn set_versions(&mut self, id: BufferId, versions: usize) {
        self.live.set_versions(id, versions);
        if let Some(recorder) = &self.recorder {
            recorder.set_versions(id, versions);
        }
    }

    pub(super) fn discard(&mut self, id: BufferId, is_done: &dyn Fn(TaskId) -> bool) {
        self.live.discard(id, is_done);
        if let Some(recorder) = &self.recorder {
            recorder.discard(id);
        }
    }

    pub(super) fn remove_buffer(&mut self, id: BufferId) {
        self.live.remove_buffer(id);
        if let Some(recorder) = &self.recorder {
            recorder.remove_buffer(id);
        }
    }

    /// Adds a host object, of the whole cluster if it has a home; returns its id, and its number for
    /// messages.
    pub(super) fn create_object(&mut self, home: Option<u16>) -> (ObjectId, u64) {
        let id = self.live.create_object();
        if let Some(recorder) = &self.recorder {
            recorder.create_object(id, home);
        }
        self.named += 1;
        (id, self.named)
    }

    pub(super) fn remove_object(&mut self, id: ObjectId) {
        self.live.remove_object(id);
        if let Some(recorder) = &self.recorder {
            recorder.remove_object(id);
        }
    }

    /// Sets the weights of the nodes. The live graph does not depend on them.
    pub(super) fn set_weights(&mut self, weights: &Weights) {
        if let Some(recorder) = &self.recorder {
            recorder.set_weights(weights);
        }
    }

    /// Adds a task; the live graph's answer is in [`submitted`](Self::submitted). If the graph refuses the
    /// task, both graphs are as before.
    #[inline]
    pub(super) fn submit(
        &mut self,
        task: &Declared<'_>,
        is_done: &dyn Fn(TaskId) -> bool,
    ) -> Result<(), GraphError> {
        self.live.submit_into(task.accesses, task.effects, is_done, &mut self.submitted)?;
        if let Some(record) = task.record {
            self.record(task.label, (task.accesses, task.effects), record, self.place);
        }
        Ok(())
    }

    /// Adds a task in pieces; the live graph's answers are in [`pieces`](Self::pieces). The recorded graphs
    /// get it as one task. See [`submit`](Self::submit).
    pub(super) fn submit_pieces(
        &mut self,
        task: &Declared<'_>,
        pieces: &[impl AsRef<[Access]>],
        is_done: &dyn Fn(TaskId) -> bool,
    ) -> Result<(), GraphError> {
        let Declared { accesses, effects, .. } = task;
        self.pieces.clear();
        let each = |piece: &Submitted| self.pieces.push(piece);
        self.live.submit_pieces(accesses, effects, pieces, is_done, &mut self.submitted, each)?;
        if let Some(record) = task.record {
            self.record(task.label, (accesses, effects), record, self.place);
        }
        Ok(())
    }

    /// Adds a task of a program on several nodes, whose graphs do not depend on what is done.
    pub(super) fn submit_on_nodes(
        &mut self,
        label: &TaskLabel,
        accesses: &[Access],
        effects: &[Effect],
        record: &Arc<TaskRecord>,
    ) -> Result<(), GraphError> {
        if record.work == Work::Epoch {
            self.submitted = self.live.epoch(accesses, effects, &|_| false)?;
        } else {
            self.live.submit_into(accesses, effects, &|_| false, &mut self.submitted)?;
        }
        self.record(label, (accesses, effects), record, RecordedPlace::default());
        Ok(())
    }

    /// Adds a task to the recorded graphs.
    #[cold]
    fn record(
        &self,
        label: &TaskLabel,
        (accesses, effects): (&[Access], &[Effect]),
        record: &Arc<TaskRecord>,
        place: RecordedPlace,
    ) {
        if let Some(recorder) = &self.recorder {
            recorder.submit(RecordedTask {
                label: label.times(record.times),
                record: Arc::clone(record),
                accesses: accesses.into(),
                effects: effects.into(),
                place,
            });
        }
    }

    /// Sets where the next task accesses its buffers: the recorder draws the copies that it comes after.
    pub(super) fn place_next(&mut self, place: RecordedPlace) {
        self.place = place;
    }

    /// The recorder, if there is one.
    pub(super) fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.recorder.as_ref()
    }

    /// The live graph's answer to the last task.
    pub(super) fn submitted(&self) -> &Submitted {
        &self.submitted
    }

    /// The live graph's answers to the pieces of the last task that was submitted in pieces.
    pub(super) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// Takes the answers out if they need much memory, to be dropped outside the lock.
    pub(super) fn take_large_pieces(&mut self) -> Option<Pieces> {
        self.pieces.is_large().then(|| mem::take(&mut self.pieces))
    }

    /// The id of a barrier, which is in no graph: see [`submit_barrier`](super::Core::submit_barrier).
    pub(super) fn barrier_id(&mut self) -> TaskId {
        self.live
            .submit(&[], &[], &|_| true)
            .expect("a task without accesses and effects is never refused")
            .id
    }
}
