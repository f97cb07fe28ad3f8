//! Recording: the graphs of a program, for printing, and dry runs for more nodes than there are.
//!
//! A recorded program runs as it always does. Beside that, everything it submits is told to a second task graph, one
//! that is the same wherever the program is submitted (with horizons and conflict edges), and to the command graphs of as many
//! nodes as are asked for, none of which has to exist.

use crate::{declare::Told, error::TaskLabel};
use anabranch_graph::{
    Access, BufferId, Dependency, Effect, ObjectId, Origin, Settings, TaskGraph, TaskId,
    command::{Command, CommandGraph, CommandKind, Launch, NodeId, Work},
    print::{Drawing, Edge, EdgeKind, Format, Node, NodeKind},
};
use anabranch_grid::{Extent, Region};
use std::{
    collections::HashMap,
    fmt::Write as _,
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// What is to be recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Graphs can be asked for.
    pub(crate) graphs: bool,
    /// Where they are written when the runtime ends.
    pub(crate) path: Option<PathBuf>,
    /// For how many nodes commands are generated.
    pub(crate) nodes: Option<u16>,
}

impl Wanted {
    pub(crate) fn anything(&self) -> bool {
        self.graphs || self.path.is_some() || self.nodes.is_some()
    }
}

pub(crate) struct Recorder {
    wanted: Wanted,
    graph: TaskGraph,
    tasks: Drawing,
    nodes: Vec<CommandGraph>,
    commands: Drawing,
    /// By buffer: its label where a task has used it, and the size of its elements.
    buffers: HashMap<BufferId, Named>,
    objects: HashMap<ObjectId, String>,
    counts: Counts,
    /// Why commands are not generated any more.
    refused: Option<String>,
}

struct Named {
    label: String,
    bytes: usize,
}

/// What a dry run has come to.
#[derive(Default)]
struct Counts {
    tasks: u64,
    commands: u64,
    pushes: u64,
    messages: u64,
    bytes: u64,
    /// Commands of the node that has most.
    most: u64,
}

impl Recorder {
    pub(crate) fn new(wanted: Wanted) -> Self {
        let nodes = wanted.nodes.unwrap_or(0);
        let settings = Settings { horizons: Some(Default::default()), conflicts: true };
        let mut recorder = Self {
            wanted,
            graph: TaskGraph::with(settings),
            tasks: Drawing::new("Tasks"),
            nodes: (0..nodes).map(|node| CommandGraph::new(NodeId(node), nodes)).collect(),
            commands: Drawing::new(format!("Commands of {nodes} nodes")),
            buffers: HashMap::new(),
            objects: HashMap::new(),
            counts: Counts::default(),
            refused: None,
        };
        recorder.tasks.push_node(Node::new("T0", NodeKind::Epoch, "start"));
        for node in 0..nodes {
            let root =
                Node::new(format!("N{node}.C0"), NodeKind::Epoch, "start").cluster(format!("node {node}"));
            recorder.commands.push_node(root);
        }
        recorder
    }

    pub(crate) fn create_buffer(&mut self, extent: Extent<3>, initialised: bool, id: BufferId, bytes: usize) {
        let same = self.graph.create_buffer(extent, initialised);
        assert_eq!(same, id, "both graphs are told the same");
        self.nodes.iter_mut().for_each(|node| node.create_buffer(id, extent, initialised));
        self.buffers.insert(id, Named { label: String::new(), bytes });
    }

    pub(crate) fn remove_buffer(&mut self, id: BufferId) {
        self.graph.remove_buffer(id);
        self.nodes.iter_mut().for_each(|node| node.remove_buffer(id));
        self.buffers.remove(&id);
    }

    pub(crate) fn create_object(&mut self, id: ObjectId) {
        let same = self.graph.create_object();
        assert_eq!(same, id, "both graphs are told the same");
        self.nodes.iter_mut().for_each(|node| node.create_object(id));
    }

    pub(crate) fn remove_object(&mut self, id: ObjectId) {
        self.graph.remove_object(id);
        self.nodes.iter_mut().for_each(|node| node.remove_object(id));
        self.objects.remove(&id);
    }

    pub(crate) fn set_versions(&mut self, id: BufferId, versions: usize) {
        self.graph.set_versions(id, versions);
    }

    pub(crate) fn discard(&mut self, id: BufferId) {
        self.graph.discard(id, &|_| false);
    }

