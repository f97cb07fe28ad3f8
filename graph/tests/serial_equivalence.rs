//! Random programs: whatever order keeps the dependencies gives what running the tasks one by one gives.

use anabranch_graph::{
    Access, BufferId, Dependency, Effect, GraphError, Kind, Mode, Order, TaskGraph, TaskId,
};
use anabranch_grid::{Extent, GridBox, Region};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const ROWS: usize = 5;
const COLS: usize = 4;
const BUFFERS: usize = 3;
const OBJECTS: usize = 2;

#[derive(Clone, Debug)]
struct Step {
    accesses: Vec<(usize, [usize; 4], Mode)>,
    object: Option<usize>,
    /// How many ready tasks are executed after the submission, and which (by this seed).
    execute: usize,
    seed: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop_oneof![Just(Mode::Read), Just(Mode::Write), Just(Mode::Update)];
    let range = prop_oneof![
        (0..ROWS, 0..COLS, 1..=ROWS, 1..=COLS).prop_map(|(r, c, h, w)| [
            r,
            c,
            (r + h).min(ROWS),
            (c + w).min(COLS)
        ]),
        Just([0, 0, ROWS, COLS]),
    ];
    let access = (0..BUFFERS, range, mode);
    (proptest::collection::vec(access, 1..4), proptest::option::of(0..OBJECTS), 0..3usize, any::<u64>())
        .prop_map(|(accesses, object, execute, seed)| Step { accesses, object, execute, seed })
}

/// The memory of a program: elements by buffer, version, row and column, and the objects.
#[derive(Clone, Debug, Default, PartialEq)]
struct Memory {
    elements: HashMap<(usize, u32, usize, usize), u64>,
    objects: [u64; OBJECTS],
}

