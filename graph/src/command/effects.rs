//! Side effects of this node's commands on its host objects, and conflicts between commands.

use super::{
    hash::Map,
    launch::Launch,
    types::{Command, CommandId, CommandKind},
};
use crate::{Kind, ObjectId, Order, TaskId};
use smallvec::SmallVec;
use std::{collections::VecDeque, ops::Range};

/// The effects on one object that later ones come after.
#[derive(Clone, Debug)]
struct ObjectState {
    /// The last sequential one.
    last: CommandId,
    /// Those since, in any order.
    since: SmallVec<[CommandId; 4]>,
}

/// All host objects, and the commands that later ones may conflict with.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    objects: Map<ObjectId, ObjectState>,
    /// The commands of tasks with effects that are not sequential, by ascending task.
    recent: VecDeque<(TaskId, Range<u64>)>,
    /// The last task whose commands are all before the horizon.
    forgotten: Option<TaskId>,
}

impl Effects {
    pub(super) fn create(&mut self, object: ObjectId) {
        self.objects.insert(object, ObjectState { last: CommandId::EPOCH, since: SmallVec::new() });
    }

    pub(super) fn remove(&mut self, object: ObjectId) {
        self.objects.remove(&object);
    }

    /// Adds what the effects and conflicts of a launch mean for its commands.
    pub(super) fn launch(&mut self, launch: &Launch, commands: &mut [Command], applied: CommandId) {
        let touches = |c: &Command| {
            matches!(c.kind, CommandKind::Execute { .. } | CommandKind::Fence | CommandKind::Epoch)
        };
        let first = commands.iter().position(touches).unwrap_or(commands.len());
        let commands = &mut commands[first..];
        let exclusive = launch.effects.iter().any(|effect| effect.order == Order::Exclusive);
        for at in 0..commands.len() {
            let (before, command) = commands.split_at_mut(at);
            let command = &mut command[0];
            for effect in launch.effects {
                let object = self.objects.get_mut(&effect.object).expect("an object of this graph");
                object.touch(effect.order, command, applied);
            }
            for &partner in launch.conflicts {
                self.conflict(partner, command, applied);
            }
            if exclusive {
                // Two chunks of one task get the same object.
                command.conflicts.extend(before.iter().map(|sibling| sibling.id));
            }
        }
        if launch.effects.iter().any(|effect| effect.order != Order::Sequential) {
            self.remember(launch.task, commands);
        }
    }

    fn conflict(&self, partner: TaskId, command: &mut Command, applied: CommandId) {
        if self.forgotten.is_some_and(|last| partner <= last) {
            command.after(applied, Kind::Serial);
        }
        if let Ok(at) = self.recent.binary_search_by_key(&partner, |(task, _)| *task) {
            command.conflicts.extend(self.recent[at].1.clone().map(CommandId));
        }
    }

    fn remember(&mut self, task: TaskId, commands: &[Command]) {
        if let [first, .., last] | [first @ last] = commands {
            self.recent.push_back((task, first.id.0..last.id.0 + 1));
        }
    }

    /// Forgets what is before the horizon.
    pub(super) fn apply(&mut self, applied: CommandId) {
        let kept = self.recent.partition_point(|(_, commands)| commands.end <= applied.0);
        if let Some((task, _)) = self.recent.drain(..kept).next_back() {
            self.forgotten = Some(task);
        }
    }
}

impl ObjectState {
    fn touch(&mut self, order: Order, command: &mut Command, applied: CommandId) {
        match order {
            Order::Sequential => {
                if self.since.is_empty() {
                    command.after(self.last, Kind::Serial);
                }
                self.since.drain(..).for_each(|on| command.after(on, Kind::Serial));
                self.last = command.id;
            }
            Order::Exclusive | Order::Relaxed => {
                command.after(self.last, Kind::Serial);
                if self.since.len() >= 4 && self.since.len().is_power_of_two() {
                    self.since.retain(|on| *on > applied);
                    self.since.insert(0, applied);
                }
                self.since.push(command.id);
            }
        }
    }
}
