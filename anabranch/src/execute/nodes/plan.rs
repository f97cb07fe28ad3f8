//! The plan of a program on several nodes: what this node does, and what is known of the others.

use super::steps::{context::StepContext, partials::Reductions};
use crate::{
    cluster::Cluster,
    data::partials::Shares,
    error::{Error, NodeError},
};
use anabranch_graph::{
    BufferId, ObjectId,
    command::{
        CommandGraph, CommandId, Hints, NodeId, Part, Weights, Work, leaves_by_node, part_of_node,
        pieces_of_node,
    },
};
use anabranch_grid::{Extent, GridBox};
use parking_lot::Mutex;
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// What a runtime has only with several nodes.
pub(crate) struct Nodes {
    pub(super) context: Arc<StepContext>,
    /// The command graph of this node, unless the submitting thread has it.
    plan: Mutex<Option<Box<CommandGraph>>>,
    /// Buffers and host objects whose last handles were dropped. The last handle may go at another time on
    /// another node.
    gone: Mutex<Vec<Gone>>,
    /// How often the program has set weights of the nodes.
    pub(super) times_weighted: AtomicU64,
    /// The reductions that no task has read yet.
    pub(super) reductions: Reductions,
}

/// A number of elements that a task reduces to. It does not matter, because the hints say how many leaves
/// there are.
const REDUCED: usize = 1;

/// The call that sets weights of the nodes.
pub(super) const SET_WEIGHTS: &str = "Runtime::set_weights";

enum Gone {
    Buffer(BufferId),
    Object(ObjectId),
}

impl Nodes {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        let graph = CommandGraph::new(NodeId(cluster.node()), cluster.nodes());
        Self {
            context: StepContext::new(cluster),
            plan: Mutex::new(Some(Box::new(graph))),
            gone: Mutex::default(),
            times_weighted: AtomicU64::new(0),
            reductions: Reductions::default(),
        }
    }

    /// This node's end of the transport.
    #[inline]
    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.context.cluster
    }

    /// The weights of the nodes, unless all are equal. Inside a range mapper there are none: the task will be
    /// refused.
    fn weights(&self) -> Option<Weights> {
        self.plan.lock().as_ref().and_then(|graph| graph.weights().cloned())
    }

    /// The part of a task that this node executes.
    pub(crate) fn part(&self, work: &Work, hints: &Hints, reduces: bool) -> Part {
        let (reduced, weights) = (reduces.then_some(REDUCED), self.weights());
        let (node, nodes) = (NodeId(self.cluster().node()), self.cluster().nodes());
        part_of_node(work, hints, node, nodes, reduced, weights.as_ref())
    }

    /// How often the program has set weights of the nodes, and so may have changed the parts of later tasks.
    pub(crate) fn times_weighted(&self) -> u64 {
        self.times_weighted.load(Relaxed)
    }

    /// The boxes of the pieces in which this node executes its part of a kernel.
    pub(crate) fn pieces(&self, work: &Work, hints: &Hints) -> Vec<GridBox<3>> {
        let (node, nodes) = (NodeId(self.cluster().node()), self.cluster().nodes());
        pieces_of_node(work, hints, node, nodes, self.weights().as_ref()).collect()
    }

    /// Which node has which partial results of a task with reductions. Each leaf of the command graph is
    /// `each` leaves of the tree.
    pub(crate) fn shares(&self, work: &Work, hints: &Hints, each: u32) -> Shares {
        let me = NodeId(self.cluster().node());
        let weights = self.weights();
        let leaves = leaves_by_node(work, hints, self.cluster().nodes(), REDUCED, weights.as_ref());
        Shares::new(me, leaves.map(|(node, run)| (node, run.start * each..run.end * each)))
    }

    pub(in crate::execute) fn create_buffer(&self, id: BufferId, extent: Extent<3>, initialised: bool) {
        self.change(|graph| graph.create_buffer(id, extent, initialised));
    }

    pub(in crate::execute) fn create_object(&self, id: ObjectId, home: Option<u16>) {
        self.change(|graph| match home {
            None => graph.create_object(id),
            Some(home) => graph.create_cluster_object(id, NodeId(home)),
        });
    }

    pub(in crate::execute) fn set_versions(&self, id: BufferId, versions: usize) {
        self.change(|graph| graph.set_versions(id, versions));
    }

    /// Discards the contents of a buffer. `done` says which commands are.
    pub(in crate::execute) fn discard(&self, id: BufferId, done: &dyn Fn(CommandId) -> bool) {
        self.change(|graph| graph.discard(id, done));
    }

    pub(in crate::execute) fn remove_buffer(&self, id: BufferId) {
        self.gone.lock().push(Gone::Buffer(id));
    }

    pub(in crate::execute) fn remove_object(&self, id: ObjectId) {
        self.gone.lock().push(Gone::Object(id));
    }

    /// Changes the command graph. A change inside a range mapper, which is not the same on all nodes, ends
    /// the run.
    fn change(&self, change: impl FnOnce(&mut CommandGraph)) {
        if let Some(graph) = &mut *self.plan.lock() {
            return change(graph);
        }
        let why = "a range mapper has created or changed a buffer or a host object".into();
        self.cluster().stop(NodeError::Here { why });
    }

    /// The turn of the submitting thread.
    ///
    /// # Errors
    /// [`Error::SubmitterOnly`] inside a range mapper.
    pub(super) fn begin_turn(&self, call: impl FnOnce() -> String) -> Result<Turn<'_>, Error> {
        let Some(mut graph) = self.plan.lock().take() else {
            return Err(Error::SubmitterOnly { call: call(), place: "inside a range mapper" });
        };
        let all_gone = mem::take(&mut *self.gone.lock());
        for gone in all_gone {
            match gone {
                Gone::Buffer(id) => {
                    graph.remove_buffer(id);
                    self.reductions.remove(id);
                    self.context.poison.remove_buffer(id);
                }
                Gone::Object(id) => {
                    graph.remove_object(id);
                    self.context.poison.remove_object(id);
                }
            }
        }
        Ok(Turn { nodes: self, graph: Some(graph) })
    }
}

/// The time in which one thread has the command graph, and holds no lock.
pub(super) struct Turn<'n> {
    nodes: &'n Nodes,
    graph: Option<Box<CommandGraph>>,
}

impl Turn<'_> {
    pub(super) fn graph(&mut self) -> &mut CommandGraph {
        self.graph.as_mut().expect("the graph is here until the turn ends")
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.nodes.plan.lock() = self.graph.take();
    }
}