    /// A task that the runtime's graph has accepted.
    pub(crate) fn task(&mut self, label: &TaskLabel, told: &Told, accesses: &[Access], effects: &[Effect]) {
        let submitted = if told.work == Work::Epoch {
            self.graph.epoch(accesses, effects, &|_| false)
        } else {
            self.graph.submit(accesses, effects, &|_| false)
        };
        let submitted = submitted.expect("both graphs are told the same");
        for (access, label) in accesses.iter().zip(&told.buffers) {
            if let Some(named) = self.buffers.get_mut(&access.buffer) {
                named.label.clone_from(label);
            }
        }
        for (effect, label) in effects.iter().zip(&told.objects) {
            self.objects.insert(effect.object, label.clone());
        }
        self.counts.tasks += 1;
        if !self.tasks.is_full() {
            let node = self.describe_task(submitted.id, label, told, accesses, effects);
            self.tasks.push_node(node);
        }
        self.push_dependencies(submitted.id, &submitted.dependencies);
        for &other in &submitted.conflicts {
            self.tasks.push_edge(Edge::new(key(other), key(submitted.id), EdgeKind::Conflict));
        }
        let launch = Launch {
            task: submitted.id,
            work: told.work,
            hints: told.hints,
            accesses: &told.accesses,
            reductions: &told.reductions,
            effects,
        };
        self.launch(label.name(), &launch);
        if let Some(horizon) = &submitted.horizon {
            self.tasks.push_node(Node::new(key(horizon.id), NodeKind::Horizon, "horizon"));
            self.push_dependencies(horizon.id, &horizon.dependencies);
            self.launch("horizon", &Launch::new(horizon.id, Work::Horizon));
        }
    }

    fn describe_task(
        &self,
        id: TaskId,
        label: &TaskLabel,
        told: &Told,
        accesses: &[Access],
        effects: &[Effect],
    ) -> Node {
        let kind = match told.work {
            Work::Kernel { .. } => NodeKind::Kernel,
            Work::HostChunks { .. } | Work::HostOnce | Work::Collective => NodeKind::HostTask,
            Work::Fence => NodeKind::Fence,
            Work::Epoch => NodeKind::Epoch,
            Work::Horizon => NodeKind::Horizon,
        };
        let mut node = Node::new(key(id), kind, label.name());
        if let Work::Kernel { space } | Work::HostChunks { space } = told.work {
            node = node.detail(format!("over {space}"));
        }
        for (access, label) in accesses.iter().zip(&told.buffers) {
            let mode = match access.mode {
                _ if told.reductions.iter().any(|r| r.buffer == access.buffer) => "reduce",
                anabranch_graph::Mode::Read => "read",
                anabranch_graph::Mode::Write => "write",
                anabranch_graph::Mode::Update => "update",
            };
            node = node.detail(format!("{mode} {label} {}", access.region));
        }
        for (effect, label) in effects.iter().zip(&told.objects) {
            node = node.detail(format!("{} {label}", format!("{:?}", effect.order).to_lowercase()));
        }
        node
    }

    fn push_dependencies(&mut self, id: TaskId, dependencies: &[Dependency]) {
        for dependency in dependencies {
            let mut edge = Edge::new(key(dependency.on), key(id), dependency.kind.into());
            let label = match dependency.origin {
                Origin::Buffer(buffer) => self.buffers.get(&buffer).map(|named| &named.label),
                Origin::Object(object) => self.objects.get(&object),
                Origin::Graph => None,
            };
            if let Some(label) = label {
                edge = edge.label(label.clone());
            }
            self.tasks.push_edge(edge);
        }
    }

    /// Generates the commands of all nodes.
    fn launch(&mut self, name: &str, launch: &Launch<'_>) {
        if self.refused.is_some() {
            return;
        }
        let Self { nodes, commands: drawing, buffers, counts, .. } = self;
        // Where the messages of this launch begin and end.
        let (mut sent, mut awaited) = (Vec::new(), Vec::new());
        for (rank, node) in nodes.iter_mut().enumerate() {
            // Range mappers are the program's, and are asked for chunks here that the program itself does not have.
            let launched = catch_unwind(AssertUnwindSafe(|| node.launch(launch).map(<[Command]>::to_vec)));
            let commands = match launched {
                Ok(Ok(commands)) => commands,
                Ok(Err(error)) => {
                    self.refused = Some(error.to_string());
                    return;
                }
                Err(payload) => {
                    // Left alone: its destructor could panic, and here nobody would catch that.
                    std::mem::forget(payload);
                    self.refused = Some(format!("a range mapper of task \"{name}\" panicked"));
                    return;
                }
            };
            for command in &commands {
                counts.add(command, buffers);
                if drawing.is_full() {
                    continue;
                }
                let key = format!("N{rank}.{}", command.id);
                drawing.push_node(describe_command(&key, rank, name, command, buffers));
                for dependency in &command.dependencies {
                    drawing.push_edge(Edge::new(
                        format!("N{rank}.{}", dependency.on),
                        key.clone(),
                        dependency.kind.into(),
                    ));
                }
                for other in &command.conflicts {
                    let other = format!("N{rank}.{other}");
                    drawing.push_edge(Edge::new(other, key.clone(), EdgeKind::Conflict));
                }
                match &command.kind {
                    CommandKind::Push { buffer, targets, .. } => {
                        sent.extend(targets.iter().map(|t| (key.clone(), *buffer, t.node)));
                    }
                    CommandKind::PushPartials { buffer, targets, .. } => {
                        sent.extend(targets.iter().map(|&t| (key.clone(), *buffer, t)));
                    }
                    CommandKind::AwaitPush { buffer, .. } | CommandKind::AwaitPartials { buffer, .. } => {
                        awaited.push((key, *buffer, NodeId(rank as u16)));
                    }
                    _ => {}
                }
            }
            counts.most = counts.most.max(commands.last().map_or(0, |last| last.id.0));
        }
        for (from, buffer, target) in sent {
            for (to, ..) in awaited.iter().filter(|(_, b, node)| (*b, *node) == (buffer, target)) {
                drawing.push_edge(Edge::new(from.clone(), to.clone(), EdgeKind::Message));
            }
        }
    }

