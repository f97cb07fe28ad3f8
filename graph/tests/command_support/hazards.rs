//! Whether the dependencies of a node's commands cover everything that the commands do to its memory: no
//! order that keeps them lets a command see or overwrite an element at the wrong time.
//!
//! Executing the commands in one order finds a missing dependency only if that order happens to violate it.
//! This check needs no luck. It compares each use of an element with the uses just before it, and the rest
//! follows, because what comes before something before a command also comes before the command. It looks at
//! one node at a time; that messages are sent before they arrive is left to the execution.

use super::program::Task;
use anabranch_graph::{BufferId, TaskId, command::*};
use anabranch_grid::{Chunk, Point, Region};
use std::collections::HashMap;

/// What a node keeps in a place of its own: an element of a memory of a buffer, or partial results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Element(BufferId, u32, Point<3>),
    /// The partial results of a task for a buffer that this node computed.
    Partials(TaskId, BufferId),
    /// Those that other nodes sent.
    Received(TaskId, BufferId),
}

/// How a command uses a place. Commands that `Add` to it may do so in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    Add,
}

/// The last uses of a place: all commands that made a use of one kind, and those that each of them must
/// follow.
#[derive(Default)]
struct Uses {
    kind: Option<Use>,
    commands: Vec<usize>,
    before: Vec<usize>,
}

impl Uses {
    /// Notes a use. Returns the commands that it must follow.
    fn add(&mut self, command: usize, kind: Use) -> &[usize] {
        if self.commands == [command] {
            // The stricter use of the command counts.
            self.kind = Some(if self.kind == Some(kind) { kind } else { Use::Write });
            return &self.before;
        }
        if self.kind != Some(kind) || kind == Use::Write {
            self.before = std::mem::take(&mut self.commands);
        }
        self.kind = Some(kind);
        self.commands.push(command);
        &self.before
    }
}

/// All commands that come before each command.
pub struct Ancestors(Vec<Vec<u64>>);

impl Ancestors {
    pub fn of(commands: &[Command]) -> Self {
        let words = commands.len().div_ceil(64);
        let mut all: Vec<Vec<u64>> = Vec::with_capacity(commands.len());
        for command in commands {
            let mut mine = vec![0; words];
            for on in command.dependencies.iter().filter(|d| d.on > CommandId::EPOCH) {
                let on = on.on.0 as usize - 1;
                mine.iter_mut().zip(&all[on]).for_each(|(mine, other)| *mine |= other);
                mine[on / 64] |= 1 << (on % 64);
            }
            all.push(mine);
        }
        Self(all)
    }

    /// Whether `earlier` comes before `later`.
    pub fn contain(&self, later: usize, earlier: usize) -> bool {
        self.0[later][earlier / 64] & 1 << (earlier % 64) != 0
    }

    /// The number of commands before `later`.
    pub fn count(&self, later: usize) -> usize {
        self.0[later].iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// A node's commands, and the memories that they use.
pub struct Commands<'a> {
    pub node: (NodeId, u16),
    pub commands: &'a [Command],
    /// The memory of a buffer that a command uses.
    pub version: &'a dyn Fn(usize, BufferId) -> u32,
    pub tasks: &'a HashMap<TaskId, &'a Task>,
}

impl Commands<'_> {
    /// Checks that of two commands that use a place, and do not both read it or add to it, the earlier
    /// comes before.
    pub fn check(&self, ancestors: &Ancestors) {
        let mut last: HashMap<Place, Uses> = HashMap::new();
        for at in 0..self.commands.len() {
            for (place, kind) in self.uses(at) {
                for &earlier in last.entry(place).or_default().add(at, kind) {
                    assert!(
                        earlier == at || ancestors.contain(at, earlier),
                        "{place:?}: {:?} ({kind:?}) must come after {:?}",
                        self.commands[at],
                        self.commands[earlier],
                    );
                }
            }
        }
    }

    /// What a command uses.
    fn uses(&self, at: usize) -> Vec<(Place, Use)> {
        let command = &self.commands[at];
        let task = self.tasks[&command.task];
        let elements = |buffer: BufferId, region: &Region<3>, kind| {
            let version = (self.version)(at, buffer);
            let points = region.boxes().iter().flat_map(|range| range.points());
            points.map(|p| (Place::Element(buffer, version, p), kind)).collect::<Vec<_>>()
        };
        let reads = |chunk: &Chunk<3>| -> Vec<_> {
            task.reads(chunk)
                .into_iter()
                .flat_map(|(buffer, region)| elements(buffer, &region, Use::Read))
                .collect()
        };
        match &command.kind {
            CommandKind::Execute { chunk, .. } => {
                let mut all = reads(chunk);
                for access in task.accesses.iter().filter(|access| access.mode.writes()) {
                    all.extend(elements(access.buffer, &access.mapper.map(chunk), Use::Write));
                }
                let reductions = task.reductions.iter();
                all.extend(reductions.map(|r| (Place::Partials(task.id, r.buffer), Use::Add)));
                all
            }
            CommandKind::Fence | CommandKind::Epoch => reads(&task.snapshot(self.node.0, self.node.1)),
            CommandKind::Push { buffer, targets, .. } => {
                targets.iter().flat_map(|target| elements(*buffer, &target.region, Use::Read)).collect()
            }
            CommandKind::AwaitPush { buffer, region, .. } => elements(*buffer, region, Use::Write),
            CommandKind::PushPartials { buffer, reduction, .. } => {
                vec![(Place::Partials(*reduction, *buffer), Use::Read)]
            }
            CommandKind::AwaitPartials { buffer, reduction, .. } => {
                vec![(Place::Received(*reduction, *buffer), Use::Add)]
            }
            CommandKind::Reduce { buffer, region, reduction, .. } => {
                let mut all = elements(*buffer, region, Use::Write);
                let partials = [Place::Partials, Place::Received].map(|place| place(*reduction, *buffer));
                all.extend(partials.map(|place| (place, Use::Read)));
                all
            }
            CommandKind::PassTurn { .. } | CommandKind::AwaitTurn { .. } | CommandKind::Horizon => Vec::new(),
        }
    }
}
