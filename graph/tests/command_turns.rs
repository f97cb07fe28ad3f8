//! Effects on host objects of the whole cluster are ordered over all nodes.

use anabranch_graph::{BufferId, Effect, Mode, ObjectId, Order, TaskId, command::*};
use anabranch_grid::{Extent, GridBox, all, one_to_one};
use std::{
    collections::{BTreeMap, BTreeSet},
    slice,
};

const OBJECT: ObjectId = ObjectId(1);
const U: BufferId = BufferId(2);
const SEQUENTIAL: Effect = Effect { object: OBJECT, order: Order::Sequential };
const EXCLUSIVE: Effect = Effect { object: OBJECT, order: Order::Exclusive };

/// A part of a task: the task and the node.
type Part = (TaskId, NodeId);

/// The messages to a node that have not been awaited: their senders, and what comes before them.
type Sent = BTreeMap<(Pass, NodeId), Vec<(NodeId, BTreeSet<Part>)>>;

/// What the commands of a program on several nodes come after.
struct Cluster {
    graphs: Vec<CommandGraph>,
    tasks: u64,
    /// For each command of each node: the parts of tasks that end before it ends.
    before: BTreeMap<(NodeId, CommandId), BTreeSet<Part>>,
    /// The parts of each task with an effect, and the order of the effect.
    parts: BTreeMap<TaskId, (Order, BTreeSet<Part>)>,
    home: NodeId,
}

impl Cluster {
    fn new(nodes: u16, home: u16) -> Self {
        let mut graphs: Vec<_> = (0..nodes).map(|node| CommandGraph::new(NodeId(node), nodes)).collect();
        for graph in &mut graphs {
            graph.create_cluster_object(OBJECT, NodeId(home));
            graph.create_buffer(U, Extent([64, 1, 1]), true);
        }
        let before = (0..nodes).map(|node| ((NodeId(node), CommandId::EPOCH), BTreeSet::new())).collect();
        Self { graphs, tasks: 0, before, parts: BTreeMap::new(), home: NodeId(home) }
    }

    /// Submits a task to all nodes; returns their commands.
    fn launch(
        &mut self,
        work: Work,
        hints: Hints,
        accesses: &[BufferAccess],
        effects: &[Effect],
    ) -> Vec<Vec<Command>> {
        self.tasks += 1;
        let task = TaskId(self.tasks);
        let launch = Launch { hints, accesses, effects, ..Launch::new(task, work) };
        let commands: Vec<_> =
            self.graphs.iter_mut().map(|graph| graph.launch(&launch).unwrap().to_vec()).collect();
        assert!(self.graphs.iter().all(|graph| graph.program_hash() == self.graphs[0].program_hash()));
        self.execute(task, &commands);
        effects.iter().for_each(|effect| self.check_order(task, effect.order, &commands));
        commands
    }

    /// Executes the commands of a task as soon as what they need is there. Panics if some of them never can.
    fn execute(&mut self, task: TaskId, commands: &[Vec<Command>]) {
        let mut sent = Sent::new();
        let mut next = vec![0; commands.len()];
        while let Some((node, command)) = (0..commands.len()).find_map(|node| {
            let command = commands[node].get(next[node])?;
            let me = NodeId(node as u16);
            let CommandKind::AwaitTurn { pass, messages, .. } = command.kind else {
                return Some((me, command));
            };
            let arrived = sent.get(&(pass, me)).map_or(0, |all| all.len());
            (arrived == messages as usize).then_some((me, command))
        }) {
            next[usize::from(node.0)] += 1;
            assert!(command.dependencies.iter().all(|d| d.on < command.id));
            let of = |d: &CommandDependency| self.before[&(node, d.on)].clone();
            let mut before: BTreeSet<Part> = command.dependencies.iter().flat_map(of).collect();
            match &command.kind {
                CommandKind::AwaitTurn { pass, .. } => {
                    let arrived = sent.remove(&(*pass, node)).unwrap();
                    let from: BTreeSet<_> = arrived.iter().map(|(from, _)| *from).collect();
                    assert_eq!(from.len(), arrived.len(), "one message of each node");
                    before.extend(arrived.into_iter().flat_map(|(_, before)| before));
                }
                CommandKind::PassTurn { pass, targets, .. } => {
                    assert!(targets.is_sorted());
                    for &to in targets.iter() {
                        assert_ne!(to, node);
                        sent.entry((*pass, to)).or_default().push((node, before.clone()));
                    }
                }
                CommandKind::Execute { .. } => _ = before.insert((task, node)),
                CommandKind::Fence | CommandKind::Epoch if node == self.home => {
                    before.insert((task, node));
                }
                _ => {}
            }
            self.before.insert((node, command.id), before);
        }
        let all: Vec<_> = commands.iter().map(Vec::len).collect();
        assert_eq!(next, all, "deadlock in {task}: {commands:?}");
        assert!(sent.is_empty(), "left over: {sent:?}");
    }