    /// The task graph so far.
    pub(crate) fn tasks(&self) -> Drawing {
        self.tasks.clone()
    }

    /// The command graphs so far, where they are generated.
    pub(crate) fn commands(&self) -> Option<Drawing> {
        self.wanted.nodes.map(|_| self.commands.clone())
    }

    /// What a dry run has come to, in words.
    pub(crate) fn summary(&self) -> Option<String> {
        let nodes = self.wanted.nodes?;
        let Counts { tasks, commands, pushes, messages, bytes, most } = self.counts;
        let mut text = format!(
            "dry run for {nodes} nodes: {tasks} tasks, {commands} commands ({most} on the node that has most), \
             {pushes} pushes in {messages} messages, {:.1} MB between nodes",
            bytes as f64 / 1e6,
        );
        if let Some(error) = &self.refused {
            // Writing to a string succeeds.
            let _ = write!(text, "; commands end where this was refused: {error}");
        }
        Some(text)
    }

    /// The runtime ends: writes and prints what the environment asks for.
    pub(crate) fn finish(&self) {
        if let Some(summary) = self.summary() {
            eprintln!("anabranch: {summary}");
        }
        if let Some(path) = &self.wanted.path
            && let Err(error) = self.write(path)
        {
            eprintln!("anabranch: the graphs could not be written to {}: {error}", path.display());
        }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        /// Several runtimes of one process do not overwrite each other's graphs.
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
        match self.commands() {
            Some(commands) => fs::write(name("-commands"), commands.render(format)),
            None => Ok(()),
        }
    }
}

impl Counts {
    fn add(&mut self, command: &Command, buffers: &HashMap<BufferId, Named>) {
        self.commands += 1;
        let mut send = |buffer: &BufferId, region: &Region<3>, times: usize| {
            let size = buffers.get(buffer).map_or(0, |named| named.bytes);
            self.messages += times as u64;
            self.bytes += (region.len() * size * times) as u64;
        };
        match &command.kind {
            CommandKind::Push { buffer, targets } => {
                targets.iter().for_each(|target| send(buffer, &target.region, 1));
                self.pushes += 1;
            }
            CommandKind::PushPartials { buffer, region, targets, .. } => {
                send(buffer, region, targets.len());
                self.pushes += 1;
            }
            _ => {}
        }
    }
}

fn key(task: TaskId) -> String {
    task.to_string()
}

fn describe_command(
    key: &str,
    rank: usize,
    name: &str,
    command: &Command,
    buffers: &HashMap<BufferId, Named>,
) -> Node {
    let label = |buffer: &BufferId| buffers.get(buffer).map_or("", |named| &named.label).to_owned();
    let (kind, details) = match &command.kind {
        CommandKind::Execute { chunk, .. } => (NodeKind::Execution, vec![chunk.range.to_string()]),
        CommandKind::Push { buffer, targets } => {
            let to = |t: &anabranch_graph::command::Target| format!("{} to node {}", t.region, t.node.0);
            (NodeKind::Push, [label(buffer)].into_iter().chain(targets.iter().map(to)).collect())
        }
        CommandKind::PushPartials { buffer, targets, leaves, .. } => {
            let to = targets.iter().map(|t| format!("partial results {leaves:?} to node {}", t.0));
            (NodeKind::Push, [label(buffer)].into_iter().chain(to).collect())
        }
        CommandKind::AwaitPush { buffer, region } => {
            (NodeKind::AwaitPush, vec![label(buffer), region.to_string()])
        }
        CommandKind::AwaitPartials { buffer, .. } => {
            (NodeKind::AwaitPush, vec![label(buffer), "partial results".into()])
        }
        CommandKind::Reduce { buffer, .. } => (NodeKind::Reduction, vec![label(buffer)]),
        CommandKind::Fence => (NodeKind::Fence, vec![]),
        CommandKind::Epoch => (NodeKind::Epoch, vec![]),
        CommandKind::Horizon => (NodeKind::Horizon, vec![]),
    };
    let node = Node::new(key, kind, format!("{name} ({})", command.task)).cluster(format!("node {rank}"));
    details.into_iter().filter(|detail| !detail.is_empty()).fold(node, Node::detail)
}
