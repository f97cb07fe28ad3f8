//! Side effects of this node's commands on its host objects: dependencies and conflicts.
//!
//! Every node has host objects of its own, and not every task has a command on every node: two commands may be free of
//! each other here although a third task comes between theirs elsewhere. So conflicts are derived from the effects of
//! this node's commands and not taken from the task graph.

use super::types::{Command, CommandId, CommandKind};
use crate::task::{Effect, Kind, ObjectId, Order};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The effects on one object that later ones come after, or conflict with.
#[derive(Clone, Debug)]
struct ObjectState {
    /// The last sequential one.
    last: CommandId,
    /// Those since, in any order. Sequential: a horizon that stands for such as precede it.
    since: SmallVec<[(CommandId, Order); 4]>,
}

/// All host objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    objects: FxHashMap<ObjectId, ObjectState>,
}

impl Effects {
    pub(super) fn create(&mut self, object: ObjectId) {
        self.objects.insert(object, ObjectState { last: CommandId::EPOCH, since: SmallVec::new() });
    }

    pub(super) fn remove(&mut self, object: ObjectId) {
        self.objects.remove(&object);
    }

    /// Adds what a task's effects mean for its commands. Those of one task are in no order but what effects demand.
    pub(super) fn launch(&mut self, effects: &[Effect], commands: &mut [Command], applied: CommandId) {
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

impl ObjectState {
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
        // Only before the list would grow: so the check costs little per effect.
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
