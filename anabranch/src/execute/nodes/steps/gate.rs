//! The body of the step before a part of a task that begins on all nodes or on none: a task that calls
//! functions of MPI, in which each node waits for all others.
//!
//! # Protocol
//! 1. The gate has the dependencies of the part, and the part depends on the gate. So the gate begins when
//!    the part could.
//! 2. If something that the part needs is poisoned on this node, the node sends the failure to all others. If
//!    the part was cancelled, the node sends that. Otherwise it commits the part, which cannot be cancelled
//!    from then on, and sends no failure.
//! 3. When a node has the messages of all others, it has all failures. If there is one, the part is poisoned
//!    with the one that [counts](Failure::age), which is the same on all nodes. So the part is skipped on all
//!    of them.
//! 4. Otherwise the part is permitted: it runs also if the run ends before the part has its turn, because
//!    other nodes may be in its call.
//!
//! A part that is cancelled is skipped on its own node because of that, whatever the others send.
//!
//! The run may end when one node has the messages of all others and another one has not. Then the first one
//! runs its part alone. If that part waits in a call of MPI for longer than the timeout of nodes, the
//! polling thread ends the process, and the launcher ends all others.

use super::{
    context::StepContext,
    transfer::{ONCE, end_all, unreadable},
};
use crate::{
    cluster::{Said, Then, kind, let_go},
    error::{Cause, Failure, NodeError},
    execute::{
        Body, Compute,
        nodes::failures::notes,
        task::node::{Later, Node},
    },
};
use anabranch_graph::TaskId;
use anabranch_wire::Tag;
use std::sync::Arc;

/// The number of the object in the names of these meetings, which concern none.
const NO_OBJECT: u64 = 0;

/// The step before this node's part of a task.
pub(in crate::execute::nodes) struct Gate(Option<Ready>);

struct Ready {
    context: Arc<StepContext>,
    tag: Tag,
    part: Node,
}

/// Why this node's part does not begin.
enum Obstacle {
    Poisoned(Arc<Failure>),
    Cancelled(Arc<Failure>),
}

impl Gate {
    pub(in crate::execute::nodes) fn new(context: &Arc<StepContext>, task: TaskId, part: &Node) -> Self {
        let tag = Tag::new(task.0, NO_OBJECT, kind::GATE);
        Self(Some(Ready { context: Arc::clone(context), tag, part: part.clone() }))
    }
}

impl Ready {
    /// The obstacle that this node finds before the messages of the others arrive. Commits the part if there
    /// is none.
    fn obstacle(&self) -> Option<Obstacle> {
        let part = self.part.part.as_ref().expect("the node of a part");
        let poison = &self.context.poison;
        if poison.is_any()
            && let Some(failure) = poison.of(part)
        {
            return Some(Obstacle::Poisoned(failure));
        }
        if self.part.commit() {
            return None;
        }
        let failure = Failure::new(part.task, self.part.label.clone(), Cause::Cancelled);
        Some(Obstacle::Cancelled(Arc::new(failure.on(Some(part.node)))))
    }

    /// Decides when this node has the messages of all others.
    fn decide(&self, own: Option<Obstacle>, said: &[Said]) -> Result<(), Arc<NodeError>> {
        let StepContext { cluster, locations, .. } = &*self.context;
        let mut failures = Vec::with_capacity(said.len() + 1);
        for said in said {
            let read = notes::read(said, locations);
            failures.push(read.ok_or_else(|| cluster.stop(unreadable(said)))?.1);
        }
        match own {
            Some(Obstacle::Cancelled(_)) => return Ok(()),
            Some(Obstacle::Poisoned(failure)) => failures.push(failure),
            None => {}
        }
        match failures.into_iter().min_by_key(Failure::age) {
            Some(failure) => drop(self.part.poison_with(&failure)),
            None => self.part.permit(),
        }
        Ok(())
    }
}

impl Body for Gate {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a meeting is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let ready = self.0.take().expect(ONCE);
        let own = ready.obstacle();
        let tell = own.as_ref().map(|(Obstacle::Poisoned(failure) | Obstacle::Cancelled(failure))| {
            // This calls functions of the program, for the messages of its errors.
            notes::of_failure(failure)
        });
        let (context, tag, completion) = (Arc::clone(&ready.context), ready.tag, later.completion());
        let then: Then = Box::new(move |result| {
            let result = result.and_then(|said| ready.decide(own, &said));
            let_go(ready);
            end_all(vec![completion], &result);
        });
        context.cluster.enter(tag, tell, then);
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}
