//! Bodies of the steps in which all nodes exchange their parts of a buffer: in place of pushes and awaits, if
//! every node gets the parts of all.
//!
//! If several nodes have parts, all nodes gather them; if one has all, it broadcasts it. Either way a node
//! sends a number of messages that grows with the logarithm of the nodes. If parts are [large](is_large),
//! each node pushes its own part to every other node instead.
//!
//! # Failures
//! A node whose part is poisoned, wholly or in places, cannot say in the exchange which of its contents are
//! good: other nodes pass them on, and know only the part as a whole. So:
//!
//! 1. In the exchange it gives an empty note in place of its part.
//! 2. When the exchange is over, all nodes know which nodes have given notes. These nodes *push* their parts
//!    to each other node, with the good contents as data and with the failures as notes, as in
//!    [`transfer`](super::transfer). The other nodes await that.

use super::{
    context::StepContext,
    joint_transfer::JointTransfer,
    transfer::{Contents, ONCE, end_all, read_failures, tag},
};
use crate::{
    cluster::{Said, Then, is_large, kind, let_go},
    data::stored::Version,
    error::{Cause, Failure, NodeError},
    execute::{
        Body, Compute,
        task::node::{Completion, Later},
    },
};
use anabranch_graph::{BufferId, TaskId, command::NodeId};
use anabranch_grid::Region;
use anabranch_wire::{Begun, Endpoint, Layout, Memory, MemoryMut, Tag, WireError};
use smallvec::SmallVec;
use std::sync::Arc;

/// The parts of a buffer that all nodes get, and the steps of this node that exchange them.
pub(in crate::execute::nodes) struct Exchange {
    context: Arc<StepContext>,
    task: TaskId,
    buffer: Version,
    /// The parts, by ascending node. None of them is empty.
    parts: Arc<[(NodeId, Region<3>)]>,
    steps: JointTransfer,
}

impl Exchange {
    /// The exchange of these parts in this number of steps of this node.
    pub(in crate::execute::nodes) fn new(
        context: &Arc<StepContext>,
        task: TaskId,
        buffer: Version,
        parts: &Arc<[(NodeId, Region<3>)]>,
        steps: usize,
    ) -> Arc<Self> {
        let (context, parts) = (Arc::clone(context), Arc::clone(parts));
        Arc::new(Self { context, task, buffer, parts, steps: JointTransfer::new(steps) })
    }

    /// Whether this is the exchange for the task in this buffer.
    pub(in crate::execute::nodes) fn is_of(&self, task: TaskId, buffer: BufferId) -> bool {
        (self.task, self.buffer.id()) == (task, buffer)
    }

    /// The part of this node, if it has one.
    fn own(&self) -> Option<&Region<3>> {
        self.part_of(self.context.cluster.node())
    }

    fn part_of(&self, node: u16) -> Option<&Region<3>> {
        self.parts.iter().find(|(of, _)| of.0 == node).map(|(_, part)| part)
    }

    /// Whether some of this node's part is poisoned.
    fn is_poisoned(&self) -> bool {
        let StepContext { poison, .. } = &*self.context;
        self.own().is_some_and(|own| !poison.within(self.buffer.key(), own).is_empty())
    }

    /// Whether all nodes push their parts.
    fn is_large(&self) -> bool {
        let most = self.parts.iter().map(|(_, part)| part.len()).max().unwrap_or(0);
        self.parts.len() > 1 && is_large(most * self.buffer.element(), self.context.cluster.nodes())
    }

    /// The regions that come from other nodes.
    fn awaited(&self) -> SmallVec<[Region<3>; 1]> {
        let me = self.context.cluster.node();
        self.parts.iter().filter(|(node, _)| node.0 != me).map(|(_, part)| part.clone()).collect()
    }

    /// Where the parts of each node lie.
    fn layouts(&self) -> Vec<Vec<Layout>> {
        let mut parts = vec![Vec::new(); self.context.cluster.nodes().into()];
        for (node, part) in &*self.parts {
            parts[usize::from(node.0)] = self.buffer.layouts(part);
        }
        parts
    }

    /// Begins the pattern. `parts` are the layouts of all nodes.
    fn begin_on(
        &self,
        endpoint: &mut Endpoint,
        parts: &[Vec<Layout>],
        is_poisoned: bool,
    ) -> Result<Begun, WireError> {
        let tag = Tag::new(self.task.0, self.buffer.id().0, kind::EXCHANGE);
        // SAFETY: the memory was attached when the task was submitted, and stays as long as the buffer, which
        // the cluster keeps until the transfers are over or the endpoint is gone. The steps of this exchange
        // have begun. Until they end, the graph lets no other step of this node write this node's part, or
        // use the other parts. All nodes exchange the same parts, because their graphs derive them from the
        // same launches.
        let memory = unsafe { MemoryMut::new(self.buffer.start(), self.buffer.bytes()) };
        match (&*self.parts, is_poisoned) {
            ([(root, _)], true) => endpoint.broadcast_note(tag, memory, &parts[usize::from(root.0)], &[]),
            ([(root, _)], false) => endpoint.broadcast(root.0, tag, memory, &parts[usize::from(root.0)]),
            (_, true) => endpoint.gather_note(tag, memory, parts, &[]),
            (_, false) => endpoint.gather(tag, memory, parts),
        }
    }

