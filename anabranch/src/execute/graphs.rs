//! The graphs of a program: the one that its execution follows, and the recorded ones if there are any.
//!
//! Both learn everything through this type, so that they cannot come apart.

use crate::{
    label::TaskLabel,
    observe::{Recorder, TaskRecord},
};
use anabranch_graph::{Access, BufferId, Effect, GraphError, ObjectId, Submitted, TaskGraph, TaskId};
use anabranch_grid::Extent;

#[derive(Default)]
pub(super) struct Graphs {
    live: TaskGraph,
    /// The last answer of the live graph. Its memory is used for the next one.
    submitted: Submitted,
    /// The number of buffers and host objects so far.
    named: u64,
    recorder: Option<Box<Recorder>>,
}

impl Graphs {
    pub(super) fn new(recorder: Option<Recorder>) -> Self {
        Self { recorder: recorder.map(Box::new), ..Self::default() }
    }

    /// The graph that execution follows.
    pub(super) fn live(&self) -> &TaskGraph {
        &self.live
    }

    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_deref()
    }

    /// Adds a buffer with elements of `bytes` bytes; returns its id, and its number for messages.
    pub(super) fn create_buffer(
        &mut self,
        extent: Extent<3>,
        initialised: bool,
        bytes: usize,
    ) -> (BufferId, u64) {
        let id = self.live.create_buffer(extent, initialised);
        if let Some(recorder) = &mut self.recorder {
            recorder.create_buffer(extent, initialised, id, bytes);
        }
        self.named += 1;
        (id, self.named)
    }

    pub(super) fn set_versions(&mut self, id: BufferId, versions: usize) {
        self.live.set_versions(id, versions);
        if let Some(recorder) = &mut self.recorder {
            recorder.set_versions(id, versions);
        }
    }

    pub(super) fn discard(&mut self, id: BufferId, is_done: &dyn Fn(TaskId) -> bool) {
        self.live.discard(id, is_done);
        if let Some(recorder) = &mut self.recorder {
            recorder.discard(id);
        }
    }

    pub(super) fn remove_buffer(&mut self, id: BufferId) {
        self.live.remove_buffer(id);
        if let Some(recorder) = &mut self.recorder {
            recorder.remove_buffer(id);
        }
    }

    /// Adds a host object; returns its id, and its number for messages.
    pub(super) fn create_object(&mut self) -> (ObjectId, u64) {
        let id = self.live.create_object();
        if let Some(recorder) = &mut self.recorder {
            recorder.create_object(id);
        }
        self.named += 1;
        (id, self.named)
    }

    pub(super) fn remove_object(&mut self, id: ObjectId) {
        self.live.remove_object(id);
        if let Some(recorder) = &mut self.recorder {
            recorder.remove_object(id);
        }
    }

    /// Adds a task; the live graph's answer is in [`submitted`](Self::submitted). If the graph refuses the task, both graphs
    /// are as before.
    pub(super) fn submit(
        &mut self,
        label: &TaskLabel,
        accesses: &[Access],
        effects: &[Effect],
        record: Option<&TaskRecord>,
        is_done: &dyn Fn(TaskId) -> bool,
    ) -> Result<(), GraphError> {
        self.live.submit_into(accesses, effects, is_done, &mut self.submitted)?;
        if let (Some(recorder), Some(record)) = (&mut self.recorder, record) {
            recorder.record_task(label, record, accesses, effects);
        }
        Ok(())
    }

    /// The live graph's answer to the last task.
    pub(super) fn submitted(&self) -> &Submitted {
        &self.submitted
    }

    /// The id of a barrier, which is in no graph: see [`submit_barrier`](super::Core::submit_barrier).
    pub(super) fn barrier_id(&mut self) -> TaskId {
        self.live
            .submit(&[], &[], &|_| true)
            .expect("a task without accesses and effects is never refused")
            .id
    }
}
