//! Effects of this node's commands on its host objects: dependencies and conflicts.
//!
//! Every node has host objects of its own, and not every task has a command on every node. Two commands may be independent
//! on this node although, in the task graph, a third task comes between theirs. So dependencies and conflicts are derived
//! from the effects of this node's commands, and not taken from the task graph.

use super::types::{Command, CommandId, CommandKind};
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
}

/// The effects on all host objects of this node.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    objects: FxHashMap<ObjectId, ObjectEffects>,
}

impl Effects {
    pub(super) fn create(&mut self, object: ObjectId) {
        self.objects.insert(object, ObjectEffects { last: CommandId::EPOCH, since: SmallVec::new() });
    }

    pub(super) fn remove(&mut self, object: ObjectId) {
        self.objects.remove(&object);
    }

    /// Adds the effects of a task, and the edges that they demand, to the task's commands. Two commands of one task are
    /// ordered only by their effects.
    pub(super) fn add(&mut self, effects: &[Effect], commands: &mut [Command], applied: CommandId) {
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
