//! Effects of this node's commands on its host objects: dependencies and conflicts.
//!
//! Every node has host objects of its own, and not every task has a command on every node. Two commands may
//! be independent on this node although, in the task graph, a third task comes between theirs. So
//! dependencies and conflicts are derived from the effects of this node's commands, and not taken from the
//! task graph.
//!
//! An object of the whole cluster has a [`Turn`]. The commands that pass it on, or await it, have a
//! sequential effect on the object. So a node passes the turn on when its own effects have ended, and begins
//! others when it has the turn.

use super::{
    launch::Launch,
    turn::{Nodes, Turn},
    types::{Command, CommandId, CommandKind, NodeId},
};
use crate::task::{Effect, Kind, ObjectId, Order};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The effects on one object that later effects come after, or conflict with.
#[derive(Clone, Debug)]
struct ObjectEffects {
    /// The last command with a sequential effect.
    last: CommandId,
    /// The effects since, in any order. A sequential one is a horizon that stands for effects before it.
    since: SmallVec<[(CommandId, Order); 4]>,
    /// For an object of the whole cluster.
    turn: Option<Box<Turn>>,
}

/// The effects on all host objects of this node.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    objects: FxHashMap<ObjectId, ObjectEffects>,
    /// Whether there was ever an object of the whole cluster.
    have_turns: bool,
}

impl Effects {
    pub(super) fn create(&mut self, object: ObjectId) {
        self.insert(object, None);
    }

    /// Adds an object of the whole cluster.
    pub(super) fn create_on(&mut self, object: ObjectId, home: NodeId) {
        self.insert(object, Some(Turn::of(home).into()));
        self.have_turns = true;
    }

    fn insert(&mut self, object: ObjectId, turn: Option<Box<Turn>>) {
        self.objects.insert(object, ObjectEffects { last: CommandId::EPOCH, since: SmallVec::new(), turn });
    }

    pub(super) fn remove(&mut self, object: ObjectId) {
        self.objects.remove(&object);
    }

    /// Whether one of the objects is one of the whole cluster.
    pub(super) fn have_turns(&self, effects: &[Effect]) -> bool {
        self.have_turns && effects.iter().any(|effect| self.object(effect.object).turn.is_some())
    }

    fn object(&self, object: ObjectId) -> &ObjectEffects {
        self.objects.get(&object).expect("an object of this graph")
    }

    /// What this node does to pass turns to the nodes `next` of a task with these effects.
    pub(super) fn passes(&self, effects: &[Effect], me: NodeId, next: &Nodes) -> Vec<CommandKind> {
        let turns = effects
            .iter()
            .filter_map(|effect| Some((effect.object, self.object(effect.object).turn.as_ref()?)));
        turns.flat_map(|(object, turn)| turn.passes(object, me, next)).collect()
    }

    /// The nodes of a launch have the turn of its objects now.
    pub(super) fn pass_to(&mut self, next: &Nodes, launch: &Launch) {
        for effect in launch.effects {
            let object = self.objects.get_mut(&effect.object);
            object
                .and_then(|object| object.turn.as_mut())
                .into_iter()
                .for_each(|turn| turn.pass_to(next, launch));
        }
    }

    /// Adds the effects of a task, and the edges that they demand, to the task's commands. Two commands of
    /// one task are ordered only by their effects.
    pub(super) fn add(&mut self, effects: &[Effect], commands: &mut [Command], applied: CommandId) {
        for command in &mut *commands {
            if let CommandKind::PassTurn { object, .. } | CommandKind::AwaitTurn { object, .. } = command.kind
            {
                let object = self.objects.get_mut(&object).expect("an object of this graph");
                object.touch(Order::Sequential, command, applied);
            }
        }
        let touches = |c: &&mut Command| {
            matches!(c.kind, CommandKind::Execute { .. } | CommandKind::Fence | CommandKind::Epoch)
        };
        for command in commands.iter_mut().filter(touches) {
            for effect in effects {
                let object = self.objects.get_mut(&effect.object).expect("an object of this graph");
                object.touch(effect.order, command, applied);
            }
        }
    }
}

impl ObjectEffects {
    fn touch(&mut self, order: Order, command: &mut Command, applied: CommandId) {
        if order.is_in_order() {
            if self.since.is_empty() {
                command.after(self.last, Kind::Serial);
            }
            self.since.drain(..).for_each(|(on, _)| command.after(on, Kind::Serial));
            self.last = command.id;
            return;
        }
        command.after(self.last, Kind::Serial);
        for &(on, other) in &self.since {
            if other == Order::Sequential {
                command.after(on, Kind::Serial);
            } else if order == Order::Exclusive || other == Order::Exclusive {
                command.conflicts.push(on);
            }
        }
        // Only before the list grows, so that the check costs little per effect.
        if self.since.len() >= 4 && self.since.len().is_power_of_two() {
            let count = self.since.len();
            self.since.retain(|(on, _)| *on > applied);
            if self.since.len() < count {
                self.since.insert(0, (applied, Order::Sequential));
            }
        }
        self.since.push((command.id, order));
    }
}