    /// Exchanges the parts. Nodes whose parts are poisoned push them afterwards.
    fn exchange(self: Arc<Self>, completions: Vec<Completion>) {
        let is_poisoned = self.is_poisoned();
        let (context, memory) = (Arc::clone(&self.context), Arc::clone(&self.buffer.buffer));
        let (begins, parts, me) = (Arc::clone(&self), self.layouts(), context.cluster.node());
        let then: Then = Box::new(move |result| match result {
            Ok(said) => {
                let poisoned: Vec<_> =
                    said.iter().map(|said| said.node).chain(is_poisoned.then_some(me)).collect();
                match poisoned.is_empty() {
                    true => self.ends(&[], completions),
                    false => self.push(&poisoned, completions),
                }
            }
            Err(why) => self.fails(why, completions),
        });
        context.cluster.transfer(Arc::new(memory), then, move |endpoint, begun| {
            begun.push(begins.begin_on(endpoint, &parts, is_poisoned)?);
            Ok(())
        });
    }

    /// These nodes push their parts to all others.
    fn push(self: Arc<Self>, nodes: &[u16], completions: Vec<Completion>) {
        let (context, buffer) = (Arc::clone(&self.context), self.buffer.clone());
        let (me, all) = (context.cluster.node(), context.cluster.nodes());
        let own = self.own().filter(|_| nodes.contains(&me)).map(|own| Contents::new(&context, &buffer, own));
        let others = nodes.iter().filter(|&&node| node != me);
        let points = others.filter_map(|&node| self.part_of(node)).map(Region::len).sum::<usize>();
        let bytes = points * buffer.element();
        let tag = tag(self.task, &*buffer);
        // SAFETY: as in `begin_on`. If there was an exchange, it is over, so that nothing else uses the
        // memory of these parts.
        let memory = unsafe { MemoryMut::new(buffer.start(), buffer.bytes()) };
        // SAFETY: as above.
        let to_read = unsafe { Memory::new(buffer.start(), buffer.bytes()) };
        let then: Then = Box::new(move |result| match result {
            Ok(said) => self.ends(&said, completions),
            Err(why) => self.fails(why, completions),
        });
        context.cluster.transfer(Arc::new(buffer.buffer), then, |endpoint, begun| {
            if bytes > 0 {
                begun.push(endpoint.expect(tag, memory, bytes)?);
            }
            if let Some(contents) = &own {
                let mut others = (0..all).filter(|&node| node != me);
                others.try_for_each(|node| contents.send(node, tag, to_read, endpoint, begun))?;
            }
            Ok(())
        });
    }

    /// All parts have come, or failures in their place.
    fn ends(self: Arc<Self>, said: &[Said], completions: Vec<Completion>) {
        match read_failures(&self.context, said) {
            Ok(failures) => {
                self.context.poison.replace(self.buffer.key(), &self.awaited(), &failures);
                let_go(self);
                end_all(completions, &Ok(()));
            }
            Err(why) => self.fails(why, completions),
        }
    }

    fn fails(self: Arc<Self>, why: Arc<NodeError>, completions: Vec<Completion>) {
        let_go(self);
        end_all(completions, &Err(why));
    }
}

/// Takes part in an exchange: in place of [`Push`](super::transfer::Push) and of
/// [`AwaitPush`](super::transfer::AwaitPush).
pub(in crate::execute::nodes) struct TakePart(pub(in crate::execute::nodes) Option<Arc<Exchange>>);

impl Body for TakePart {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        unreachable!("a transfer is begun")
    }

    fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
        let exchange = self.0.take().expect(ONCE);
        let Some(completions) = exchange.steps.begin(0, later)? else { return Ok(()) };
        if exchange.is_large() {
            let nodes: Vec<u16> = exchange.parts.iter().map(|(node, _)| node.0).collect();
            exchange.push(&nodes, completions);
        } else {
            exchange.exchange(completions);
        }
        Ok(())
    }

    fn skip(&mut self, why: &Arc<Failure>) {
        if let Some(exchange) = self.0.take() {
            exchange.steps.skip(why);
        }
    }
}
