//! Simulated nodes: each has its own memory and executes its commands in a random order that keeps their
//! dependencies.

use super::{
    hazards::{Ancestors, Commands},
    model::*,
    program::*,
};
use anabranch_graph::{command::*, *};
use anabranch_grid::{Point, Region};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::{ops::Range, rc::Rc};

/// Partial results of consecutive leaves, for each point.
type Partials = BTreeMap<u32, (Range<u32>, BTreeMap<Point<3>, u64>)>;

/// The memories of the buffers that the commands of a launch use.
type Versions = BTreeMap<BufferId, u32>;

#[derive(Default)]
struct Node {
    /// Its number, and the number of all nodes.
    place: (u16, u16),
    commands: Vec<Command>,
    /// For each command.
    versions: Vec<Rc<Versions>>,
    /// By buffer and version.
    memory: BTreeMap<(BufferId, u32), Array>,
    /// The partial results that were computed here or have arrived, by task and buffer.
    partials: HashMap<(TaskId, BufferId), Partials>,
    /// The elements that have arrived and are still awaited.
    inbox: HashMap<TransferName, BTreeMap<Point<3>, Element>>,
    partial_inbox: HashMap<TransferName, Vec<Partials>>,
    waits_for: Vec<usize>,
    followers: Vec<Vec<usize>>,
    ready: Vec<usize>,
    done: usize,
}

/// Submits the program to all nodes' graphs, checks the graphs, and executes the commands. Returns the number
/// of commands of each kind.
pub fn simulate(nodes: u16, actions: &[Action], last: &Memory, mut seed: u64) -> BTreeMap<String, usize> {
    let mut graphs: Vec<_> = (0..nodes).map(|node| CommandGraph::new(NodeId(node), nodes)).collect();
    let mut machine: Vec<_> = (0..nodes).map(|_| Node::default()).collect();
    let mut tasks = HashMap::new();
    for action in actions {
        if let Action::Launch(task) = action {
            tasks.insert(task.id, &**task);
        }
    }
    for (graph, node) in graphs.iter_mut().zip(&mut machine) {
        node.generate(graph, actions);
        node.check_edges(&tasks);
        node.check_that_versions_change_no_message(graph, actions);
    }
    assert!(graphs.iter().all(|graph| graph.program_hash() == graphs[0].program_hash()));

    let total: usize = machine.iter().map(|node| node.commands.len()).sum();
    for _ in 0..total {
        assert!(step(&mut machine, &tasks, &mut seed), "deadlock:\n{}", stuck(&machine));
    }
    for (number, node) in machine.iter().enumerate() {
        assert!(
            node.inbox.is_empty() && node.partial_inbox.is_empty(),
            "messages left over on node {number}"
        );
        check_memory(&graphs[number], node, last);
    }
    check_owners(&graphs, last);
    check_everywhere(&machine);
    check_exchanges(&machine);
    let mut kinds = BTreeMap::new();
    for command in machine.iter().flat_map(|node| &node.commands) {
        if exchange(command).is_some() {
            *kinds.entry("exchange".to_string()).or_default() += 1;
        }
        let words = format!("{:?}", command.kind);
        *kinds.entry(words.split([' ', '{']).next().unwrap().to_string()).or_default() += 1;
    }
    kinds
}

/// Checks that transfers of partial results say on every node whether every node combines them.
fn check_everywhere(machine: &[Node]) {
    let of = |command: &Command| match command.kind {
        CommandKind::Reduce { buffer, .. } => (command.task, buffer),
        _ => command.transfer().map(|name| (name.task, name.buffer)).expect("a transfer"),
    };
    let all = || machine.iter().flat_map(|node| &node.commands);
    let mut combined: HashMap<_, usize> = HashMap::new();
    for command in all().filter(|command| matches!(command.kind, CommandKind::Reduce { .. })) {
        *combined.entry(of(command)).or_default() += 1;
    }
    for command in all() {
        if let CommandKind::PushPartials { everywhere, .. } | CommandKind::AwaitPartials { everywhere, .. } =
            command.kind
        {
            assert_eq!(everywhere, combined[&of(command)] == machine.len(), "{command:?}");
        }
    }
}

