//! Draws graphs of small programs: `cargo run -p anabranch-graph --example pictures -- FOLDER [FORMAT
//! [NAME]…]`.
//!
//! Four graphs are derived from accesses and effects: the product of two matrices and its verification, a
//! wave equation in blocks whose frames are saved now and then, tasks with all orders of effects on one
//! object, and a barrier. Two graphs, a stencil on three nodes and a program with a failure, are put together
//! by hand.
//!
//! This command makes the pictures of the guide: `cargo run -p anabranch-graph --example pictures --
//! anabranch/src/guide/graphs svg orders epochs matrix_product`.

use anabranch_graph::print::{Drawing, Edge, EdgeKind, Format, Node, NodeKind, State};
use anabranch_graph::{
    Access, BufferId, Effect, GraphError, ObjectId, Order, Origin, Settings, Submitted, TaskGraph,
};
use anabranch_grid::{Extent, GridBox, Region};
use std::{collections::HashMap, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("say which folder the pictures go to")?);
    let format: Format = arguments.next().as_deref().unwrap_or("svg").parse()?;
    let wanted: Vec<String> = arguments.collect();
    std::fs::create_dir_all(&folder)?;
    let drawings = [
        ("matrix_product", matrix_product()?),
        ("wave_sim", wave_sim()?),
        ("stencil_commands", stencil_commands()),
        ("conflicts", conflicts()),
        ("orders", orders()?),
        ("epochs", epochs()?),
    ];
    if let Some(unknown) = wanted.iter().find(|&w| drawings.iter().all(|(name, _)| w != name)) {
        return Err(format!("there is no picture called {unknown:?}").into());
    }
    for (name, drawing) in drawings {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        let path = folder.join(name).with_extension(format.names()[0]);
        std::fs::write(&path, drawing.render(format))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// A task graph, and the drawing of the tasks submitted so far.
struct Recorder {
    graph: TaskGraph,
    drawing: Drawing,
    buffers: HashMap<BufferId, &'static str>,
    objects: HashMap<ObjectId, &'static str>,
}

impl Recorder {
    fn new(title: &str) -> Self {
        let mut drawing = Drawing::new(title);
        drawing.push_node(Node::new("T0", NodeKind::Epoch, ""));
        let graph = TaskGraph::with(Settings { conflicts: true, ..Settings::default() });
        Self { graph, drawing, buffers: HashMap::new(), objects: HashMap::new() }
    }

    fn buffer(&mut self, name: &'static str, extent: Extent<3>, initialised: bool) -> BufferId {
        let buffer = self.graph.create_buffer(extent, initialised);
        self.buffers.insert(buffer, name);
        buffer
    }

    fn object(&mut self, name: &'static str) -> ObjectId {
        let object = self.graph.create_object();
        self.objects.insert(object, name);
        object
    }

    fn task(
        &mut self,
        kind: NodeKind,
        name: &str,
        accesses: &[Access],
        effects: &[Effect],
    ) -> Result<(), GraphError> {
        let submitted = self.graph.submit(accesses, effects, &|_| false)?;
        let mut node = Node::new(submitted.id.to_string(), kind, name);
        for access in accesses {
            let (mode, name) = (format!("{:?}", access.mode).to_lowercase(), self.buffers[&access.buffer]);
            node = node.detail(format!("{mode} {name} {}", shown(&access.region)));
        }
        for effect in effects {
            let (order, name) = (format!("{:?}", effect.order).to_lowercase(), self.objects[&effect.object]);
            node = node.detail(format!("{order} {name}"));
        }
        self.draw(node, &submitted);
        Ok(())
    }

    /// An epoch that captures what it reads.
    fn epoch(&mut self, name: &str, captures: &[Access]) -> Result<(), GraphError> {
        let submitted = self.graph.epoch(captures, &[], &|_| false)?;
        let mut node = Node::new(submitted.id.to_string(), NodeKind::Epoch, name);
        for capture in captures {
            node =
                node.detail(format!("capture {} {}", self.buffers[&capture.buffer], shown(&capture.region)));
        }
        self.draw(node, &submitted);
        Ok(())
    }

    fn draw(&mut self, node: Node, submitted: &Submitted) {
        self.drawing.push_node(node);
        let to = submitted.id.to_string();
        for dependency in &submitted.dependencies {
            let label = match dependency.origin {
                Origin::Buffer(buffer) => self.buffers[&buffer],
                Origin::Object(object) => self.objects[&object],
                Origin::Graph => "",
            };
            let edge = Edge::new(dependency.on.to_string(), &*to, dependency.kind.into());
            self.drawing.push_edge(edge.label(label));
        }
        for other in &submitted.conflicts {
            self.drawing.push_edge(Edge::new(other.to_string(), &*to, EdgeKind::Conflict));
        }
    }
}

/// A region without its trailing axes `0..1`, which pad buffers of fewer dimensions.
fn shown(region: &Region<3>) -> String {
    region.to_string().replace(", 0..1]", "]").replace(", 0..1]", "]")
}

fn matrix_product() -> Result<Drawing, GraphError> {
    let mut program = Recorder::new("Matrix product: tasks");
    let whole = GridBox::new([0, 0, 0], [64, 64, 1]);
    let one = GridBox::new([0, 0, 0], [1, 1, 1]);
    let [a, b, c] = ["A", "B", "C"].map(|name| program.buffer(name, Extent([64, 64, 1]), false));
    let ok = program.buffer("ok", Extent([1, 1, 1]), false);
    program.task(NodeKind::Kernel, "diag A", &[Access::write(a, whole)], &[])?;
    program.task(NodeKind::Kernel, "diag B", &[Access::write(b, whole)], &[])?;
    let reads = [Access::read(a, whole), Access::read(b, whole), Access::write(c, whole)];
    program.task(NodeKind::Kernel, "multiply", &reads, &[])?;
    program.task(NodeKind::Kernel, "verify", &[Access::read(c, whole), Access::write(ok, one)], &[])?;
    program.epoch("drain", &[Access::read(ok, one)])?;
    Ok(program.drawing)
}

/// Sixty tasks: three blocks of rows, eighteen steps, every third step saved.
fn wave_sim() -> Result<Drawing, GraphError> {
    let mut program = Recorder::new("Wave equation: tasks");
    let (rows, blocks) = (96, 3);
    let mut fields = ["u", "v"].map(|name| program.buffer(name, Extent([rows, 64, 1]), true));
    let log = program.object("log");
    let part = |from: usize, to: usize| GridBox::new([from, 0, 0], [to, 64, 1]);
    for step in 0..18 {
        let [now, next] = fields;
        for block in 0..blocks {
            let (from, to) = (block * rows / blocks, (block + 1) * rows / blocks);
            let halo = part(from.saturating_sub(1), (to + 1).min(rows));
            let accesses = [Access::read(now, halo), Access::update(next, part(from, to))];
            program.task(NodeKind::Kernel, "wave step", &accesses, &[])?;
        }
        if step % 3 == 2 {
            let effect = Effect { object: log, order: Order::Sequential };
            program.task(
                NodeKind::HostTask,
                "save frame",
                &[Access::read(next, part(0, rows))],
                &[effect],
            )?;
        }
        fields = [next, now];
    }
    Ok(program.drawing)
}

/// Commands of two steps of a one-dimensional stencil on three nodes.
fn stencil_commands() -> Drawing {
    let mut drawing = Drawing::new("Stencil on three nodes: commands");
    let id = |node: usize, command: usize| format!("N{node}.C{command}");
    for node in 0..3 {
        let lane = format!("node {node}");
        let own = format!("[{}..{}]", node * 32, node * 32 + 32);
        let mut command = 0;
        let mut push = |kind, name: &str, detail: String, after: &[(usize, EdgeKind, &str)]| {
            drawing.push_node(Node::new(id(node, command), kind, name).detail(detail).cluster(&lane));
            for &(on, kind, label) in after {
                drawing.push_edge(Edge::new(id(node, on), id(node, command), kind).label(label));
            }
            command += 1;
        };
        push(NodeKind::Epoch, "", "start".into(), &[]);
        push(NodeKind::Execution, "init", format!("write u {own}"), &[(0, EdgeKind::Serial, "")]);
        push(NodeKind::Push, "u", format!("to {}", neighbours(node)), &[(1, EdgeKind::True, "u")]);
        push(NodeKind::AwaitPush, "u", format!("from {}", neighbours(node)), &[(0, EdgeKind::Serial, "")]);
        let step = [(1, EdgeKind::True, "u"), (3, EdgeKind::True, "u")];
        push(NodeKind::Execution, "step", format!("read u, write v {own}"), &step);
        push(
            NodeKind::Execution,
            "step",
            format!("read v, write u {own}"),
            &[(4, EdgeKind::True, "v"), (2, EdgeKind::Anti, "u")],
        );
        push(NodeKind::Horizon, "", "depth 4".into(), &[(5, EdgeKind::Serial, "")]);
    }
    for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
        drawing.push_edge(Edge::new(id(from, 2), id(to, 3), EdgeKind::Message).label("u"));
    }
    drawing
}

