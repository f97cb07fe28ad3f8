//! The command graph of one node.

use super::{
    buffer::BufferState,
    derive::Derivation,
    digest::digest,
    effects::Effects,
    error::CommandError,
    front::Front,
    launch::Launch,
    memo::Memo,
    shape::Shape,
    slots::BufferSlots,
    turn::{Nodes, nodes_of},
    types::{Command, CommandId, CommandKind, Context, NodeId, Rank},
    versions::Done,
    weights::Weights,
};
use crate::{
    rolling_hash::RollingHash,
    task::{BufferId, Effect, ObjectId, Order, TaskId},
};
use anabranch_grid::{Extent, Region};

/// The nodes that get the turns of a launch, and what this node does for that.
struct Turns {
    next: Nodes,
    passes: Vec<CommandKind>,
}

/// Derives one node's commands from the tasks of the program: see the [module](crate::command) docs.
///
/// The graph keeps only what later commands can depend on, not the commands themselves.
pub struct CommandGraph {
    rank: Rank,
    /// Unless all nodes have the same.
    weights: Option<Weights>,
    buffers: BufferSlots,
    memo: Memo,
    effects: Effects,
    hash: RollingHash,
    front: Front,
    /// The commands of the last launch.
    commands: Vec<Command>,
    /// The memory of the last derivation's shape, to save allocations.
    scratch: Option<Box<Shape>>,
}

impl CommandGraph {
    /// The largest number of nodes that a program can run on.
    pub const MAX_NODES: u16 = 4096;

    /// Creates the graph of `node`, one of `nodes` nodes. It holds the root epoch, [`CommandId::EPOCH`].
    ///
    /// # Panics
    /// If `nodes` is not from 1 to 4,096, or `node` not one of them.
    pub fn new(node: NodeId, nodes: u16) -> Self {
        let most = Self::MAX_NODES;
        assert!((1..=most).contains(&nodes), "{nodes} nodes: there must be 1 to {most}");
        assert!(node.0 < nodes, "{node} is not one of {nodes} nodes");
        Self {
            rank: Rank { me: node, nodes },
            weights: None,
            buffers: BufferSlots::default(),
            memo: Memo::default(),
            effects: Effects::default(),
            hash: RollingHash::default(),
            front: Front::new(),
            commands: Vec::new(),
            scratch: None,
        }
    }

    /// The node that executes the commands of this graph.
    pub fn node(&self) -> NodeId {
        self.rank.me
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u16 {
        self.rank.nodes
    }

    /// The hash of everything that was created and submitted. Nodes that run the same program have equal
    /// hashes.
    pub fn program_hash(&self) -> u64 {
        self.hash.value()
    }

    /// Sets the weights of the nodes for later launches: the shares of the nodes in index spaces that they
    /// divide, of kernels and of host functions for each chunk. At first all weights are equal. The chunks of
    /// a launch with reductions consist of whole leaves; the leaves, and so the results, do not depend on the
    /// weights.
    ///
    /// ```
    /// use anabranch_graph::command::{CommandGraph, Hints, NodeId, Weights, Work, part_of_node};
    /// use anabranch_grid::GridBox;
    ///
    /// let mut graph = CommandGraph::new(NodeId(1), 3);
    /// let work = Work::Kernel { space: GridBox::full([9, 8, 1]) };
    /// let rows = |graph: &CommandGraph| part_of_node(&work, &Hints::default(), NodeId(1), 3, None, graph.weights()).chunk;
    /// assert_eq!(rows(&graph), Some(GridBox::new([3, 0, 0], [6, 8, 1])));
    /// graph.set_weights(&Weights::new(&[1.0, 6.0, 2.0]).unwrap());
    /// assert_eq!(rows(&graph), Some(GridBox::new([1, 0, 0], [7, 8, 1])));
    /// ```
    ///
    /// # Panics
    /// If there is not one weight for each node.
    pub fn set_weights(&mut self, weights: &Weights) {
        let (given, nodes) = (weights.nodes(), self.nodes());
        assert!(given == usize::from(nodes), "{given} weights for {nodes} nodes: give one to each node");
        [12].into_iter().chain(weights.words()).for_each(|word| self.hash.add(word));
        self.weights = (!weights.are_equal()).then(|| weights.clone());
    }

    /// The weights of the nodes that hold for the next launch, unless all are equal.
    pub fn weights(&self) -> Option<&Weights> {
        self.weights.as_ref()
    }

    /// Adds a buffer of the task graph. If it is `initialised`, every node has its contents from the start.
    ///
    /// # Panics
    /// If the buffer is part of the graph already.
    pub fn create_buffer(&mut self, buffer: BufferId, extent: Extent<3>, initialised: bool) {
        self.buffers.insert(buffer, BufferState::new(extent, initialised));
        [1, buffer.0, initialised.into()].into_iter().for_each(|word| self.hash.add(word));
        extent.0.into_iter().for_each(|size| self.hash.add(size as u64));
    }

    /// Removes a buffer. No later task can access it; earlier commands that access it remain valid.
    ///
    /// This is no part of the [program hash](Self::program_hash): a buffer is removed when the last handle to
    /// it is dropped, perhaps by a task, and that is at another time on each node.
    pub fn remove_buffer(&mut self, buffer: BufferId) {
        self.buffers.remove(buffer);
    }

    /// Sets how many memories a buffer may have on this node at a time: at least 1, and 1 by default. See the
    /// [module](crate::command#versions-and-discards) docs. This is no part of the program hash.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn set_versions(&mut self, buffer: BufferId, versions: usize) {
        self.buffers.set_versions(buffer, versions);
    }