/// The parts that all nodes exchange, if the command sends or awaits them.
fn exchange(command: &Command) -> Option<&[(NodeId, Region<3>)]> {
    match &command.kind {
        CommandKind::Push { exchange, .. } | CommandKind::AwaitPush { exchange, .. } => exchange.as_deref(),
        _ => None,
    }
}

/// Checks that all nodes exchange the same parts, that each node pushes its own part to all others, and that
/// it awaits all others.
fn check_exchanges(machine: &[Node]) {
    let of = |node: &Node, name| {
        let commands = node.commands.iter().filter(|command| command.transfer() == Some(name));
        commands.cloned().collect::<Vec<_>>()
    };
    let all = machine.iter().flat_map(|node| &node.commands).filter(|command| exchange(command).is_some());
    let names: BTreeSet<_> = all.filter_map(Command::transfer).collect();
    for name in names {
        let commands: Vec<_> = machine.iter().map(|node| of(node, name)).collect();
        let parts = exchange(&commands[0][0]).expect("every node has a command").to_vec();
        assert!(parts.is_sorted_by(|a, b| a.0 < b.0) && parts.iter().all(|(_, part)| !part.is_empty()));
        for (number, commands) in commands.iter().enumerate() {
            let is_mine = |node: &NodeId| usize::from(node.0) == number;
            let own = parts.iter().find(|(node, _)| is_mine(node)).map(|(_, part)| part);
            let others = parts.iter().filter(|(node, _)| !is_mine(node));
            let others: BTreeSet<_> = others.flat_map(|(_, part)| points(part)).collect();
            assert!(commands.iter().all(|command| exchange(command) == Some(&parts)), "{commands:?}");
            let (mut pushes, mut awaits) = (0, 0);
            for command in commands {
                match &command.kind {
                    CommandKind::Push { targets, .. } => {
                        pushes += 1;
                        assert!(targets.iter().all(|target| Some(&target.region) == own));
                        let to = targets.iter().map(|target| usize::from(target.node.0));
                        assert!(to.eq((0..machine.len()).filter(|&node| node != number)));
                    }
                    CommandKind::AwaitPush { region, .. } => {
                        awaits += 1;
                        assert_eq!(points(region).collect::<BTreeSet<_>>(), others);
                    }
                    kind => panic!("{kind:?} has no parts"),
                }
            }
            assert_eq!((pushes, awaits), (own.iter().len(), usize::from(!others.is_empty())));
        }
    }
}

/// Executes one command of some node. Returns whether there was one to execute.
fn step(machine: &mut [Node], tasks: &HashMap<TaskId, &Task>, seed: &mut u64) -> bool {
    let random = |seed: &mut u64| {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) as usize
    };
    let (first_node, first_command) = (random(seed), random(seed));
    for at in 0..machine.len() {
        let number = (first_node + at) % machine.len();
        let ready = machine[number].ready.len();
        for at in 0..ready {
            let at = (first_command + at) % ready;
            let index = machine[number].ready[at];
            if machine[number].can_execute(index) {
                machine[number].ready.swap_remove(at);
                execute(machine, number, index, tasks);
                machine[number].finish(index);
                return true;
            }
        }
    }
    false
}

fn stuck(machine: &[Node]) -> String {
    let line = |(number, node): (usize, &Node)| {
        let ready: Vec<_> = node.ready.iter().map(|&index| &node.commands[index]).collect();
        format!("N{number}: {ready:?}\n")
    };
    machine.iter().enumerate().map(line).collect()
}

fn points(region: &Region<3>) -> impl Iterator<Item = Point<3>> {
    region.boxes().iter().flat_map(|range| range.points())
}

