//! The command graph of one node.

use super::{
    buffer::BufferState,
    derive::Derivation,
    effects::Effects,
    hash::{Map, Rolling},
    launch::{CommandError, Launch, Work},
    shape::Shape,
    types::{Command, CommandId, CommandKind, NodeId},
};
use crate::{BufferId, Kind, ObjectId, Order, TaskId};
use anabranch_grid::{Extent, Region};
use smallvec::SmallVec;

/// Derives one node's commands from the tasks of the program: see the [module](crate::command) docs.
///
/// Only what later commands can depend on is kept; commands themselves are not.
pub struct CommandGraph {
    me: NodeId,
    nodes: u16,
    buffers: Map<BufferId, usize>,
    states: Vec<Option<BufferState>>,
    free: Vec<usize>,
    effects: Effects,
    hash: Rolling,
    /// The horizon or epoch that stands for all commands before it.
    applied: CommandId,
    /// The last epoch.
    epoch: CommandId,
    /// The last horizon or epoch, which is applied when the next is told.
    horizon: CommandId,
    /// Whether a later command depends on it, for each command from the last horizon on.
    followed: Vec<bool>,
    next: u64,
    /// The commands of the last launch.
    commands: Vec<Command>,
}

impl CommandGraph {
    /// The most nodes that a program can run on.
    pub const MAX_NODES: u16 = 4096;

    /// The graph of one of `nodes` nodes. It holds the root epoch, [`CommandId::EPOCH`].
    ///
    /// # Panics
    /// If `nodes` is not from 1 to 4,096, or `node` not one of them.
    pub fn new(node: NodeId, nodes: u16) -> Self {
        assert!(
            (1..=Self::MAX_NODES).contains(&nodes),
            "{nodes} nodes: there must be 1 to {}",
            Self::MAX_NODES
        );
        assert!(node.0 < nodes, "{node} is not one of {nodes} nodes");
        Self {
            me: node,
            nodes,
            buffers: Map::default(),
            states: Vec::new(),
            free: Vec::new(),
            effects: Effects::default(),
            hash: Rolling::default(),
            applied: CommandId::EPOCH,
            epoch: CommandId::EPOCH,
            horizon: CommandId::EPOCH,
            followed: vec![false],
            next: 1,
            commands: Vec::new(),
        }
    }

    /// The node whose commands these are.
    pub fn node(&self) -> NodeId {
        self.me
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u16 {
        self.nodes
    }

    /// A hash of everything that was submitted: every node that runs the same program has the same.
    pub fn program_hash(&self) -> u64 {
        self.hash.value()
    }

    /// A buffer of the task graph. `initialised`: its contents are on every node from the start.
    ///
    /// # Panics
    /// If the buffer is part of the graph already.
    pub fn create_buffer(&mut self, buffer: BufferId, extent: Extent<3>, initialised: bool) {
        let state = Some(BufferState::new(extent, initialised));
        let slot = self.free.pop().unwrap_or(self.states.len());
        if slot == self.states.len() {
            self.states.push(state);
        } else {
            self.states[slot] = state;
        }
        assert!(self.buffers.insert(buffer, slot).is_none(), "buffer {} exists already", buffer.0);
        [1, buffer.0, initialised.into()].into_iter().for_each(|word| self.hash.add(word));
        extent.0.into_iter().for_each(|size| self.hash.add(size as u64));
    }

    /// Forgets a buffer. No later task can access it; commands that do remain valid.
    pub fn remove_buffer(&mut self, buffer: BufferId) {
        if let Some(slot) = self.buffers.remove(&buffer) {
            self.states[slot] = None;
            self.free.push(slot);
        }
        [2, buffer.0].into_iter().for_each(|word| self.hash.add(word));
    }

    /// A host object of the task graph. Every node has its own.
    pub fn create_object(&mut self, object: ObjectId) {
        self.effects.create(object);
        [3, object.0].into_iter().for_each(|word| self.hash.add(word));
    }

    /// Forgets a host object. No later task can touch it.
    pub fn remove_object(&mut self, object: ObjectId) {
        self.effects.remove(object);
        [4, object.0].into_iter().for_each(|word| self.hash.add(word));
    }

    /// The part of a buffer that this node owns: it has the current contents, and sends them to who needs them. What no
    /// node owns is on all of them, or nowhere, or a reduction that is pending.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn owned(&self, buffer: BufferId) -> Region<3> {
        let state = self.state(buffer);
        state.owned(&state.whole().into())
    }