fn neighbours(node: usize) -> &'static str {
    ["node 1", "nodes 0, 2", "node 1"][node]
}

/// Exclusive, relaxed and sequential effects on one object, with a failure.
fn conflicts() -> Drawing {
    let mut drawing = Drawing::new("Effects on one object");
    drawing.push_node(Node::new("T0", NodeKind::Epoch, "").state(State::Done));
    let tasks = ["open", "add north", "add south", "read", "close"];
    let orders = ["sequential", "exclusive", "exclusive", "relaxed", "sequential"];
    let states = [State::Done, State::Done, State::Failed, State::Done, State::Skipped];
    for (i, ((task, order), state)) in tasks.into_iter().zip(orders).zip(states).enumerate() {
        let node = Node::new(format!("T{}", i + 1), NodeKind::HostTask, task);
        drawing.push_node(node.detail(format!("{order} \"sum\"")).state(state));
    }
    drawing.push_edge(Edge::new("T0", "T1", EdgeKind::Serial));
    for middle in ["T2", "T3", "T4"] {
        drawing.push_edge(Edge::new("T1", middle, EdgeKind::Serial).label("sum"));
        drawing.push_edge(Edge::new(middle, "T5", EdgeKind::Serial).label("sum"));
    }
    for [a, b] in [["T2", "T3"], ["T2", "T4"], ["T3", "T4"]] {
        drawing.push_edge(Edge::new(a, b, EdgeKind::Conflict).label("sum"));
    }
    drawing
}