fn execute(machine: &mut [Node], number: usize, index: usize, tasks: &HashMap<TaskId, &Task>) {
    let command = machine[number].commands[index].clone();
    let task = tasks[&command.task];
    let name = || command.transfer().expect("a transfer");
    let used = machine[number].versions[index].clone();
    let versions = |buffer: &BufferId| (*buffer, used[buffer]);
    match &command.kind {
        CommandKind::Push { buffer, targets, .. } => {
            for Target { node, region } in targets.iter() {
                assert_ne!(node.0 as usize, number, "a node sends nothing to itself");
                for p in points(region) {
                    let element = machine[number].memory[&versions(buffer)].get(p);
                    assert_eq!(
                        element,
                        task.before[buffer].get(p),
                        "N{number} pushes {p} of {buffer:?} current"
                    );
                    let element = element.expect("a pushed element was written");
                    let arrived = machine[node.0 as usize].inbox.entry(name()).or_default();
                    assert!(arrived.insert(p, element).is_none(), "{p} arrives once");
                }
            }
        }
        CommandKind::PushPartials { buffer, region, reduction, leaves, targets, .. } => {
            let all = task_leaves(tasks, *reduction);
            let mine = &machine[number].partials[&(*reduction, *buffer)];
            let mut message = Partials::new();
            for part in subtrees(all, leaves.clone()) {
                let value = |p| {
                    combine(part.clone(), part.clone().map(|leaf| (leaf..leaf + 1, mine[&leaf].1[&p])), join)
                };
                let values = points(region).map(|p| (p, value(p))).collect();
                message.insert(part.start, (part, values));
            }
            for node in targets.iter() {
                let inbox = &mut machine[node.0 as usize].partial_inbox;
                inbox.entry(name()).or_default().push(message.clone());
            }
        }
        _ => machine[number].execute_alone(&command, &used, task, tasks),
    }
}

fn task_leaves(tasks: &HashMap<TaskId, &Task>, reduction: TaskId) -> u32 {
    tasks[&reduction].leaves.len() as u32
}

impl Node {
    fn generate(&mut self, graph: &mut CommandGraph, actions: &[Action]) {
        self.place = (graph.node().0, graph.nodes());
        let mut extents = BTreeMap::new();
        for action in actions {
            let commands = submit(graph, action, true);
            match action {
                Action::CreateBuffer { buffer, extent, initialised, .. } => {
                    extents.insert(*buffer, *extent);
                    let array = if *initialised { initial(*extent, *buffer) } else { Array::new(*extent) };
                    self.memory.insert((*buffer, 0), array);
                }
                // The memory stays until the commands that use it are done.
                Action::RemoveBuffer(buffer) => drop(extents.remove(buffer)),
                _ => {}
            }
            let versions: Versions = extents.keys().map(|&buffer| (buffer, graph.version(buffer))).collect();
            for (buffer, version) in &versions {
                self.memory.entry((*buffer, *version)).or_insert_with(|| Array::new(extents[buffer]));
            }
            let versions = Rc::new(versions);
            self.versions.extend(commands.iter().map(|_| versions.clone()));
            self.commands.extend(commands);
        }
        // Commands count from 1; the root epoch is done.
        self.followers = vec![Vec::new(); self.commands.len()];
        for (index, command) in self.commands.iter().enumerate() {
            assert_eq!(command.id, CommandId(index as u64 + 1));
            let on: Vec<_> = command.dependencies.iter().filter(|d| d.on > CommandId::EPOCH).collect();
            on.iter().for_each(|d| self.followers[d.on.0 as usize - 1].push(index));
            self.waits_for.push(on.len());
            if on.is_empty() {
                self.ready.push(index);
            }
        }
    }

    /// Checks that this node sends and awaits the same if no buffer has several versions.
    fn check_that_versions_change_no_message(&self, graph: &CommandGraph, actions: &[Action]) {
        let mut alone = CommandGraph::new(graph.node(), graph.nodes());
        let expected: Vec<_> = actions.iter().flat_map(|action| submit(&mut alone, action, false)).collect();
        assert_eq!(messages(&self.commands), messages(&expected));
        assert_eq!(alone.program_hash(), graph.program_hash());
    }

