//! Serial equivalence on random programs: every order that keeps the dependencies gives the same result as
//! running the tasks one by one, and the dependencies and conflicts are those of a simple model.

use anabranch_graph::{
    Access, BufferId, Dependency, Effect, GraphError, Horizons, Kind, Mode, ObjectId, Order, Settings,
    Submitted, TaskGraph, TaskId,
};
use anabranch_grid::{Extent, GridBox};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const ROWS: usize = 5;
const COLS: usize = 4;
const BUFFERS: usize = 2;
const OBJECTS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Task,
    /// The accesses are captures.
    Epoch,
    /// Whether the first access's buffer is discarded before the task.
    Discard,
}

#[derive(Clone, Debug)]
struct Step {
    what: What,
    accesses: Vec<(usize, [usize; 4], Mode)>,
    /// The effect on each object.
    effects: [Option<Order>; OBJECTS],
    /// The number of ready tasks that are executed after the submission, and the seed that picks them.
    execute: usize,
    seed: u64,
}

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
struct Run {
    settings: Settings,
    versions: usize,
    /// Whether the run reports to the graph which tasks are done.
    oracle: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![20 => Just(What::Task), 1 => Just(What::Epoch), 3 => Just(What::Discard)];
    let mode = prop_oneof![4 => Just(Mode::Read), 2 => Just(Mode::Write), 1 => Just(Mode::Update)];
    let range = prop_oneof![
        2 => (0..ROWS, 0..COLS, 1..=ROWS, 1..=COLS).prop_map(|(r, c, h, w)| [
            r,
            c,
            (r + h).min(ROWS),
            (c + w).min(COLS)
        ]),
        1 => Just([0, 0, ROWS, COLS]),
        1 => (0..ROWS).prop_map(|r| [r, 0, r + 1, COLS]),
    ];
    let access = (0..BUFFERS, range, mode);
    let accesses = prop_oneof![Just(Vec::new()), proptest::collection::vec(access, 1..4)];
    let order = prop_oneof![Just(Order::Sequential), Just(Order::Exclusive), Just(Order::Relaxed)];
    let effect = prop_oneof![2 => Just(None), 1 => order.prop_map(Some)];
    let execute = prop_oneof![3 => Just(0), 1 => 0..6usize];
    (what, accesses, [effect.clone(), effect], execute, any::<u64>()).prop_map(
        |(what, mut accesses, effects, execute, seed)| {
            if what == What::Epoch {
                accesses.iter_mut().for_each(|access| access.2 = Mode::Read);
            }
            Step { what, accesses, effects, execute, seed }
        },
    )
}

fn run() -> impl Strategy<Value = Run> {
    let horizons = prop_oneof![
        Just(None),
        (1..6u32, 1..8usize).prop_map(|(depth, breadth)| Some(Horizons { depth, breadth }))
    ];
    (horizons, any::<bool>(), 1..4usize, any::<bool>()).prop_map(|(horizons, conflicts, versions, oracle)| {
        Run { settings: Settings { horizons, conflicts, ..Settings::default() }, versions, oracle }
    })
}

/// The memory of a program: elements by buffer, version, row and column; the objects; the hash of what each
/// task read.
#[derive(Clone, Debug, Default, PartialEq)]
struct Memory {
    elements: HashMap<(usize, u32, usize, usize), u64>,
    objects: [u64; OBJECTS],
    seen: HashMap<TaskId, u64>,
}

/// A task, epoch or horizon.
struct Node {
    id: TaskId,
    is_epoch: bool,
    accesses: Vec<(usize, GridBox<2>, Mode)>,
    effects: [Option<Order>; OBJECTS],
    versions: Vec<u32>,
    dependencies: Vec<Dependency>,
    /// All nodes that come before it, as a set of bits by id.
    ancestors: u128,
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

impl Node {
    /// Executes the task: every written value depends on all values read and on the task. Effects that are
    /// not sequential commute.
    fn execute(&self, memory: &mut Memory, versions: &[u32]) {
        let mut hash = mix(7, self.id.0);
        for (&(buffer, range, mode), &version) in self.accesses.iter().zip(versions) {
            if mode.reads() {
                for p in range.points() {
                    hash = mix(hash, memory.elements[&(buffer, version, p[0], p[1])]);
                }
            }
        }
        for (object, order) in memory.objects.iter_mut().zip(self.effects) {
            match order {
                None => {}
                Some(Order::Sequential) => {
                    hash = mix(hash, *object);
                    *object = hash;
                }
                Some(_) => *object = object.wrapping_add(mix(11, self.id.0)),
            }
        }
        memory.seen.insert(self.id, hash);
        for (&(buffer, range, mode), &version) in self.accesses.iter().zip(versions) {
            if mode.writes() {
                for p in range.points() {
                    hash = mix(hash, 1);
                    memory.elements.insert((buffer, version, p[0], p[1]), hash);
                }
            }
        }
    }

