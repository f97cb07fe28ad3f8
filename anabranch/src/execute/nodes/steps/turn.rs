//! Bodies of steps that pass on the turn of a host object of the whole cluster, or wait for it.
//!
//! The messages are [notes](anabranch_wire::Endpoint::send_note) that stand for no data. A note without text
//! is the turn of a good object. If the object is broken on this node, because a part of a task with an
//! effect on it has failed, the note has the failure, and breaks the object on the node that gets it. Of
//! several failures the one that [counts](Failure::age) is collected, and then spread. So the next parts are
//! skipped on all nodes, because of the same failure.

use super::{
    context::StepContext,
    transfer::{ONCE, end_all, ends, unreadable},
};
use crate::{
    cluster::{Said, Then, kind, let_go},
    data::cluster_object::Kept,
    error::{Cause, Failure, NodeError},
    execute::{Body, Compute, nodes::failures::notes, task::node::Later},
};
use anabranch_graph::{
    TaskId,
    command::{NodeId, Pass},
};
use anabranch_wire::{MemoryMut, Tag};
use std::sync::Arc;

/// A message counts as this many bytes, of which none is sent.
const BYTES: usize = 1;

/// The turn of an object, for a task.
pub(in crate::execute::nodes) struct Turn {
    context: Arc<StepContext>,
    object: Kept,
    tag: Tag,
    pass: Pass,
}

impl Turn {
    pub(in crate::execute::nodes) fn new(
        context: &Arc<StepContext>,
        object: Kept,
        task: TaskId,
        pass: Pass,
    ) -> Self {
        let kind = match pass {
            Pass::Collect => kind::COLLECT,
            Pass::Spread => kind::SPREAD,
        };
        let tag = Tag::new(task.0, object.id.0, kind);
        Self { context: Arc::clone(context), object, tag, pass }
    }

    /// The turn has come from all nodes that it comes from.
    fn has_come(&self, said: &[Said]) -> Result<(), Arc<NodeError>> {
        let StepContext { cluster, poison, locations } = &*self.context;
        let mut failures = Vec::with_capacity(said.len() + 1);
        for said in said.iter().filter(|said| !said.note.is_empty()) {
            let read = notes::read(said, locations);
            failures.push(read.ok_or_else(|| cluster.stop(unreadable(said)))?.1);
        }
        if self.pass == Pass::Collect {
            failures.extend(poison.of_object(self.object.id));
        }
        // What is spread counts on all nodes, whatever they knew before.
        if let Some(failure) = failures.into_iter().min_by_key(Failure::age) {
            poison.break_object(self.object.id, &failure);
        }
        Ok(())
    }
}

/// Passes the turn on to these nodes.
pub(in crate::execute::nodes) struct PassTurn(
    pub(in crate::execute::nodes) Option<Turn>,
    pub(in crate::execute::nodes) Arc<[NodeId]>,
);

impl Body for PassTurn {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let Turn { context, object, tag, .. } = self.0.take().expect(ONCE);
        // This calls functions of the program, for the messages of its errors.
        let note = context.poison.of_object(object.id).map(|failure| notes::of_failure(&failure));
        let note = note.unwrap_or_default();
        context.cluster.transfer(Arc::new(object.object), ends(later.completion()), |endpoint, _| {
            self.1.iter().try_for_each(|target| endpoint.send_note(target.0, tag, BYTES, &note))
        });
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}

/// Waits for the turn, from this number of nodes.
pub(in crate::execute::nodes) struct AwaitTurn(
    pub(in crate::execute::nodes) Option<Turn>,
    pub(in crate::execute::nodes) u32,
);

impl Body for AwaitTurn {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let turn = self.0.take().expect(ONCE);
        let (context, object, tag) = (Arc::clone(&turn.context), turn.object.clone(), turn.tag);
        let (bytes, completion) = (self.1 as usize * BYTES, later.completion());
        let then: Then = Box::new(move |result| {
            let result = result.and_then(|said| turn.has_come(&said));
            let_go(turn);
            end_all(vec![completion], &result);
        });
        context.cluster.transfer(Arc::new(object.object), then, |endpoint, begun| {
            begun.push(endpoint.expect(tag, MemoryMut::empty(), bytes)?);
            Ok(())
        });
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}