    fn can_execute(&self, index: usize) -> bool {
        let command = &self.commands[index];
        match &command.kind {
            CommandKind::AwaitPush { region, .. } => {
                let arrived = self.inbox.get(&command.transfer().expect("a transfer"));
                arrived.is_some_and(|arrived| points(region).all(|p| arrived.contains_key(&p)))
            }
            CommandKind::AwaitPartials { present, leaves, .. } => {
                let messages = self.partial_inbox.get(&command.transfer().expect("a transfer"));
                let arrived: usize =
                    messages.into_iter().flatten().flat_map(|m| m.values()).map(|part| part.0.len()).sum();
                arrived + present.len() >= *leaves as usize
            }
            _ => true,
        }
    }

    fn finish(&mut self, index: usize) {
        self.done += 1;
        for &follower in &self.followers[index] {
            self.waits_for[follower] -= 1;
            if self.waits_for[follower] == 0 {
                self.ready.push(follower);
            }
        }
    }

    /// Executes a command that sends no message.
    fn execute_alone(
        &mut self,
        command: &Command,
        versions: &Versions,
        task: &Task,
        tasks: &HashMap<TaskId, &Task>,
    ) {
        let version = |buffer: &BufferId| (*buffer, versions[buffer]);
        match &command.kind {
            CommandKind::Execute { chunk, leaves } => self.execute_chunk(task, versions, chunk, leaves),
            CommandKind::Fence | CommandKind::Epoch | CommandKind::Horizon => {
                let (me, nodes) = self.place;
                self.check_reads(task, versions, &task.snapshot(NodeId(me), nodes));
            }
            CommandKind::AwaitPush { buffer, region, .. } => {
                let name = command.transfer().expect("a transfer");
                let arrived = self.inbox.get_mut(&name).expect("a message");
                let memory = self.memory.get_mut(&version(buffer)).unwrap();
                for p in points(region) {
                    let element = arrived.remove(&p).expect("what is awaited has arrived");
                    assert_ne!(memory.get(p), Some(element), "{p} of {buffer:?} is stale before it arrives");
                    memory.set(p, element);
                }
                if arrived.is_empty() {
                    self.inbox.remove(&name);
                }
            }
            CommandKind::AwaitPartials { buffer, reduction, present, .. } => {
                let name = command.transfer().expect("a transfer");
                let messages = self.partial_inbox.remove(&name).expect("a message");
                let mine = self.partials.entry((*reduction, *buffer)).or_default();
                for (first, part) in messages.into_iter().flatten() {
                    assert!(part.0.clone().all(|leaf| !present.contains(&leaf)));
                    assert!(mine.insert(first, part).is_none(), "partial results arrive once");
                }
            }
            CommandKind::Reduce { buffer, region, reduction, leaves } => {
                assert_eq!(*leaves, task_leaves(tasks, *reduction));
                let partials = &self.partials[&(*reduction, *buffer)];
                let memory = self.memory.get_mut(&version(buffer)).unwrap();
                for p in points(region) {
                    let parts = partials.values().map(|(part, values)| (part.clone(), values[&p]));
                    memory.set(p, Element { value: combine(0..*leaves, parts, join), stamp: *reduction });
                }
            }
            CommandKind::Push { .. } | CommandKind::PushPartials { .. } => unreachable!("these send"),
            CommandKind::PassTurn { .. } | CommandKind::AwaitTurn { .. } => {
                unreachable!("these programs have no objects of the whole cluster")
            }
        }
    }

    fn check_reads(&self, task: &Task, versions: &Versions, chunk: &anabranch_grid::Chunk<3>) {
        for (buffer, region) in task.reads(chunk) {
            for p in points(&region) {
                let here = self.memory[&(buffer, versions[&buffer])].get(p);
                let expected = task.before[&buffer].get(p);
                assert_eq!(here, expected, "{} reads {p} of {buffer:?} current;{}", task.id, task.words);
            }
        }
    }