    fn comes_after(&self, other: &Node) -> bool {
        self.ancestors >> other.id.0 & 1 == 1
    }
}

/// Whether two nodes must run in the order of submission (if they use one version of memory).
fn are_ordered(a: &Node, b: &Node) -> bool {
    let data = a.accesses.iter().any(|(ba, ra, ma)| {
        b.accesses.iter().any(|(bb, rb, mb)| ba == bb && (ma.writes() || mb.writes()) && ra.intersects(rb))
    });
    let effect = shared_orders(a, b).any(|pair| pair.contains(&Order::Sequential));
    data || effect || a.is_epoch || b.is_epoch
}

/// Whether two nodes must not overlap in time.
fn exclude_each_other(a: &Node, b: &Node) -> bool {
    shared_orders(a, b).any(|pair| pair.contains(&Order::Exclusive) && !pair.contains(&Order::Sequential))
}

/// The orders of two nodes' effects on common objects.
fn shared_orders(a: &Node, b: &Node) -> impl Iterator<Item = [Order; 2]> {
    a.effects.into_iter().zip(b.effects).filter_map(|(a, b)| Some([a?, b?]))
}

/// A program in the middle of its execution.
struct Program {
    run: Run,
    graph: TaskGraph,
    buffers: Vec<BufferId>,
    objects: Vec<ObjectId>,
    /// By id, starting with the root.
    nodes: Vec<Node>,
    pending: Vec<usize>,
    done: HashSet<TaskId>,
    parallel: Memory,
    serial: Memory,
    written: [HashSet<(usize, usize)>; BUFFERS],
    /// The last epoch, and the horizon that was applied last.
    epoch: TaskId,
    applied: TaskId,
}

impl Program {
    fn new(run: Run) -> Self {
        let mut graph = TaskGraph::with(run.settings);
        let extent = Extent([ROWS, COLS, 1]);
        let buffers: Vec<BufferId> = (0..BUFFERS).map(|b| graph.create_buffer(extent, b == 0)).collect();
        buffers.iter().for_each(|&b| graph.set_versions(b, run.versions));
        let objects = (0..OBJECTS).map(|_| graph.create_object()).collect();
        let mut memory = Memory::default();
        let mut written: [HashSet<_>; BUFFERS] = Default::default();
        for p in GridBox::full(Extent([ROWS, COLS])).points() {
            memory.elements.insert((0, 0, p[0], p[1]), 1 + (p[0] * COLS + p[1]) as u64);
            written[0].insert((p[0], p[1]));
        }
        let root = Node {
            id: TaskId::EPOCH,
            is_epoch: true,
            accesses: Vec::new(),
            effects: [None; OBJECTS],
            versions: Vec::new(),
            dependencies: Vec::new(),
            ancestors: 0,
        };
        Self {
            run,
            graph,
            buffers,
            objects,
            nodes: vec![root],
            pending: Vec::new(),
            done: HashSet::from([TaskId::EPOCH]),
            parallel: memory.clone(),
            serial: memory,
            written,
            epoch: TaskId::EPOCH,
            applied: TaskId::EPOCH,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let done = self.done.clone();
        let done = |task: TaskId| self.run.oracle && done.contains(&task);
        let mut ranges: Vec<_> = step
            .accesses
            .iter()
            .map(|&(b, [r, c, r1, c1], mode)| (b, GridBox::new([r, c], [r1, c1]), mode))
            .collect();
        if step.what == What::Task && !step.seed.is_multiple_of(4) {
            // Most tasks that would read unwritten points write them instead.
            for i in 0..ranges.len() {
                if self.reads_unwritten(&ranges[i..=i]) {
                    ranges[i].2 = Mode::Write;
                }
            }
        }
        if step.what == What::Discard {
            let buffer = ranges.first().map_or(0, |range| range.0);
            self.graph.discard(self.buffers[buffer], &done);
            self.written[buffer].clear();
            return Ok(());
        }
        let access = |&(b, range, mode): &(usize, GridBox<2>, Mode)| Access {
            buffer: self.buffers[b],
            region: range.cast().into(),
            mode,
        };
        let accesses: Vec<Access> = ranges.iter().map(access).collect();
        let effect = |(&object, order): (_, Option<Order>)| order.map(|order| Effect { object, order });
        let effects: Vec<Effect> = self.objects.iter().zip(step.effects).filter_map(effect).collect();
        let submitted = match step.what {
            What::Epoch => self.graph.epoch(&accesses, &effects, &done),
            _ => self.graph.submit(&accesses, &effects, &done),
        };
        let (never_written, overlap) = (self.reads_unwritten(&ranges), overlap(&ranges));
        match submitted {
            Err(GraphError::NeverWritten { .. }) => prop_assert!(never_written),
            Err(GraphError::Overlap { .. }) => prop_assert!(overlap),
            Err(e) => prop_assert!(false, "{e}"),
            Ok(submitted) => {
                prop_assert!(!never_written && !overlap);
                for (b, range, _) in ranges.iter().filter(|r| r.2.writes()) {
                    self.written[*b].extend(range.points().map(|p| (p[0], p[1])));
                }
                self.submitted(step, ranges, submitted)?;
            }
        }
        Ok(())
    }

    fn reads_unwritten(&self, ranges: &[(usize, GridBox<2>, Mode)]) -> bool {
        ranges.iter().any(|(b, range, mode)| {
            mode.reads() && range.points().any(|p| !self.written[*b].contains(&(p[0], p[1])))
        })
    }

    /// Checks and adds a submission, and the horizon that the graph made after it.
    fn submitted(
        &mut self,
        step: &Step,
        accesses: Vec<(usize, GridBox<2>, Mode)>,
        submitted: Submitted,
    ) -> Result<(), TestCaseError> {
        let is_epoch = step.what == What::Epoch;
        let node = Node {
            id: submitted.id,
            is_epoch,
            accesses,
            // An epoch is ordered against everything, whatever the orders of its effects.
            effects: step.effects.map(|o| if is_epoch { o.map(|_| Order::Sequential) } else { o }),
            versions: submitted.versions.to_vec(),
            dependencies: submitted.dependencies.to_vec(),
            ancestors: self.ancestors(&submitted.dependencies),
        };
        self.check_dependencies(&node)?;
        self.check_order(&node)?;
        self.check_conflicts(&node, &submitted.conflicts)?;
        node.execute(&mut self.serial, &vec![0; node.accesses.len()]);
        if is_epoch {
            (self.epoch, self.applied) = (node.id, node.id);
        }
        self.push(node);
        let Some(horizon) = submitted.horizon else { return Ok(()) };
        let node = Node {
            id: horizon.id,
            is_epoch: false,
            accesses: Vec::new(),
            effects: [None; OBJECTS],
            versions: Vec::new(),
            ancestors: self.ancestors(&horizon.dependencies),
            dependencies: horizon.dependencies,
        };
        self.check_dependencies(&node)?;
        let before = self.nodes.iter().filter(|other| !node.comes_after(other)).map(|other| other.id);
        prop_assert_eq!(before.collect::<Vec<_>>(), [], "a horizon comes after everything before it");
        node.execute(&mut self.serial, &[]);
        self.push(node);
        self.applied = horizon.applied;
        Ok(())
    }

    fn ancestors(&self, dependencies: &[Dependency]) -> u128 {
        dependencies.iter().fold(0, |all, d| all | self.nodes[d.on.0 as usize].ancestors | 1 << d.on.0)
    }

    fn push(&mut self, node: Node) {
        self.pending.push(self.nodes.len());
        self.nodes.push(node);
    }

    /// Checks the edges: one per task, ascending, each with a reason, none across an epoch, and every node is
    /// reachable from the root.
    fn check_dependencies(&self, node: &Node) -> Result<(), TestCaseError> {
        prop_assert_eq!(node.id.0, self.nodes.len() as u64);
        prop_assert!(node.dependencies.is_sorted_by(|a, b| a.on < b.on));
        prop_assert!(node.dependencies.iter().all(|d| d.on < node.id && d.on >= self.applied));
        prop_assert!(node.ancestors & 1 == 1, "{} cannot be reached from the root", node.id);
        prop_assert!(node.ancestors >> self.epoch.0 & 1 == 1, "{} does not come after the epoch", node.id);
        let is_horizon = |id: TaskId| {
            let other = &self.nodes[id.0 as usize];
            self.run.settings.horizons.is_some() && other.accesses.is_empty() && other.effects == [None; 2]
        };
        for d in &node.dependencies {
            let other = &self.nodes[d.on.0 as usize];
            let reason = match d.kind {
                Kind::True => is_horizon(d.on) || other.is_epoch || node.accesses.iter().any(|a| a.2.reads()),
                Kind::Serial if d.origin == anabranch_graph::Origin::Graph => {
                    // Forward, or backward to an epoch or horizon.
                    node.is_epoch || node.accesses.is_empty() || other.is_epoch || is_horizon(d.on)
                }
                _ => true,
            };
            prop_assert!(reason, "{d:?} without a reason");
            if self.run.versions == 1 && d.origin != anabranch_graph::Origin::Graph && !is_horizon(d.on) {
                prop_assert!(are_ordered(node, other), "{d:?} without a reason");
            }
        }
        Ok(())
    }

    /// Checks that every earlier task that must come first does, or is known to be done.
    fn check_order(&self, node: &Node) -> Result<(), TestCaseError> {
        for other in &self.nodes {
            let known = self.run.oracle && self.done.contains(&other.id);
            if self.run.versions == 1 && are_ordered(node, other) && !known {
                prop_assert!(node.comes_after(other), "{} does not come after {}", node.id, other.id);
            }
        }
        Ok(())
    }

    /// Checks that the conflicts are exactly the pairs that exclude each other and are not ordered.
    fn check_conflicts(&self, node: &Node, found: &[TaskId]) -> Result<(), TestCaseError> {
        let conflict = |other: &&Node| exclude_each_other(node, other) && !node.comes_after(other);
        let expected = self.nodes.iter().filter(conflict).map(|other| other.id);
        let expected: Vec<_> = expected.filter(|_| self.run.settings.conflicts).collect();
        prop_assert_eq!(found, expected, "conflicts of {}", node.id);
        Ok(())
    }

    /// Executes one of the pending tasks whose dependencies are done. The seed picks it.
    fn execute_one(&mut self, seed: &mut u64) {
        let is_ready = |node: &Node| node.dependencies.iter().all(|d| self.done.contains(&d.on));
        let ready: Vec<usize> =
            (0..self.pending.len()).filter(|&i| is_ready(&self.nodes[self.pending[i]])).collect();
        if ready.is_empty() {
            assert!(self.pending.is_empty(), "a task is pending and none is ready");
            return;
        }
        *seed = mix(*seed, 3);
        let node = &self.nodes[self.pending.remove(ready[*seed as usize % ready.len()])];
        node.execute(&mut self.parallel, &node.versions);
        self.done.insert(node.id);
    }

    /// Checks that the current version, which a reader would get, holds the result of sequential execution.
    fn check_contents(&mut self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.parallel.objects, self.serial.objects);
        prop_assert_eq!(&self.parallel.seen, &self.serial.seen);
        for (b, written) in self.written.iter().enumerate() {
            let Some(&(r, c)) = written.iter().next() else { continue };
            let probe = Access::read(self.buffers[b], GridBox::new([r, c, 0], [r + 1, c + 1, 1]));
            let version = self.graph.submit(&[probe], &[], &|_| true).unwrap().versions[0];
            for &(r, c) in written {
                let (parallel, serial) = (&self.parallel.elements, &self.serial.elements);
                prop_assert_eq!(parallel[&(b, version, r, c)], serial[&(b, 0, r, c)]);
            }
        }
        Ok(())
    }
}

fn overlap(ranges: &[(usize, GridBox<2>, Mode)]) -> bool {
    let clash = |(b, r, m): &(usize, GridBox<2>, Mode), (b2, r2, m2): &(usize, GridBox<2>, Mode)| {
        b == b2 && (m.writes() || m2.writes()) && r.intersects(r2)
    };
    ranges.iter().enumerate().any(|(i, one)| ranges[..i].iter().any(|other| clash(one, other)))
}

proptest! {
    // 2,048, unless `PROPTEST_CASES` says otherwise than proptest's default of 256.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases * 8,
        ..ProptestConfig::default()
    })]

    /// Submits the steps that the graph accepts, and executes some tasks in between in any order that the
    /// dependencies allow. Then compares with sequential execution.
    #[test]
    fn every_order_has_the_result_of_submission_order(
        steps in proptest::collection::vec(step(), 1..50),
        run in run(),
    ) {
        let mut program = Program::new(run);
        for step in &steps {
            program.step(step)?;
            let mut seed = step.seed;
            (0..step.execute).for_each(|_| program.execute_one(&mut seed));
        }
        let mut seed = 42;
        while !program.pending.is_empty() {
            program.execute_one(&mut seed);
        }
        program.check_contents()?;
    }
}