    /// The part of a buffer whose current contents this node has.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn current(&self, buffer: BufferId) -> Region<3> {
        let state = self.state(buffer);
        let whole = Region::from(state.whole());
        whole.difference(&state.missing(&whole))
    }

    /// The part of a buffer that is a reduction whose partial results nobody has combined yet.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn pending(&self, buffer: BufferId) -> Region<3> {
        self.state(buffer).pending.as_ref().map_or(Region::empty(), |pending| pending.region.clone())
    }

    fn state(&self, buffer: BufferId) -> &BufferState {
        let slot = self.buffers.get(&buffer).expect("a buffer of this graph");
        self.states[*slot].as_ref().expect("a buffer of this graph")
    }

    /// Tells the graph of the next task. The commands of this node that it takes, in an order that keeps their
    /// dependencies; none where this node has no part in it.
    ///
    /// # Errors
    /// See [`CommandError`]; the graph is then as before.
    ///
    /// # Panics
    /// If a buffer, host object or node is not (or no longer) part of the graph, or a hint is 0.
    pub fn launch(&mut self, launch: &Launch) -> Result<&[Command], CommandError> {
        let shape = Shape::new(self.me, self.nodes, launch, |buffer| self.state(buffer).cells.extent())?;
        self.check_written(launch.task, &shape)?;
        self.add_to_hash(launch, &shape);
        self.derive(launch, &shape);
        if !launch.effects.is_empty() {
            self.effects.launch(launch.effects, &mut self.commands, self.applied);
        }
        self.settle();
        Ok(&self.commands)
    }

    fn check_written(&self, task: TaskId, shape: &Shape) -> Result<(), CommandError> {
        for access in shape.accesses.iter().filter(|access| access.mode.reads()) {
            let buffer = shape.buffers[access.slot];
            let missing = self.state(buffer).nowhere(access.mine());
            if !missing.is_empty() {
                return Err(CommandError::NeverWritten { task, buffer, missing: missing.into() });
            }
        }
        Ok(())
    }

    fn derive(&mut self, launch: &Launch, shape: &Shape) {
        let slots: SmallVec<[usize; 4]> = shape.buffers.iter().map(|buffer| self.buffers[buffer]).collect();
        self.commands.clear();
        let mut derivation = Derivation {
            me: self.me,
            nodes: self.nodes,
            task: launch.task,
            shape,
            states: &mut self.states,
            slots: &slots,
            applied: self.applied,
            first: self.next,
            out: &mut self.commands,
        };
        match launch.work {
            Work::Fence => derivation.snapshot(CommandKind::Fence),
            Work::Epoch => derivation.snapshot(CommandKind::Epoch),
            Work::Horizon => derivation.snapshot(CommandKind::Horizon),
            _ => derivation.chunks(),
        }
    }

    /// Settles the new commands' dependencies, and keeps track of who has followers.
    fn settle(&mut self) {
        for command in &mut self.commands {
            let bounds = matches!(command.kind, CommandKind::Epoch | CommandKind::Horizon);
            let front_start = self.next - self.followed.len() as u64;
            if bounds {
                let free = self.followed.iter().enumerate().filter(|(_, followed)| !**followed);
                free.for_each(|(at, _)| command.after(CommandId(front_start + at as u64), Kind::Serial));
            }
            command.settle(self.applied, self.epoch);
            self.next += 1;
            if bounds {
                self.followed.clear();
                self.applied = self.horizon;
                self.horizon = command.id;
                if command.kind == CommandKind::Epoch {
                    (self.applied, self.epoch) = (command.id, command.id);
                }
            } else {
                for dependency in &command.dependencies {
                    if let Some(at) = dependency.on.0.checked_sub(front_start) {
                        self.followed[at as usize] = true;
                    }
                }
            }
            self.followed.push(false);
        }
    }

    fn add_to_hash(&mut self, launch: &Launch, shape: &Shape) {
        let hash = &mut self.hash;
        let kind = match launch.work {
            Work::Kernel { .. } => 5,
            Work::HostChunks { .. } => 6,
            Work::HostOnce => 7,
            Work::Collective => 8,
            Work::Fence => 9,
            Work::Epoch => 10,
            Work::Horizon => 11,
        };
        hash.add(kind);
        hash.add(launch.task.0);
        hash.add_box(&shape.split.space());
        let hints = &launch.hints;
        let node = hints.node.map_or(u64::MAX, |node| node.0.into());
        [
            hints.tiling as usize,
            hints.granularity[0],
            hints.granularity[1],
            hints.chunks_per_node,
            hints.leaves,
        ]
        .into_iter()
        .for_each(|word| hash.add(word as u64));
        hash.add(node);
        for access in &shape.accesses {
            hash.add(shape.buffers[access.slot].0);
            hash.add(access.mode as u64);
            hash.add_region(&access.whole);
        }
        for reduction in launch.reductions {
            hash.add(reduction.buffer.0 << 1 | u64::from(reduction.include_current));
        }
        for effect in launch.effects {
            let order = match effect.order {
                Order::Sequential => 0,
                Order::Exclusive => 1,
                Order::Relaxed => 2,
            };
            hash.add(effect.object.0 << 2 | order);
        }
    }
}