    fn execute_chunk(
        &mut self,
        task: &Task,
        versions: &Versions,
        chunk: &anabranch_grid::Chunk<3>,
        leaves: &Range<u32>,
    ) {
        self.check_reads(task, versions, chunk);
        for reduction in &task.reductions {
            let parts = &task.leaves[leaves.start as usize..leaves.end as usize];
            let union: Region<3> = parts.iter().copied().collect();
            assert_eq!(union, chunk.range.into(), "a chunk is made of leaves");
            let array = &self.memory[&(reduction.buffer, versions[&reduction.buffer])];
            let partials = self.partials.entry((task.id, reduction.buffer)).or_default();
            for leaf in leaves.clone() {
                let value = |p| {
                    let own = contribution(task.id, leaf, p);
                    let current = reduction.include_current && leaf == 0;
                    if current { join(array.get(p).unwrap().value, own) } else { own }
                };
                partials.insert(leaf, (leaf..leaf + 1, array.points().map(|p| (p, value(p))).collect()));
            }
        }
        for access in task.accesses.iter().filter(|a| a.mode.writes()) {
            let version = versions[&access.buffer];
            let array = self.memory.get_mut(&(access.buffer, version)).unwrap();
            for p in points(&access.mapper.map(chunk)) {
                let old = array.get(p).filter(|_| access.mode.reads());
                array.set(p, result(task.id, access.buffer, p, old));
            }
        }
    }

    /// Checks the edges of a graph.
    fn check_edges(&self, tasks: &HashMap<TaskId, &Task>) {
        let mut messages = HashSet::new();
        let (mut epoch, mut horizon, mut applied) = (CommandId::EPOCH, CommandId::EPOCH, CommandId::EPOCH);
        for command in &self.commands {
            let on: Vec<_> = command.dependencies.iter().map(|d| d.on).collect();
            assert!(!on.is_empty() && on.is_sorted_by(|a, b| a < b), "no duplicate edges: {command:?}");
            assert!(on[0] >= applied && *on.last().unwrap() < command.id, "within the horizon: {command:?}");
            assert!(on.len() == 1 || on[0] != epoch, "no needless edge to the epoch: {command:?}");
            let conflicts = &command.conflicts;
            assert!(conflicts.is_sorted_by(|a, b| a < b) && conflicts.iter().all(|c| *c < command.id));
            assert!(conflicts.iter().all(|c| !on.contains(c) && *c >= applied), "{command:?}");
            match &command.kind {
                CommandKind::Push { targets, .. } => {
                    let mut names = targets.iter().map(|target| (command.transfer(), target.node));
                    assert!(names.all(|name| messages.insert(name)), "one message per node, buffer and task");
                    assert!(!targets.is_empty() && targets.is_sorted_by(|a, b| a.node < b.node));
                    assert!(targets.iter().all(|target| !target.region.is_empty()));
                }
                CommandKind::Epoch => (applied, horizon, epoch) = (command.id, command.id, command.id),
                CommandKind::Horizon => (applied, horizon) = (horizon, command.id),
                _ => {}
            }
        }
        let ancestors = Ancestors::of(&self.commands);
        self.check_effects(tasks, &ancestors);
        let (me, nodes) = self.place;
        let version = |at: usize, buffer| self.versions[at][&buffer];
        let commands =
            Commands { node: (NodeId(me), nodes), commands: &self.commands, version: &version, tasks };
        commands.check(&ancestors);
    }

