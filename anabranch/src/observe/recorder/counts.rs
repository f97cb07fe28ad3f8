//! The numbers in the summary of a dry run.

use super::names::Names;
use crate::cluster::is_large;
use anabranch_graph::{
    BufferId,
    command::{Command, CommandKind, NodeId},
};
use anabranch_grid::Region;
use std::{fmt, sync::Arc};

#[derive(Default)]
pub(super) struct Counts {
    nodes: u16,
    pub(super) tasks: u64,
    commands: u64,
    pushes: u64,
    messages: u64,
    bytes: u64,
    /// The number of commands of the node that has most.
    most: u64,
}

impl Counts {
    pub(super) fn new(nodes: u16) -> Self {
        Self { nodes, ..Self::default() }
    }

    /// Counts a command, and the messages that it sends.
    pub(super) fn add(&mut self, command: &Command, names: &Names) {
        self.commands += 1;
        self.most = self.most.max(command.id.0);
        // The messages of each node in a gather.
        let passed_on = u16::BITS - (self.nodes - 1).leading_zeros();
        let nodes = self.nodes;
        let is_gather = |buffer: BufferId, parts: &Option<Arc<[(NodeId, Region<3>)]>>| {
            let Some(parts) = parts else { return false };
            let most = parts.iter().map(|(_, part)| part.len()).max().unwrap_or(0);
            parts.len() > 1 && !is_large(most * names.element_size(buffer), nodes)
        };
        let mut send = |buffer: BufferId, region: &Region<3>, targets: usize| {
            self.messages += targets as u64;
            self.bytes += (region.len() * names.element_size(buffer) * targets) as u64;
        };
        match &command.kind {
            CommandKind::Push { buffer, targets, exchange } => {
                targets.iter().for_each(|target| send(*buffer, &target.region, 1));
                if is_gather(*buffer, exchange) {
                    // The awaits count them.
                    self.messages -= targets.len() as u64;
                }
                self.pushes += 1;
            }
            CommandKind::AwaitPush { buffer, exchange, .. } if is_gather(*buffer, exchange) => {
                self.messages += u64::from(passed_on);
            }
            CommandKind::PushPartials { buffer, region, targets, everywhere, .. } => {
                send(*buffer, region, targets.len());
                if *everywhere {
                    // The nodes pass the partial results on.
                    self.messages -= targets.len() as u64 - u64::from(passed_on);
                }
                self.pushes += 1;
            }
            CommandKind::PassTurn { targets, .. } => {
                self.messages += targets.len() as u64;
                self.pushes += 1;
            }
            _ => {}
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, tasks, commands, pushes, messages, bytes, most } = self;
        write!(
            f,
            "dry run for {nodes} nodes: {tasks} tasks, {commands} commands ({most} on the node that has most), \
             {pushes} pushes in {messages} messages, {:.1} MB between nodes",
            *bytes as f64 / 1e6,
        )
    }
}
