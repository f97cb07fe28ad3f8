//! The command graph of one node.

use super::{
    buffer::BufferState,
    derive::Derivation,
    effects::Effects,
    error::CommandError,
    hash::Rolling,
    launch::Launch,
    layout::{Layouts, Parted},
    replay::{Replay, digest},
    shape::Shape,
    types::{Command, CommandId, CommandKind, NodeId},
};
use crate::task::{BufferId, Effect, Kind, ObjectId, Order};
use anabranch_grid::{Extent, Region};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Derives one node's commands from the tasks of the program: see the [module](crate::command) docs.
///
/// Only what later commands can depend on is kept; commands themselves are not.
pub struct CommandGraph {
    me: NodeId,
    nodes: u16,
    /// The slots of the buffers' states.
    buffers: FxHashMap<BufferId, usize>,
    states: States,
    replay: Replay,
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
    /// For launches that are not known, to save allocations.
    scratch: Option<Box<Shape>>,
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
            buffers: FxHashMap::default(),
            states: States::default(),
            replay: Replay::default(),
            effects: Effects::default(),
            hash: Rolling::default(),
            applied: CommandId::EPOCH,
            epoch: CommandId::EPOCH,
            horizon: CommandId::EPOCH,
            followed: vec![false],
            next: 1,
            commands: Vec::new(),
            scratch: None,
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
        let slot = self.states.insert(BufferState::new(extent, initialised));
        assert!(self.buffers.insert(buffer, slot).is_none(), "buffer {} exists already", buffer.0);
        [1, buffer.0, initialised.into()].into_iter().for_each(|word| self.hash.add(word));
        extent.0.into_iter().for_each(|size| self.hash.add(size as u64));
    }

    /// Forgets a buffer. No later task can access it; commands that do remain valid.
    pub fn remove_buffer(&mut self, buffer: BufferId) {
        if let Some(slot) = self.buffers.remove(&buffer) {
            self.states.remove(slot);
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
        self.states.get(*slot)
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
        self.commands.clear();
        let nothing = launch.accesses.is_empty() && launch.reductions.is_empty();
        match CommandKind::snapshot(&launch.work) {
            Some(kind) if nothing => {
                self.hash.add(launch.work.code());
                self.commands.push(Command::new(CommandId(self.next), launch.task, kind));
            }
            _ if nothing || !self.replay(launch)? => self.derive(launch)?,
            _ => {}
        }
        self.hash.add(launch.task.0);
        if !launch.effects.is_empty() {
            self.add_effects(launch.effects);
        }
        self.settle();
        Ok(&self.commands)
    }

    /// Derives the commands of a launch that is not known.
    fn derive(&mut self, launch: &Launch) -> Result<(), CommandError> {
        let mut shape = self.scratch.take().unwrap_or_default();
        shape.evaluate(self.me, self.nodes, launch, |buffer| self.state(buffer).cells.extent())?;
        let slots = self.slots(&shape.buffers);
        slots.iter().for_each(|&slot| self.states.make_live(slot));
        shape.check_written(launch.task, |slot| self.states.get(slots[slot]))?;
        self.hash.add(digest(launch, &shape));
        Derivation {
            me: self.me,
            nodes: self.nodes,
            task: launch.task,
            shape: &shape,
            states: &mut self.states.live,
            slots: &slots,
            applied: self.applied,
            first: self.next,
            out: &mut self.commands,
        }
        .launch(&launch.work);
        shape.clear();
        self.scratch = Some(shape);
        Ok(())
    }

    /// Replays a launch that is known; whether it is.
    fn replay(&mut self, launch: &Launch) -> Result<bool, CommandError> {
        let Some(key) = self.replay.recognise(launch) else { return Ok(false) };
        let (me, nodes, buffers, states) = (self.me, self.nodes, &self.buffers, &self.states);
        let evaluate = || {
            let mut shape = Shape::default();
            shape.evaluate(me, nodes, launch, |buffer| states.get(buffers[&buffer]).cells.extent())?;
            Ok(shape)
        };
        let Some((shape, digest)) = self.replay.shape(key, launch, evaluate)? else { return Ok(false) };
        let slots: SmallVec<[usize; 4]> = shape.buffers.iter().map(|buffer| buffers[buffer]).collect();
        for &slot in &slots {
            self.states.make_parted(slot, self.applied, &mut self.replay.layouts);
        }
        let states = (&mut self.states.parted[..], &slots[..]);
        self.replay.apply(key, (me, nodes), launch.task, states, self.next, &mut self.commands)?;
        self.hash.add(digest);
        Ok(true)
    }

    fn slots(&self, buffers: &[BufferId]) -> SmallVec<[usize; 4]> {
        buffers.iter().map(|buffer| self.buffers[buffer]).collect()
    }

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
        self.effects.launch(effects, &mut self.commands, self.applied);
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
}

/// The states of all buffers, by slot: each is live, or taken apart, or the slot is free.
#[derive(Default)]
struct States {
    live: Vec<Option<BufferState>>,
    parted: Vec<Option<Parted>>,
    free: Vec<usize>,
}

impl States {
    fn insert(&mut self, state: BufferState) -> usize {
        let slot = self.free.pop().unwrap_or(self.live.len());
        if slot == self.live.len() {
            self.live.push(None);
            self.parted.push(None);
        }
        self.live[slot] = Some(state);
        slot
    }

    fn remove(&mut self, slot: usize) {
        (self.live[slot], self.parted[slot]) = (None, None);
        self.free.push(slot);
    }

    /// A state, perhaps with symbols in the place of commands.
    fn get(&self, slot: usize) -> &BufferState {
        let parted = self.parted[slot].as_ref().map(|part| &part.layout.state);
        parted.or(self.live[slot].as_ref()).expect("a buffer of this graph")
    }

    fn make_live(&mut self, slot: usize) {
        if let Some(part) = self.parted[slot].take() {
            self.live[slot] = Some(part.whole());
        }
    }

    fn make_parted(&mut self, slot: usize, applied: CommandId, layouts: &mut Layouts) {
        if let Some(part) = &mut self.parted[slot] {
            part.forget(applied);
            if !part.outgrown(applied) {
                return;
            }
            self.make_live(slot);
        }
        let mut state = self.live[slot].take().expect("a buffer of this graph");
        state.forget(applied);
        self.parted[slot] = Some(layouts.part(state));
    }
}