    /// Checks that commands with effects on one object are ordered or in conflict, as the stricter order
    /// demands.
    fn check_effects(&self, tasks: &HashMap<TaskId, &Task>, ancestors: &Ancestors) {
        let touching = |c: &Command| matches!(c.kind, CommandKind::Execute { .. } | CommandKind::Fence);
        let bounds = |c: &Command| matches!(c.kind, CommandKind::Epoch | CommandKind::Horizon);
        for (later, command) in self.commands.iter().enumerate() {
            if bounds(command) {
                assert_eq!(ancestors.count(later), later, "{command:?} comes after all before it");
            }
            for (earlier, other) in self.commands[..later].iter().enumerate() {
                if !(touching(command) && touching(other)) {
                    continue;
                }
                let path = ancestors.contain(later, earlier);
                let conflict = command.conflicts.contains(&other.id);
                for (a, b) in pairs(&tasks[&other.task].effects, &tasks[&command.task].effects) {
                    if a == Order::Sequential || b == Order::Sequential {
                        assert!(path, "{other:?} before {command:?}");
                    } else if a == Order::Exclusive || b == Order::Exclusive {
                        assert!(path || conflict, "{other:?} never with {command:?}");
                    }
                }
            }
        }
    }
}

/// Applies an action to a graph. Returns the commands.
fn submit(graph: &mut CommandGraph, action: &Action, with_versions: bool) -> Vec<Command> {
    match action {
        Action::CreateBuffer { buffer, extent, initialised, versions } => {
            graph.create_buffer(*buffer, *extent, *initialised);
            if with_versions {
                graph.set_versions(*buffer, *versions);
            }
        }
        Action::SetWeights(weights) => graph.set_weights(weights),
        Action::Discard(buffer) => graph.discard(*buffer, &|_| false),
        Action::RemoveBuffer(buffer) => graph.remove_buffer(*buffer),
        Action::CreateObject(object) => graph.create_object(*object),
        Action::Launch(task) => {
            let commands = graph.launch(&task.launch());
            return commands.unwrap_or_else(|error| panic!("{error}\nin{}", task.words)).to_vec();
        }
    }
    Vec::new()
}

/// What commands send to whom, and what they await.
fn messages(commands: &[Command]) -> BTreeSet<(TransferName, Option<NodeId>, String)> {
    let mut found = BTreeSet::new();
    for command in commands {
        let Some(name) = command.transfer() else { continue };
        match &command.kind {
            CommandKind::Push { targets, .. } => {
                found.extend(targets.iter().map(|to| (name, Some(to.node), to.region.to_string())));
            }
            kind => drop(found.insert((name, None, format!("{kind:?}")))),
        }
    }
    found
}

/// The orders of effects on common objects.
fn pairs(a: &[Effect], b: &[Effect]) -> Vec<(Order, Order)> {
    let common = |a: &Effect| b.iter().find(|b| b.object == a.object).map(|b| (a.order, b.order));
    a.iter().filter_map(common).collect()
}

/// Checks that the contents that are current on a node, according to its graph, are those of the model.
fn check_memory(graph: &CommandGraph, node: &Node, last: &Memory) {
    for (&buffer, array) in last {
        for p in points(&graph.current(buffer)) {
            let here = node.memory[&(buffer, graph.version(buffer))].get(p);
            assert_eq!(here, array.get(p), "{} has {p} of {buffer:?}", graph.node());
        }
        assert!(graph.current(buffer).contains(&graph.owned(buffer)));
    }
}

/// Checks that all written points are current on all nodes after the last epoch, that no point has two
/// owners, and that every point that a task wrote has one.
fn check_owners(graphs: &[CommandGraph], last: &Memory) {
    for (&buffer, array) in last {
        let mut owned = Region::empty();
        for graph in graphs {
            let own = graph.owned(buffer);
            assert!(!own.intersects(&owned), "{buffer:?} has one owner");
            owned = owned.union(&own);
            assert_eq!(graph.current(buffer), array.written());
            assert!(graph.pending(buffer).is_empty());
        }
        for p in array.points() {
            let by_task = array.get(p).is_some_and(|element| element.stamp != TaskId::EPOCH);
            assert_eq!(owned.contains_point(p), by_task, "{p} of {buffer:?} has an owner");
        }
    }
}