struct Task {
    id: TaskId,
    accesses: Vec<(usize, GridBox<2>, Mode)>,
    versions: Vec<u32>,
    object: Option<usize>,
    dependencies: Vec<Dependency>,
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

impl Task {
    /// Everything written depends on everything read and on the task itself.
    fn execute(&self, memory: &mut Memory, versions: &[u32]) {
        let mut hash = mix(7, self.id.0);
        for (&(buffer, range, mode), &version) in self.accesses.iter().zip(versions) {
            if mode.reads() {
                for p in range.points() {
                    hash = mix(hash, memory.elements[&(buffer, version, p[0], p[1])]);
                }
            }
        }
        if let Some(object) = self.object {
            hash = mix(hash, memory.objects[object]);
            memory.objects[object] = hash;
        }
        for (&(buffer, range, mode), &version) in self.accesses.iter().zip(versions) {
            if mode.writes() {
                for p in range.points() {
                    hash = mix(hash, 1);
                    memory.elements.insert((buffer, version, p[0], p[1]), hash);
                }
            }
        }
    }
}

fn conflicts(a: &Task, b: &Task) -> bool {
    let data = a.accesses.iter().any(|(ba, ra, ma)| {
        b.accesses.iter().any(|(bb, rb, mb)| ba == bb && (ma.writes() || mb.writes()) && ra.intersects(rb))
    });
    data || a.object.is_some() && a.object == b.object
}

/// Submits the steps that the graph accepts, executing some tasks in between in any order that the dependencies
/// allow; then compares with sequential execution.
fn check(steps: &[Step], max_versions: usize) -> Result<(), TestCaseError> {
    let mut graph = TaskGraph::new();
    let extent = Extent([ROWS, COLS, 1]);
    let buffers: Vec<BufferId> = (0..BUFFERS).map(|b| graph.create_buffer(extent, b == 0)).collect();
    buffers.iter().for_each(|&b| graph.set_versions(b, max_versions));
    let objects: Vec<_> = (0..OBJECTS).map(|_| graph.create_object()).collect();
    let mut parallel = Memory::default();
    for p in GridBox::full(Extent([ROWS, COLS])).points() {
        parallel.elements.insert((0, 0, p[0], p[1]), 1 + (p[0] * COLS + p[1]) as u64);
    }
    let mut serial = parallel.clone();
    let mut written: [HashSet<(usize, usize)>; BUFFERS] = [true, false, false]
        .map(|all| HashSet::from_iter((0..ROWS * COLS * usize::from(all)).map(|i| (i / COLS, i % COLS))));
    let mut tasks: Vec<Task> = Vec::new();
    let mut done = HashSet::from([TaskId::EPOCH]);
    let mut pending: Vec<usize> = Vec::new();

    for step in steps {
        let ranges: Vec<_> = step
            .accesses
            .iter()
            .map(|&(b, [r, c, r1, c1], mode)| (b, GridBox::new([r, c], [r1, c1]), mode))
            .collect();
        let accesses: Vec<Access> = ranges
            .iter()
            .map(|&(b, range, mode)| Access { buffer: buffers[b], region: range.cast().into(), mode })
            .collect();
        let effects: Vec<Effect> =
            step.object.iter().map(|&o| Effect { object: objects[o], order: Order::Sequential }).collect();
        let never_written = ranges.iter().any(|(b, range, mode)| {
            mode.reads() && range.points().any(|p| !written[*b].contains(&(p[0], p[1])))
        });
        let overlap = ranges.iter().enumerate().any(|(i, (b, range, mode))| {
            ranges[..i]
                .iter()
                .any(|(b2, r2, m2)| b == b2 && (mode.writes() || m2.writes()) && range.intersects(r2))
        });
        match graph.submit(&accesses, &effects, &|t| done.contains(&t)) {
            Err(GraphError::NeverWritten { .. }) => prop_assert!(never_written),
            Err(GraphError::Overlap { .. }) => prop_assert!(overlap),
            Err(e) => prop_assert!(false, "{e}"),
            Ok(submitted) => {
                prop_assert!(!never_written && !overlap);
                for (b, range, _) in ranges.iter().filter(|r| r.2.writes()) {
                    written[*b].extend(range.points().map(|p| (p[0], p[1])));
                }
                prop_assert!(submitted.dependencies.is_sorted_by(|a, b| a.on < b.on));
                prop_assert!(!submitted.dependencies.is_empty());
                let task = Task {
                    id: submitted.id,
                    accesses: ranges,
                    versions: submitted.versions.to_vec(),
                    object: step.object,
                    dependencies: submitted.dependencies.to_vec(),
                };
                if max_versions == 1 {
                    // Every edge has a reason.
                    for dependency in task.dependencies.iter().filter(|d| d.on != TaskId::EPOCH) {
                        let other = &tasks[dependency.on.0 as usize - 1];
                        prop_assert!(conflicts(&task, other), "{dependency:?} without a reason");
                    }
                }
                task.execute(&mut serial, &vec![0; task.accesses.len()]);
                pending.push(tasks.len());
                tasks.push(task);
            }
        }
        let mut seed = step.seed;
        for _ in 0..step.execute {
            execute_one(&tasks, &mut pending, &mut done, &mut parallel, &mut seed);
        }
    }
    let mut seed = 42;
    while !pending.is_empty() {
        execute_one(&tasks, &mut pending, &mut done, &mut parallel, &mut seed);
    }
    prop_assert_eq!(parallel.objects, serial.objects);
    // The current version holds what sequential execution left; it is the one that a reader would get.
    for (b, written) in written.iter().enumerate() {
        let Some(&(r, c)) = written.iter().next() else { continue };
        let probe = Access::read(buffers[b], GridBox::new([r, c, 0], [r + 1, c + 1, 1]));
        let version = graph.submit(&[probe], &[], &|_| true).unwrap().versions[0];
        for &(r, c) in written {
            prop_assert_eq!(parallel.elements[&(b, version, r, c)], serial.elements[&(b, 0, r, c)]);
        }
    }
    Ok(())
}

/// Executes one of the pending tasks whose dependencies are done: not the first where the seed says so.
fn execute_one(
    tasks: &[Task],
    pending: &mut Vec<usize>,
    done: &mut HashSet<TaskId>,
    memory: &mut Memory,
    seed: &mut u64,
) {
    let ready: Vec<usize> = (0..pending.len())
        .filter(|&i| tasks[pending[i]].dependencies.iter().all(|d| done.contains(&d.on)))
        .collect();
    if ready.is_empty() {
        assert!(pending.is_empty(), "a task is pending and none is ready");
        return;
    }
    *seed = mix(*seed, 3);
    let task = &tasks[pending.remove(ready[*seed as usize % ready.len()])];
    task.execute(memory, &task.versions);
    done.insert(task.id);
}

proptest! {
    // More with `PROPTEST_CASES=…`.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(1000),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_order_gives_what_submission_order_gives(steps in proptest::collection::vec(step(), 1..30)) {
        check(&steps, 1)?;
    }

