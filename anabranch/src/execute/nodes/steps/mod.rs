//! Bodies of steps.

pub(super) mod context;
pub(super) mod exchange;
pub(super) mod gate;
mod joint_transfer;
pub(super) mod partials;
pub(super) mod transfer;
pub(super) mod turn;

use self::context::StepContext;
use crate::{
    error::{Cause, Failure, NodeError},
    execute::{Body, Compute, task::node::Later},
    label::TaskLabel,
};
use anabranch_graph::TaskId;
use std::sync::Arc;

/// The body of a step: the body of a task, which is skipped if the run on several nodes has ended, unless the
/// other nodes run their parts of it ([`gate`]).
pub(super) struct Step<B> {
    pub(super) id: TaskId,
    pub(super) label: TaskLabel,
    pub(super) context: Arc<StepContext>,
    /// Whether a [gate] comes before it, which must have permitted it.
    pub(super) has_gate: bool,
    pub(super) body: B,
}

impl<B: Body> Body for Step<B> {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a step is begun")
    }

    fn begin(&mut self, compute: &Compute, later: Later<'_>) -> Result<(), Cause> {
        if later.is_permitted() {
            return self.context.cluster.in_call(|| self.body.begin(compute, later));
        }
        let cluster = &self.context.cluster;
        let why = match cluster.stopped() {
            Some(why) => Arc::clone(why),
            None if self.has_gate => {
                let why = format!("{} cannot begin: the step before it has failed", self.label);
                cluster.stop(NodeError::Here { why })
            }
            None => return self.body.begin(compute, later),
        };
        let cause = Cause::Nodes(why);
        self.body.skip(&Arc::new(Failure::new(self.id, self.label.clone(), cause.clone())));
        Err(cause)
    }

    fn skip(&mut self, why: &Arc<Failure>) {
        self.body.skip(why);
    }
}

/// The body of a step that only has its place in the order.
pub(super) struct Nothing;

impl Body for Nothing {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {}
}
