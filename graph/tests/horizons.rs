//! Horizons: when the graph makes them, what they depend on, and that they keep the graph bounded.

use anabranch_graph::{
    Access, BufferId, Effect, Horizons, Kind, Mode, ObjectId, Order, Origin, Settings, Submitted, TaskGraph,
};
use anabranch_grid::{Extent, GridBox};

const SIZE: usize = 100;

fn graph(depth: u32, breadth: usize) -> TaskGraph {
    TaskGraph::with(Settings {
        horizons: Some(Horizons { depth, breadth }),
        conflicts: true,
        ..Settings::default()
    })
}

fn buffer(graph: &mut TaskGraph, initialised: bool) -> BufferId {
    graph.create_buffer(Extent([SIZE, SIZE, 1]), initialised)
}

fn all() -> GridBox<3> {
    GridBox::full([SIZE, SIZE, 1])
}

fn row(r: usize) -> GridBox<3> {
    GridBox::new([r, 0, 0], [r + 1, SIZE, 1])
}

fn column(c: usize) -> GridBox<3> {
    GridBox::new([0, c, 0], [SIZE, c + 1, 1])
}

fn dependencies(submitted: &Submitted) -> Vec<u64> {
    submitted.dependencies.iter().map(|d| d.on.0).collect()
}

#[test]
fn a_horizon_is_made_when_a_path_is_long_enough() {
    let mut graph = graph(3, 100);
    let u = buffer(&mut graph, true);
    let mut made = Vec::new();
    for _ in 0..9 {
        let task = graph.submit(&[Access::update(u, all())], &[], &|_| false).unwrap();
        if let Some(horizon) = task.horizon {
            assert_eq!(horizon.id.0, task.id.0 + 1);
            // The front is the last task. The horizon before it has a successor only if a task depends on it.
            assert_eq!(horizon.dependencies.last().unwrap().on, task.id);
            assert!(horizon.dependencies.iter().all(|d| (d.kind, d.origin) == (Kind::Serial, Origin::Graph)));
            made.push((horizon.id.0, horizon.applied.0));
        }
    }
    assert_eq!(made, [(4, 0), (8, 4), (12, 8)]);
}

#[test]
fn a_horizon_is_made_when_the_front_is_broad_enough() {
    let mut graph = graph(100, 5);
    let horizons: Vec<_> =
        (0..12).filter_map(|_| graph.submit(&[], &[], &|_| false).unwrap().horizon).collect();
    let front = |i: usize| horizons[i].dependencies.iter().map(|d| d.on.0).collect::<Vec<_>>();
    assert_eq!((horizons[0].id.0, front(0)), (6, vec![1, 2, 3, 4, 5]));
    assert_eq!((horizons[1].id.0, front(1)), (11, vec![6, 7, 8, 9, 10]));
}

/// A graph may be narrow and flat and still grow without end.
#[test]
fn a_horizon_is_made_after_many_tasks_of_any_shape() {
    let mut graph = graph(4, 8);
    let u = buffer(&mut graph, true);
    let read = |r| Access::read(u, row(r));
    for _ in 0..1000 {
        for r in 0..5 {
            graph.submit(&[read(r)], &[], &|_| false).unwrap();
        }
        graph.submit(&[Access::write(u, row(0))], &[], &|_| false).unwrap();
        assert!(graph.tracked() < 300);
    }
}

/// Later tasks see the horizon before the last one in place of everything older.
#[test]
fn a_horizon_is_applied_when_the_next_one_is_made() {
    let mut graph = graph(100, 3);
    let [u, v] = [true, true].map(|initialised| buffer(&mut graph, initialised));
    let object = graph.create_object();
    let exclusive = Effect { object, order: Order::Exclusive };
    let reader = graph.submit(&[Access::read(u, all())], &[exclusive], &|_| false).unwrap().id.0;
    graph.submit(&[Access::write(v, all())], &[], &|_| false).unwrap();
    let first = graph.submit(&[], &[], &|_| false).unwrap().horizon.expect("three in the front");

    // Made but not applied: old tasks are still seen, and pure producers depend on the root.
    let writer = graph.submit(&[Access::write(u, row(0))], &[exclusive], &|_| false).unwrap();
    assert_eq!((dependencies(&writer), &writer.conflicts[..]), (vec![reader], &[][..]));
    let second = graph.submit(&[], &[], &|_| false).unwrap();
    assert_eq!(dependencies(&second), [0]);
    let second = second.horizon.expect("three in the front");
    assert_eq!((second.id.0, second.applied), (7, first.id));

    // Applied. The exclusive effect after the first horizon is not forgotten with the one before it.
    let task = graph.submit(&[Access::write(u, row(1))], &[exclusive], &|_| false).unwrap();
    assert_eq!((dependencies(&task), &task.conflicts[..]), (vec![first.id.0], &[writer.id][..]));
    let task = graph.submit(&[Access::read(v, all())], &[], &|_| false).unwrap();
    assert_eq!(dependencies(&task), [first.id.0]);
}