    #[test]
    fn with_versions_too(steps in proptest::collection::vec(step(), 1..30), versions in 2..4usize) {
        check(&steps, versions)?;
    }
}

fn all() -> GridBox<3> {
    GridBox::new([0, 0, 0], [ROWS, COLS, 1])
}

fn row(r: usize) -> GridBox<3> {
    GridBox::new([r, 0, 0], [r + 1, COLS, 1])
}

fn kinds(dependencies: &[Dependency]) -> Vec<(u64, Kind)> {
    dependencies.iter().map(|d| (d.on.0, d.kind)).collect()
}

#[test]
fn dependencies_have_their_kind() {
    let mut graph = TaskGraph::new();
    let u = graph.create_buffer(Extent([ROWS, COLS, 1]), false);
    let mut submit = |access| graph.submit(&[access], &[], &|_| false).unwrap().dependencies;
    assert_eq!(kinds(&submit(Access::write(u, all()))), [(0, Kind::Serial)]);
    assert_eq!(kinds(&submit(Access::read(u, row(0)))), [(1, Kind::True)]);
    assert_eq!(kinds(&submit(Access::write(u, row(0)))), [(2, Kind::Anti)]);
    assert_eq!(kinds(&submit(Access::write(u, row(1)))), [(1, Kind::Output)]);
    assert_eq!(kinds(&submit(Access::update(u, all()))), [(1, Kind::True), (3, Kind::True), (4, Kind::True)]);
}

#[test]
fn disjoint_rows_are_independent() {
    let mut graph = TaskGraph::new();
    let u = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    for r in 0..ROWS {
        let submitted = graph.submit(&[Access::update(u, row(r))], &[], &|_| false).unwrap();
        assert_eq!(kinds(&submitted.dependencies), [(0, Kind::True)]);
    }
}

#[test]
fn sequential_effects_form_a_chain() {
    let mut graph = TaskGraph::new();
    let object = graph.create_object();
    let effect = Effect { object, order: Order::Sequential };
    for i in 0..5 {
        let submitted = graph.submit(&[], &[effect], &|_| false).unwrap();
        assert_eq!(kinds(&submitted.dependencies), [(i, Kind::Serial)]);
    }
}

#[test]
fn what_was_never_written_is_named() {
    let mut graph = TaskGraph::new();
    let u = graph.create_buffer(Extent([ROWS, COLS, 1]), false);
    graph.submit(&[Access::write(u, row(0))], &[], &|_| false).unwrap();
    let error = graph.submit(&[Access::read(u, all())], &[], &|_| false).unwrap_err();
    let missing = Region::from(GridBox::new([1, 0, 0], [ROWS, COLS, 1]));
    assert_eq!(error, GraphError::NeverWritten { access: 0, missing });
}

/// A frame that is still being stored does not hold up the task that overwrites the buffer; the bound on versions does.
#[test]
fn a_complete_overwrite_goes_to_another_version() {
    let mut graph = TaskGraph::new();
    let v = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    graph.set_versions(v, 2);
    let mut submit = |access| graph.submit(&[access], &[], &|_| false).unwrap();
    let store = submit(Access::read(v, all()));
    let overwrite = submit(Access::write(v, all()));
    assert_eq!(kinds(&overwrite.dependencies), [(0, Kind::Serial)]);
    assert_ne!(overwrite.versions, store.versions);
    let store_2 = submit(Access::read(v, all()));
    assert_eq!(store_2.versions, overwrite.versions);
    let overwrite_2 = submit(Access::write(v, all()));
    assert_eq!(kinds(&overwrite_2.dependencies), [(store.id.0, Kind::Anti)]);
    assert_eq!(overwrite_2.versions, store.versions);
}

/// The reader that produced this task's input comes first anyway: no memory is spent on it.
#[test]
fn a_reader_that_comes_first_anyway_is_worth_no_version() {
    let mut graph = TaskGraph::new();
    let u = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    graph.set_versions(u, 3);
    let w = graph.create_buffer(Extent([ROWS, COLS, 1]), true);
    graph.set_versions(w, 3);
    for _ in 0..4 {
        for (from, to) in [(u, w), (w, u)] {
            let accesses = [Access::read(from, all()), Access::write(to, all())];
            let submitted = graph.submit(&accesses, &[], &|_| false).unwrap();
            assert_eq!(submitted.versions[..], [0, 0]);
        }
    }
}
