//! The execution front of one node's commands: numbers, horizons, and the commands that no other command
//! depends on.

use super::types::{Command, CommandId, CommandKind};
use crate::task::Kind;

/// The commands from the last horizon on, and the horizons and epochs that stand for older commands.
pub(super) struct Front {
    /// The horizon or epoch that stands for all commands before it.
    applied: CommandId,
    /// The last epoch.
    epoch: CommandId,
    /// The last horizon or epoch, which is applied when the next one is submitted.
    horizon: CommandId,
    /// Whether a later command depends on it, for each command from the last horizon on.
    followed: Vec<bool>,
    /// The number of the next command.
    next: u64,
}

impl Front {
    /// The front of a new graph: the root epoch alone.
    pub(super) fn new() -> Self {
        let root = CommandId::EPOCH;
        Self { applied: root, epoch: root, horizon: root, followed: vec![false], next: 1 }
    }

    /// The horizon or epoch that stands for all commands before it.
    pub(super) fn applied(&self) -> CommandId {
        self.applied
    }

    /// The number of the next command.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Adds the next command and finishes its edges. A horizon or epoch comes after the whole front.
    pub(super) fn add(&mut self, command: &mut Command) {
        let bounds = matches!(command.kind, CommandKind::Epoch | CommandKind::Horizon);
        let start = self.next - self.followed.len() as u64;
        if bounds {
            let free = self.followed.iter().enumerate().filter(|(_, followed)| !**followed);
            free.for_each(|(at, _)| command.after(CommandId(start + at as u64), Kind::Serial));
        }
        command.finish_edges(self.applied, self.epoch);
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
                if let Some(at) = dependency.on.0.checked_sub(start) {
                    self.followed[at as usize] = true;
                }
            }
        }
        self.followed.push(false);
    }
}