/// A reader that does not come after the horizon does not hide it: a writer waits for both.
#[test]
fn a_writer_waits_for_old_readers_through_the_horizon() {
    let mut graph = graph(100, 3);
    let u = buffer(&mut graph, true);
    let submit = |graph: &mut TaskGraph, access: &[Access]| graph.submit(access, &[], &|_| false).unwrap();
    submit(&mut graph, &[Access::read(u, all())]);
    submit(&mut graph, &[]);
    let first = submit(&mut graph, &[]).horizon.unwrap().id.0;
    let newer = submit(&mut graph, &[Access::read(u, all())]).id.0;
    assert!(submit(&mut graph, &[]).horizon.is_some());
    let writer = submit(&mut graph, &[Access::write(u, all())]);
    assert_eq!(dependencies(&writer), [first, newer]);
}

/// A writer waits for all readers also if the buffer has so many parts that they were merged.
#[test]
fn merged_parts_have_all_their_readers() {
    let mut graph = graph(1000, 300);
    let u = buffer(&mut graph, true);
    let mut horizons = Vec::new();
    let mut readers = Vec::new();
    while horizons.len() < 2 {
        let r = readers.len() % SIZE;
        let task = graph.submit(&[Access::read(u, row(r))], &[], &|_| false).unwrap();
        readers.push(task.id.0);
        horizons.extend(task.horizon.map(|horizon| horizon.id.0));
    }
    // Each row was read about three times before and after the first horizon.
    for r in 0..SIZE {
        let writer = graph.submit(&[Access::write(u, row(r))], &[], &|_| false).unwrap();
        let newer = readers.iter().skip(r).step_by(SIZE).copied().filter(|&id| id > horizons[0]);
        let expected: Vec<_> = std::iter::once(horizons[0]).chain(newer).collect();
        assert_eq!(dependencies(&writer), expected, "row {r}");
        if writer.horizon.is_some() {
            return;
        }
    }
}

/// The operands of a shape: two buffers and an object.
type Things = ([BufferId; 2], ObjectId);

/// An endless program: the accesses and effects of the i-th task.
type Shape = (&'static str, fn(usize, Things) -> (Vec<Access>, Option<Effect>));

const SHAPES: [Shape; 11] = [
    ("nothing", |_, _| (vec![], None)),
    ("soup", |i, ([u, _], _)| (vec![Access::write(u, column(i % SIZE))], None)),
    ("chain", |i, (b, _)| (vec![Access::read(b[i % 2], all()), Access::write(b[(i + 1) % 2], all())], None)),
    ("readers", |_, ([u, _], _)| (vec![Access::read(u, all())], None)),
    ("readers of parts", |i, ([u, _], _)| {
        let part = if i % 3 == 0 { row(i * 7 % 10) } else { column(i * 11 % 10) };
        (vec![Access::read(u, part)], None)
    }),
    ("wavefront", |i, ([u, _], _)| {
        let update = Access { mode: Mode::Update, ..Access::read(u, row(i % SIZE)) };
        let before = (i % SIZE > 0).then(|| Access::read(u, row(i % SIZE - 1)));
        (std::iter::once(update).chain(before).collect(), None)
    }),
    ("rows and columns", |i, (b, _)| {
        (vec![Access::read(b[0], row(i % SIZE)), Access::write(b[1], column(i * 3 % SIZE))], None)
    }),
    ("relaxed", |_, (_, object)| (vec![], Some(Effect { object, order: Order::Relaxed }))),
    ("exclusive", |_, (_, object)| (vec![], Some(Effect { object, order: Order::Exclusive }))),
    ("sequential", |_, (_, object)| (vec![], Some(Effect { object, order: Order::Sequential }))),
    ("mixed", |i, ([u, _], object)| {
        let order = [Order::Exclusive, Order::Relaxed, Order::Relaxed][i % 3];
        (vec![Access::update(u, row(i * 13 % SIZE))], Some(Effect { object, order }))
    }),
];

/// The largest number of entries of the graph, and of edges of a node, in an endless program of this shape.
fn most(shape: &Shape, settings: Settings, in_flight: Option<u64>) -> (usize, usize) {
    let mut graph = TaskGraph::with(settings);
    let things = ([true, true].map(|initialised| buffer(&mut graph, initialised)), graph.create_object());
    let (mut entries, mut edges) = (0, 0);
    for i in 0..100_000 {
        let (accesses, effect) = shape.1(i, things);
        let done_before = in_flight.map_or(0, |in_flight| graph.len().saturating_sub(in_flight));
        let task = graph.submit(&accesses, effect.as_slice(), &|id| id.0 < done_before).unwrap();
        let to_horizon = task.horizon.map_or(0, |horizon| horizon.dependencies.len());
        edges = edges.max(task.dependencies.len()).max(task.conflicts.len()).max(to_horizon);
        if i % 97 == 0 {
            entries = entries.max(graph.tracked());
        }
    }
    (entries, edges)
}

/// Even if no task is reported as done.
#[test]
fn horizons_keep_the_graph_bounded() {
    for shape in &SHAPES {
        let settings =
            Settings { horizons: Some(Horizons::default()), conflicts: true, ..Settings::default() };
        let (entries, edges) = most(shape, settings, None);
        assert!(entries < 2500 && edges < 400, "{}: {entries} entries, {edges} edges", shape.0);
    }
}

#[test]
fn reports_of_done_tasks_keep_the_graph_bounded() {
    for shape in &SHAPES {
        let (entries, _) = most(shape, Settings::default(), Some(500));
        assert!(entries < 12_000, "{}: {entries} entries", shape.0);
    }
}