    /// Checks that all parts of a task come after all parts of every earlier task, if the effect of one of
    /// both is sequential.
    fn check_order(&mut self, task: TaskId, order: Order, commands: &[Vec<Command>]) {
        let mut parts = BTreeSet::new();
        for (node, commands) in commands.iter().enumerate() {
            let node = NodeId(node as u16);
            let is_part = |kind: &CommandKind| {
                matches!(kind, CommandKind::Execute { .. } | CommandKind::Fence | CommandKind::Epoch)
            };
            for command in commands.iter().filter(|command| is_part(&command.kind)) {
                let before = &self.before[&(node, command.id)];
                let sequential = |other: &Order| [order, *other].contains(&Order::Sequential);
                for (earlier, (_, parts)) in self.parts.iter().filter(|(_, (other, _))| sequential(other)) {
                    assert!(parts.is_subset(before), "{task} on {node} does not come after all of {earlier}");
                }
                parts.extend(before.get(&(task, node)));
            }
        }
        self.parts.insert(task, (order, parts));
    }
}

fn passes(commands: &[Command]) -> usize {
    let sent = |command: &Command| match &command.kind {
        CommandKind::PassTurn { targets, .. } => targets.len(),
        CommandKind::AwaitTurn { messages, .. } => *messages as usize,
        _ => 0,
    };
    commands.iter().map(sent).sum()
}

fn on(node: u16) -> Hints {
    Hints { node: Some(NodeId(node)), ..Hints::default() }
}

#[test]
fn all_parts_of_a_task_come_after_all_parts_of_the_task_before() {
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    for nodes in [1, 2, 3, 4, 5, 7, 16] {
        for home in [0, nodes / 2, nodes - 1] {
            let mut cluster = Cluster::new(nodes, home);
            for _ in 0..60 {
                let node = random(nodes.into()) as u16;
                let space = GridBox::full([random(20) as usize, 1, 1]);
                let (work, hints) = match random(8) {
                    0 | 1 => (Work::HostOnce, on(home)),
                    2 => (Work::Collective, Hints::default()),
                    3 => (Work::HostChunks { space }, Hints::default()),
                    4 => (Work::HostChunks { space }, on(node)),
                    5 => (Work::Fence, Hints::default()),
                    6 => (Work::Epoch, Hints::default()),
                    _ => (Work::Horizon, Hints::default()),
                };
                let has_effect = work != Work::Horizon && random(4) > 0;
                cluster.launch(work, hints, &[], if has_effect { &[SEQUENTIAL] } else { &[] });
            }
        }
    }
}

