//! What was recorded: the task graph of the program, and what its dry run has generated.

use super::{
    change::{Change, RecordedTask, Touched},
    counts::Counts,
    names::Names,
};
#[cfg(feature = "print")]
use super::{copies::Copies, drawings::Drawings, node_copies::NodeCopies};
#[cfg(feature = "print")]
use anabranch_graph::command::CommandKind;
use anabranch_graph::{
    Settings, TaskGraph, TaskId,
    command::{Command, Launch, Work},
};

/// The recorded graphs, without the command graphs of the nodes: no code of the program runs here.
pub(super) struct Recording {
    graph: TaskGraph,
    names: Names,
    pub(super) counts: Counts,
    /// Why no more commands are generated.
    pub(super) refused: Option<String>,
    #[cfg(feature = "print")]
    pub(super) drawings: Drawings,
    #[cfg(feature = "print")]
    copies: Copies,
    #[cfg(feature = "print")]
    node_copies: NodeCopies,
}

/// The launches that a task stands for.
pub(super) struct Launches {
    pub(super) task: TaskId,
    pub(super) horizon: Option<TaskId>,
}

impl Recording {
    /// A recording of the command graphs of all nodes of a dry run, or of this node.
    pub(super) fn new(nodes: u16, node: Option<u16>) -> Self {
        #[cfg(not(feature = "print"))]
        let _ = node;
        Self {
            graph: TaskGraph::with(Settings {
                horizons: Some(Default::default()),
                conflicts: true,
                ..Settings::default()
            }),
            names: Names::default(),
            counts: Counts::new(nodes),
            refused: None,
            #[cfg(feature = "print")]
            drawings: Drawings::new(nodes, node),
            #[cfg(feature = "print")]
            copies: Copies::default(),
            #[cfg(feature = "print")]
            node_copies: NodeCopies::default(),
        }
    }

    /// Applies a change. Returns the launches of a submitted task.
    pub(super) fn apply(&mut self, change: &Change) -> Option<Launches> {
        match change {
            Change::CreateBuffer { extent, initialised, id, bytes } => {
                let same = self.graph.create_buffer(*extent, *initialised);
                assert_eq!(same, *id, "both graphs get the same buffers");
                self.names.add_buffer(*id, *bytes);
            }
            Change::RemoveBuffer(id) => {
                self.graph.remove_buffer(*id);
                #[cfg(feature = "print")]
                self.copies.remove_buffer(*id);
                #[cfg(feature = "print")]
                self.node_copies.remove_buffer(*id);
                self.names.remove_buffer(*id);
            }
            Change::CreateObject(id, _) => {
                let same = self.graph.create_object();
                assert_eq!(same, *id, "both graphs get the same objects");
            }
            Change::RemoveObject(id) => {
                self.graph.remove_object(*id);
                self.names.remove_object(*id);
            }
            Change::SetVersions(id, versions) => self.graph.set_versions(*id, *versions),
            Change::Discard(id) => self.graph.discard(*id, &|_| false),
            // The task graph does not depend on them.
            Change::SetWeights(_) => {}
            Change::Submit(task) => return Some(self.submit(task)),
            Change::Execute { node, label, commands } => self.add_executed(*node, label.name(), commands),
            Change::Touch { node, touched } => self.add_touched(*node, touched),
        }
        None
    }

    fn submit(&mut self, task: &RecordedTask) -> Launches {
        let RecordedTask { label, record, accesses, effects, place } = task;
        let submitted = if record.work == Work::Epoch {
            self.graph.epoch(accesses, effects, &|_| false)
        } else {
            self.graph.submit(accesses, effects, &|_| false)
        };
        let submitted = submitted.expect("both graphs accept the same tasks");
        self.names.update(record, accesses, effects);
        self.counts.tasks += 1;
        #[cfg(feature = "print")]
        {
            self.drawings.add_task(&submitted, label, record, accesses, effects, &self.names);
            let copies = self.copies.submit(submitted.id, accesses, *place);
            self.drawings.add_dependencies(submitted.id, &copies, &self.names);
            if let Some(horizon) = &submitted.horizon {
                self.drawings.add_horizon(horizon, &self.names);
            }
        }
        #[cfg(not(feature = "print"))]
        let _ = (label, place);
        Launches { task: submitted.id, horizon: submitted.horizon.map(|horizon| horizon.id) }
    }

    /// Adds the commands of a real node for a task, and for the horizon behind it.
    fn add_executed(&mut self, node: u16, task: &str, commands: &[Command]) {
        #[cfg(feature = "print")]
        {
            for command in commands {
                let name = if matches!(command.kind, CommandKind::Horizon) { "horizon" } else { task };
                self.drawings.add_command(node.into(), name, command, &self.names);
            }
            // No node is at the other end of these messages.
            self.drawings.connect_messages();
        }
        #[cfg(not(feature = "print"))]
        let _ = (node, task, commands);
    }

    /// Adds the copies that a command of a real node comes after.
    fn add_touched(&mut self, node: u16, touched: &Touched) {
        #[cfg(feature = "print")]
        {
            let prefix = format!("N{node}.");
            let key = format!("{prefix}{}", touched.command);
            let (copies, needed) = self.node_copies.touch(&prefix, &key, touched);
            copies.iter().for_each(|copy| self.drawings.add_copy(node, copy, &self.names));
            self.drawings.add_copies_before(&key, needed);
        }
        #[cfg(not(feature = "print"))]
        let _ = (node, touched);
    }

    /// Adds the commands of all nodes for a launch.
    pub(super) fn add_commands(&mut self, name: &str, commands: &[Vec<Command>]) {
        for (rank, commands) in commands.iter().enumerate() {
            for command in commands {
                self.counts.add(command, &self.names);
                #[cfg(feature = "print")]
                self.drawings.add_command(rank, name, command, &self.names);
            }
            #[cfg(not(feature = "print"))]
            let _ = (rank, name);
        }
        #[cfg(feature = "print")]
        self.drawings.connect_messages();
    }
}

impl RecordedTask {
    /// The launch of this task, with the id that it has in the recorded graph.
    pub(super) fn launch(&self, task: TaskId) -> Launch<'_> {
        let record = &*self.record;
        Launch {
            task,
            work: record.work,
            hints: record.hints,
            accesses: &record.accesses,
            reductions: &record.reductions,
            effects: &self.effects,
        }
    }
}
