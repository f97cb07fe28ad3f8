//! The drawings of recorded graphs.

use super::{names::Names, node_copies::DrawnCopy, task_record::TaskRecord};
use crate::label::TaskLabel;
use anabranch_graph::{
    Access, BufferId, Dependency, Effect, Horizon, Kind, Mode, ObjectId, Origin, Submitted, TaskId,
    command::{Command, CommandKind, NodeId, Pass, Target, Work},
    print::{Drawing, Edge, EdgeKind, Format, Node, NodeKind},
};
use std::{
    fs, io, mem,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

pub(super) struct Drawings {
    tasks: Drawing,
    commands: Drawing,
    /// Pushes of the current launch: the key of the command, what it sends, and the node that receives it.
    sent: Vec<(String, Sent, NodeId)>,
    /// Receptions of the current launch: the key of the command, what comes, and the node that awaits it.
    awaited: Vec<(String, Sent, NodeId)>,
}

/// What one node sends to another.
#[derive(Clone, Copy, PartialEq)]
enum Sent {
    Buffer(BufferId),
    Turn(ObjectId, Pass),
}

impl Drawings {
    /// Drawings of the commands of all nodes of a dry run, or, without a dry run, of this node.
    pub(super) fn new(nodes: u16, node: Option<u16>) -> Self {
        let mut tasks = Drawing::new("Tasks");
        tasks.push_node(Node::new("T0", NodeKind::Epoch, "start"));
        let (title, drawn) = match node {
            Some(node) if nodes == 0 => (format!("Commands of node {node}"), node..node + 1),
            _ => (format!("Commands of {nodes} nodes"), 0..nodes),
        };
        let mut commands = Drawing::new(title);
        for node in drawn {
            let start = Node::new(format!("N{node}.C0"), NodeKind::Epoch, "start");
            commands.push_node(start.cluster(format!("node {node}")));
        }
        Self { tasks, commands, sent: Vec::new(), awaited: Vec::new() }
    }

    pub(super) fn tasks(&self) -> &Drawing {
        &self.tasks
    }

    pub(super) fn commands(&self) -> &Drawing {
        &self.commands
    }

    /// Draws a task with its dependencies and conflicts.
    pub(super) fn add_task(
        &mut self,
        submitted: &Submitted,
        label: &TaskLabel,
        record: &TaskRecord,
        accesses: &[Access],
        effects: &[Effect],
        names: &Names,
    ) {
        if !self.tasks.is_full() {
            self.tasks.push_node(describe_task(submitted.id, label, record, accesses, effects));
        }
        self.add_dependencies(submitted.id, &submitted.dependencies, names);
        for other in &submitted.conflicts {
            let (from, to) = (other.to_string(), submitted.id.to_string());
            self.tasks.push_edge(Edge::new(from, to, EdgeKind::Conflict));
        }
    }

    /// Draws a horizon with its dependencies.
    pub(super) fn add_horizon(&mut self, horizon: &Horizon, names: &Names) {
        self.tasks.push_node(Node::new(horizon.id.to_string(), NodeKind::Horizon, "horizon"));
        self.add_dependencies(horizon.id, &horizon.dependencies, names);
    }

    /// Draws the dependencies of a task.
    pub(super) fn add_dependencies(&mut self, id: TaskId, dependencies: &[Dependency], names: &Names) {
        for dependency in dependencies {
            let mut edge = Edge::new(dependency.on.to_string(), id.to_string(), dependency.kind.into());
            let label = match dependency.origin {
                Origin::Buffer(buffer) => names.buffer(buffer),
                Origin::Object(object) => names.object(object),
                Origin::Graph => None,
            };
            if let Some(label) = label {
                edge = edge.label(label);
            }
            self.tasks.push_edge(edge);
        }
    }

    /// Draws a command of the node `rank` with its dependencies and conflicts.
    pub(super) fn add_command(&mut self, rank: usize, name: &str, command: &Command, names: &Names) {
        if self.commands.is_full() {
            return;
        }
        let key = format!("N{rank}.{}", command.id);
        self.commands.push_node(describe_command(&key, rank, name, command, names));
        for dependency in &command.dependencies {
            let from = format!("N{rank}.{}", dependency.on);
            self.commands.push_edge(Edge::new(from, key.clone(), dependency.kind.into()));
        }
        for other in &command.conflicts {
            let other = format!("N{rank}.{other}");
            self.commands.push_edge(Edge::new(other, key.clone(), EdgeKind::Conflict));
        }
        match &command.kind {
            CommandKind::Push { buffer, targets, .. } => {
                self.sent.extend(targets.iter().map(|t| (key.clone(), Sent::Buffer(*buffer), t.node)));
            }
            CommandKind::PushPartials { buffer, targets, .. } => {
                self.sent.extend(targets.iter().map(|&t| (key.clone(), Sent::Buffer(*buffer), t)));
            }
            CommandKind::AwaitPush { buffer, .. } | CommandKind::AwaitPartials { buffer, .. } => {
                self.awaited.push((key, Sent::Buffer(*buffer), NodeId(rank as u16)));
            }
            CommandKind::PassTurn { object, pass, targets } => {
                let sent = Sent::Turn(*object, *pass);
                self.sent.extend(targets.iter().map(|&t| (key.clone(), sent, t)));
            }
            CommandKind::AwaitTurn { object, pass, .. } => {
                self.awaited.push((key, Sent::Turn(*object, *pass), NodeId(rank as u16)));
            }
            _ => {}
        }
    }

    /// Draws a copy between the memories of a node, with what it comes after.
    pub(super) fn add_copy(&mut self, rank: u16, drawn: &DrawnCopy<'_>, names: &Names) {
        let DrawnCopy { key, copy, label, after } = drawn;
        if self.commands.is_full() {
            return;
        }
        let node = Node::new(key.clone(), NodeKind::HostTask, *label).cluster(format!("node {rank}"));
        let buffer = names.buffer(copy.buffer).unwrap_or_default();
        self.commands.push_node(node.detail(format!("{buffer} {}", copy.region)));
        for before in after {
            self.commands.push_edge(Edge::new(before.clone(), key.clone(), Kind::True.into()));
        }
    }

    /// Draws that a command comes after copies.
    pub(super) fn add_copies_before(&mut self, command: &str, copies: Vec<String>) {
        for copy in copies {
            self.commands.push_edge(Edge::new(copy, command, Kind::True.into()));
        }
    }

    /// Draws the messages of the current launch, from the pushes of all nodes to the commands that await
    /// them.
    pub(super) fn connect_messages(&mut self) {
        let awaited = mem::take(&mut self.awaited);
        for (from, sent, target) in mem::take(&mut self.sent) {
            for (to, ..) in awaited.iter().filter(|(_, s, node)| (*s, *node) == (sent, target)) {
                self.commands.push_edge(Edge::new(from.clone(), to.clone(), EdgeKind::Message));
            }
        }
    }

    /// Writes the task graph to `path`, and the command graphs beside it.
    pub(super) fn write(&self, path: &Path, with_commands: bool) -> io::Result<()> {
        /// Counts the runtimes of this process that have written graphs, so that none overwrites those of
        /// another.
        static WRITTEN: AtomicUsize = AtomicUsize::new(0);
        let format = Format::from_path(path).map_err(io::Error::other)?;
        let number = WRITTEN.fetch_add(1, Relaxed);
        let mut stem = path.with_extension("").into_os_string();
        if number > 0 {
            stem.push(format!("-{}", number + 1));
        }
        let name = |part: &str| {
            let mut name = stem.clone();
            name.push(part);
            PathBuf::from(name).with_extension(path.extension().unwrap_or_default())
        };
        fs::write(name(""), self.tasks.render(format))?;
        if with_commands {
            fs::write(name("-commands"), self.commands.render(format))?;
        }
        Ok(())
    }
}

fn describe_task(
    id: TaskId,
    label: &TaskLabel,
    record: &TaskRecord,
    accesses: &[Access],
    effects: &[Effect],
) -> Node {
    let kind = match record.work {
        Work::Kernel { .. } => NodeKind::Kernel,
        Work::HostChunks { .. } | Work::HostOnce | Work::Collective => NodeKind::HostTask,
        Work::Fence => NodeKind::Fence,
        Work::Epoch => NodeKind::Epoch,
        Work::Horizon => NodeKind::Horizon,
    };
    let mut node = Node::new(id.to_string(), kind, label.name());
    if let Work::Kernel { space } | Work::HostChunks { space } = record.work {
        node = node.detail(format!("over {space}"));
    }
    for (access, label) in accesses.iter().zip(&record.buffers) {
        let mode = match access.mode {
            _ if record.reductions.iter().any(|r| r.buffer == access.buffer) => "reduce",
            Mode::Read => "read",
            Mode::Write => "write",
            Mode::Update => "update",
        };
        node = node.detail(format!("{mode} {label} {}", access.region));
    }
    for (effect, label) in effects.iter().zip(&record.objects) {
        node = node.detail(format!("{} {label}", format!("{:?}", effect.order).to_lowercase()));
    }
    node
}

fn describe_command(key: &str, rank: usize, name: &str, command: &Command, names: &Names) -> Node {
    let label = |buffer: &BufferId| names.buffer(*buffer).unwrap_or_default().to_owned();
    let turn = |object: &ObjectId| format!("turn of {}", names.object(*object).unwrap_or_default());
    let (kind, details) = match &command.kind {
        CommandKind::Execute { chunk, .. } => (NodeKind::Execution, vec![chunk.range.to_string()]),
        CommandKind::Push { buffer, targets, .. } => {
            let to = |t: &Target| format!("{} to node {}", t.region, t.node.0);
            (NodeKind::Push, [label(buffer)].into_iter().chain(targets.iter().map(to)).collect())
        }
        CommandKind::PushPartials { buffer, targets, leaves, .. } => {
            let to = targets.iter().map(|t| format!("partial results {leaves:?} to node {}", t.0));
            (NodeKind::Push, [label(buffer)].into_iter().chain(to).collect())
        }
        CommandKind::AwaitPush { buffer, region, .. } => {
            (NodeKind::AwaitPush, vec![label(buffer), region.to_string()])
        }
        CommandKind::AwaitPartials { buffer, .. } => {
            (NodeKind::AwaitPush, vec![label(buffer), "partial results".into()])
        }
        CommandKind::Reduce { buffer, .. } => (NodeKind::Reduction, vec![label(buffer)]),
        CommandKind::PassTurn { object, targets, .. } => {
            let to = targets.iter().map(|t| format!("to node {}", t.0));
            (NodeKind::Push, [turn(object)].into_iter().chain(to).collect())
        }
        CommandKind::AwaitTurn { object, .. } => (NodeKind::AwaitPush, vec![turn(object)]),
        CommandKind::Fence => (NodeKind::Fence, vec![]),
        CommandKind::Epoch => (NodeKind::Epoch, vec![]),
        CommandKind::Horizon => (NodeKind::Horizon, vec![]),
    };
    let node = Node::new(key, kind, format!("{name} ({})", command.task)).cluster(format!("node {rank}"));
    details.into_iter().filter(|detail| !detail.is_empty()).fold(node, Node::detail)
}