    /// The number of the memory of this node that holds a buffer, from 0. All commands of the last launch
    /// that access the buffer use this memory.
    pub fn version(&self, buffer: BufferId) -> u32 {
        self.buffers.version(buffer)
    }

    /// Discards the contents of a buffer on all nodes. A task that reads them before they are written again
    /// is an error.
    ///
    /// A discard turns several tasks that each write a part into one complete overwrite. If commands of this
    /// node still read the contents and are not `done`, and the buffer has [versions](Self::set_versions), it
    /// goes on with another memory.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn discard(&mut self, buffer: BufferId, done: &dyn Fn(CommandId) -> bool) {
        self.buffers.discard(buffer, done);
        [4, buffer.0].into_iter().for_each(|word| self.hash.add(word));
    }

    /// Adds a host object of the task graph. Every node has an object of its own.
    pub fn create_object(&mut self, object: ObjectId) {
        self.effects.create(object);
        [3, object.0].into_iter().for_each(|word| self.hash.add(word));
    }

    /// Adds a host object of the task graph that exists once, on the node `home`. The effects on it are
    /// ordered over all nodes.
    ///
    /// Exclusive and relaxed effects of tasks that run on the home alone are ordered like those on any
    /// object. All parts of another task come after all parts of the last one, whatever their orders are.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn create_cluster_object(&mut self, object: ObjectId, home: NodeId) {
        assert!(home.0 < self.rank.nodes, "{home} is not one of {} nodes", self.rank.nodes);
        self.effects.create_on(object, home);
        [5, object.0, home.0.into()].into_iter().for_each(|word| self.hash.add(word));
    }

    /// Removes a host object. No later task can touch it. As with a [buffer](Self::remove_buffer), this is no
    /// part of the program hash.
    pub fn remove_object(&mut self, object: ObjectId) {
        self.effects.remove(object);
    }

    /// The part of a buffer that this node owns: it has the current contents, and sends them to nodes that
    /// need them. The points that no node owns are current on all nodes, or were never written, or are a
    /// pending reduction.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn owned(&self, buffer: BufferId) -> Region<3> {
        let state = self.buffers.state(buffer);
        state.owned(&state.whole().into())
    }

    /// The part of a buffer whose current contents this node has.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn current(&self, buffer: BufferId) -> Region<3> {
        let state = self.buffers.state(buffer);
        let whole = Region::from(state.whole());
        whole.difference(&state.missing(&whole))
    }

    /// The part of a buffer that is a pending reduction: no node has combined its partial results yet.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn pending(&self, buffer: BufferId) -> Region<3> {
        let pending = &self.buffers.state(buffer).pending;
        pending.as_ref().map_or(Region::empty(), |pending| pending.region.clone())
    }

    /// Submits the next task. Returns this node's commands for it, in an order that keeps their dependencies.
    /// There are none if this node has no part in the task.
    ///
    /// This is [`launch_after`](Self::launch_after) without knowledge of what is done.
    ///
    /// # Errors
    /// See [`CommandError`]; the graph is then as before.
    ///
    /// # Panics
    /// If a buffer, host object or node is not (or no longer) part of the graph, or a hint is 0.
    pub fn launch(&mut self, launch: &Launch) -> Result<&[Command], CommandError> {
        self.launch_after(launch, &|_| false)
    }

    /// Like [`launch`](Self::launch), with the knowledge which commands of this node are `done`: they are no
    /// reason to go on with another [version](Self::set_versions) of a buffer.
    ///
    /// # Errors
    /// See [`launch`](Self::launch).
    ///
    /// # Panics
    /// See [`launch`](Self::launch).
    pub fn launch_after(
        &mut self,
        launch: &Launch,
        done: &dyn Fn(CommandId) -> bool,
    ) -> Result<&[Command], CommandError> {
        self.commands.clear();
        let turns = if launch.effects.is_empty() { None } else { self.turns(launch) };
        let context = self.context(launch.task, turns.as_deref());
        match launch.work.snapshot() {
            Some(kind) if launch.is_without_data() => {
                self.hash.add(launch.work.code());
                self.commands.push(Command::new(CommandId(context.first), launch.task, kind));
            }
            _ if !launch.is_without_data() && self.recall(launch, &context, done)? => {}
            _ => self.derive(launch, context, done)?,
        }
        self.hash.add(launch.task.0);
        if let Some(turns) = turns {
            self.pass_turns(launch, *turns);
        }
        if !launch.effects.is_empty() {
            self.add_effects(launch.effects);
        }
        self.commands.iter_mut().for_each(|command| self.front.add(command));
        self.buffers.note_pushes(&self.commands);
        Ok(&self.commands)
    }

    /// Recalls the commands of a launch that repeats an earlier one. Returns whether they were known.
    fn recall(&mut self, launch: &Launch, context: &Context, done: Done<'_>) -> Result<bool, CommandError> {
        let (weights, buffers) = (self.weights.as_ref(), &mut self.buffers);
        let digest = self.memo.launch(launch, context, weights, buffers, &mut self.commands, done)?;
        digest.into_iter().for_each(|digest| self.hash.add(digest));
        Ok(digest.is_some())
    }

    /// Derives the commands of a launch.
    fn derive(&mut self, launch: &Launch, context: Context, done: Done<'_>) -> Result<(), CommandError> {
        let mut shape = self.scratch.take().unwrap_or_default();
        let weights = self.weights.as_ref();
        shape.evaluate(context.rank, weights, launch, |buffer| self.buffers.extent(buffer))?;
        let slots = self.buffers.slots_of(&shape.buffers);
        shape.check_written(launch.task, |operand| self.buffers.state_in(slots[operand]))?;
        if self.buffers.have_versions() {
            self.buffers.leave_overwritten(&shape, done);
        }
        slots.iter().for_each(|&slot| self.buffers.make_live(slot));
        self.hash.add(digest(launch, &shape));
        Derivation::new(context, &shape, self.buffers.operands(&slots), &mut self.commands).run(&launch.work);
        shape.clear();
        self.scratch = Some(shape);
        Ok(())
    }

    /// The point of the program at which the commands of a task are generated, behind those that pass turns.
    fn context(&self, task: TaskId, turns: Option<&Turns>) -> Context {
        let first = self.front.next() + turns.map_or(0, |turns| turns.passes.len() as u64);
        Context { rank: self.rank, task, applied: self.front.applied(), first }
    }

    /// The nodes of a launch, and what this node does to pass turns to them, if the launch has effects on
    /// objects of the whole cluster.
    fn turns(&self, launch: &Launch) -> Option<Box<Turns>> {
        if !self.effects.have_turns(launch.effects) {
            return None;
        }
        let extents = launch.reductions.iter().map(|reduction| self.buffers.extent(reduction.buffer).len());
        let next = nodes_of(launch, self.rank, extents.max(), self.weights.as_ref());
        let passes = self.effects.passes(launch.effects, self.rank.me, &next);
        Some(Turns { next, passes }.into())
    }

    /// Puts the commands that pass turns in front of all others.
    fn pass_turns(&mut self, launch: &Launch, Turns { next, passes }: Turns) {
        let ids = (self.front.next()..).map(CommandId);
        let commands = ids.zip(passes).map(|(id, kind)| Command::new(id, launch.task, kind));
        self.commands.splice(0..0, commands);
        self.effects.pass_to(&next, launch);
    }

    /// Orders the new commands by their effects on host objects.
    fn add_effects(&mut self, effects: &[Effect]) {
        for effect in effects {
            let order = match effect.order {
                Order::Sequential => 0,
                Order::Exclusive => 1,
                Order::Relaxed => 2,
                Order::Observe => 3,
            };
            self.hash.add(effect.object.0 << 2 | order);
        }
        self.effects.add(effects, &mut self.commands, self.front.applied());
    }
}