/// Effects of all orders on one object: of the six tasks, only the relaxed ones may run at the same time.
fn orders() -> Result<Drawing, GraphError> {
    let mut program = Recorder::new("Three orders on one object");
    let diary = program.object("diary");
    let tasks = [
        ("open", Order::Sequential),
        ("calibrate", Order::Exclusive),
        ("look left", Order::Relaxed),
        ("look right", Order::Relaxed),
        ("adjust", Order::Exclusive),
        ("close", Order::Sequential),
    ];
    for (name, order) in tasks {
        program.task(NodeKind::HostTask, name, &[], &[Effect { object: diary, order }])?;
    }
    Ok(program.drawing)
}

/// A barrier, with independent tasks on both sides.
fn epochs() -> Result<Drawing, GraphError> {
    let mut program = Recorder::new("A barrier");
    let whole = GridBox::new([0, 0, 0], [8, 1, 1]);
    let [a, b, c] = ["A", "B", "C"].map(|name| program.buffer(name, Extent([8, 1, 1]), false));
    program.task(NodeKind::Kernel, "fill A", &[Access::write(a, whole)], &[])?;
    program.task(NodeKind::Kernel, "fill B", &[Access::write(b, whole)], &[])?;
    program.task(NodeKind::Kernel, "change A", &[Access::update(a, whole)], &[])?;
    program.epoch("barrier", &[Access::read(b, whole)])?;
    program.task(NodeKind::Kernel, "use A", &[Access::read(a, whole)], &[])?;
    program.task(NodeKind::Kernel, "fill C", &[Access::write(c, whole)], &[])?;
    Ok(program.drawing)
}