#[test]
fn the_order_holds_for_launches_that_repeat_with_data() {
    let points = || BufferAccess { buffer: U, mode: Mode::Update, mapper: erase(one_to_one(), Extent([64])) };
    let whole = || BufferAccess { buffer: U, mode: Mode::Read, mapper: erase::<1, 1>(all(), Extent([64])) };
    let space = GridBox::full([64, 1, 1]);
    for nodes in [1, 2, 5] {
        let mut cluster = Cluster::new(nodes, nodes - 1);
        for _ in 0..12 {
            cluster.launch(Work::HostChunks { space }, Hints::default(), &[points()], &[SEQUENTIAL]);
            cluster.launch(Work::HostOnce, on(nodes - 1), &[whole()], &[SEQUENTIAL]);
            cluster.launch(Work::HostChunks { space }, Hints::default(), &[points()], &[]);
        }
    }
}

#[test]
fn messages_grow_with_the_logarithm_of_the_nodes() {
    let mut cluster = Cluster::new(256, 0);
    for (work, busiest) in
        [(Work::Collective, 8), (Work::Collective, 16), (Work::HostOnce, 8), (Work::Fence, 8)]
    {
        let commands = cluster.launch(work, Hints::default(), &[], &[SEQUENTIAL]);
        assert_eq!(commands.iter().map(|commands| passes(commands)).max(), Some(busiest), "{work:?}");
    }
    // The home has the turn.
    for _ in 0..3 {
        let commands = cluster.launch(Work::HostOnce, Hints::default(), &[], &[SEQUENTIAL]);
        assert_eq!(commands.iter().map(Vec::len).sum::<usize>(), 1);
    }
}

#[test]
fn exclusive_effects_on_the_home_conflict_and_wait_for_the_turn() {
    let mut cluster = Cluster::new(3, 0);
    cluster.launch(Work::Collective, Hints::default(), &[], &[SEQUENTIAL]);
    let one = cluster.launch(Work::HostOnce, Hints::default(), &[], &[EXCLUSIVE]);
    let two = cluster.launch(Work::HostOnce, Hints::default(), &[], &[EXCLUSIVE]);
    let [arrival, first] = &one[0][..] else { panic!("{:?}", one[0]) };
    let [second] = &two[0][..] else { panic!("{:?}", two[0]) };
    assert_eq!(first.dependencies[..], [CommandDependency { on: arrival.id, ..first.dependencies[0] }]);
    assert_eq!(second.dependencies, first.dependencies);
    assert_eq!(second.conflicts[..], [first.id]);
    // Both have ended before the other nodes go on.
    let next = cluster.launch(Work::Collective, Hints::default(), &[], &[SEQUENTIAL]);
    let pass = &next[0][0];
    assert!(matches!(pass.kind, CommandKind::PassTurn { .. }));
    assert_eq!(pass.dependencies.iter().map(|d| d.on).collect::<Vec<_>>(), [first.id, second.id]);
}

#[test]
fn an_error_leaves_the_turn_where_it_is() {
    let mut cluster = Cluster::new(2, 0);
    let wrong = BufferAccess { buffer: U, mode: Mode::Write, mapper: erase::<1, 1>(all(), Extent([64])) };
    for graph in &mut cluster.graphs {
        let hash = graph.program_hash();
        let launch = Launch {
            accesses: slice::from_ref(&wrong),
            effects: &[SEQUENTIAL],
            ..Launch::new(TaskId(1), Work::Collective)
        };
        assert!(graph.launch(&launch).is_err());
        assert_eq!(graph.program_hash(), hash);
    }
    let commands = cluster.launch(Work::Collective, Hints::default(), &[], &[SEQUENTIAL]);
    assert_eq!(commands.iter().map(|commands| passes(commands)).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn the_home_is_a_part_of_the_program_hash() {
    let hash = |create: &dyn Fn(&mut CommandGraph)| {
        let mut graph = CommandGraph::new(NodeId(0), 2);
        create(&mut graph);
        graph.program_hash()
    };
    let hashes = [
        hash(&|graph| graph.create_object(OBJECT)),
        hash(&|graph| graph.create_cluster_object(OBJECT, NodeId(0))),
        hash(&|graph| graph.create_cluster_object(OBJECT, NodeId(1))),
    ];
    assert_eq!(BTreeSet::from(hashes).len(), 3);
}
