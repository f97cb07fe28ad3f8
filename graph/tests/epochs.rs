//! Epochs come after everything before them and before everything after them, and nothing depends across
//! them.

use anabranch_graph::{
    Access, BufferId, Dependency, Effect, GraphError, Kind, Order, Origin, Settings, Submitted, TaskGraph,
};
use anabranch_grid::{Extent, GridBox, Region};

fn all() -> GridBox<3> {
    GridBox::full([8, 1, 1])
}

fn part(low: usize, high: usize) -> GridBox<3> {
    GridBox::new([low, 0, 0], [high, 1, 1])
}

fn buffer(graph: &mut TaskGraph, initialised: bool) -> BufferId {
    graph.create_buffer(Extent([8, 1, 1]), initialised)
}

fn submit(graph: &mut TaskGraph, accesses: &[Access]) -> Submitted {
    graph.submit(accesses, &[], &|_| false).unwrap()
}

fn epoch(graph: &mut TaskGraph, captures: &[Access]) -> Submitted {
    graph.epoch(captures, &[], &|_| false).unwrap()
}

fn edges(submitted: &Submitted) -> Vec<(u64, Kind, Origin)> {
    submitted.dependencies.iter().map(|&Dependency { on, kind, origin }| (on.0, kind, origin)).collect()
}

/// Figure 3 of the paper: the barrier becomes the producer of A.
#[test]
fn a_barrier_becomes_the_producer_of_all_written_contents() {
    let mut graph = TaskGraph::new();
    let [a, b] = [false, false].map(|initialised| buffer(&mut graph, initialised));
    let produce_a = submit(&mut graph, &[Access::write(a, all())]);
    let produce_b = submit(&mut graph, &[Access::write(b, all())]);
    let consume_b = submit(&mut graph, &[Access::read(b, all())]);
    assert_eq!(edges(&consume_b), [(produce_b.id.0, Kind::True, Origin::Buffer(b))]);

    // Forward serialisation: from the whole execution front, and only from there.
    let barrier = epoch(&mut graph, &[]);
    let serial = |id: u64| (id, Kind::Serial, Origin::Graph);
    assert_eq!(edges(&barrier), [serial(produce_a.id.0), serial(consume_b.id.0)]);

    // Data flow from the barrier; backward serialisation of a pure producer.
    let read_a = submit(&mut graph, &[Access::read(a, all())]);
    assert_eq!(edges(&read_a), [(barrier.id.0, Kind::True, Origin::Buffer(a))]);
    let c = buffer(&mut graph, false);
    let produce_c = submit(&mut graph, &[Access::write(c, all())]);
    assert_eq!(edges(&produce_c), [serial(barrier.id.0)]);
    // There is a serialisation dependency only if no other path leads to the barrier.
    let read_both = submit(&mut graph, &[Access::read(b, all()), Access::read(c, all())]);
    assert_eq!(edges(&read_both), [(produce_c.id.0, Kind::True, Origin::Buffer(c))]);
}

#[test]
fn an_epoch_after_an_epoch_depends_on_it() {
    let mut graph = TaskGraph::new();
    for before in 0..3 {
        assert_eq!(edges(&epoch(&mut graph, &[])), [(before, Kind::Serial, Origin::Graph)]);
    }
}

/// Readers before an epoch do not hold up writers after it.
#[test]
fn nothing_depends_across_an_epoch() {
    let mut graph = TaskGraph::new();
    let u = buffer(&mut graph, true);
    let object = graph.create_object();
    let sequential = Effect { object, order: Order::Sequential };
    for low in 0..8 {
        submit(&mut graph, &[Access::read(u, part(low, 8))]);
        graph.submit(&[], &[Effect { object, order: Order::Relaxed }], &|_| false).unwrap();
    }
    let barrier = epoch(&mut graph, &[]).id.0;
    let task = graph.submit(&[Access::write(u, all())], &[sequential], &|_| false).unwrap();
    assert_eq!(edges(&task), [(barrier, Kind::Serial, Origin::Object(object))]);
    graph.last_writers(&|_| false, |id| assert_eq!(id, task.id));
}

#[test]
fn an_epoch_writes_nothing_that_was_never_written() {
    let mut graph = TaskGraph::new();
    let u = buffer(&mut graph, false);
    submit(&mut graph, &[Access::write(u, part(0, 4))]);
    epoch(&mut graph, &[Access::read(u, part(1, 3))]);
    let missing = Region::from(part(4, 8));
    for result in [
        graph.submit(&[Access::read(u, all())], &[], &|_| false),
        graph.epoch(&[Access::read(u, all())], &[], &|_| false),
    ] {
        assert_eq!(result.unwrap_err(), GraphError::NeverWritten { access: 0, missing: missing.clone() });
    }
}

/// If an epoch captures, the true dependency replaces the serial one.
#[test]
fn captures_are_data_flow() {
    let mut graph = TaskGraph::new();
    let [u, v] = [false, false].map(|initialised| buffer(&mut graph, initialised));
    let object = graph.create_object();
    let exclusive = Effect { object, order: Order::Exclusive };
    submit(&mut graph, &[Access::write(u, part(0, 4))]);
    submit(&mut graph, &[Access::write(u, part(4, 8))]);
    submit(&mut graph, &[Access::write(v, all())]);
    graph.submit(&[], &[exclusive], &|_| false).unwrap();
    submit(&mut graph, &[Access::read(u, part(0, 2))]);
    let barrier = graph.epoch(&[Access::read(u, part(0, 6))], &[exclusive], &|_| false).unwrap();
    assert_eq!(
        edges(&barrier),
        [
            (1, Kind::True, Origin::Buffer(u)),
            (2, Kind::True, Origin::Buffer(u)),
            (3, Kind::Serial, Origin::Graph),
            (4, Kind::Serial, Origin::Object(object)),
            (5, Kind::Serial, Origin::Graph),
        ]
    );
    assert_eq!(barrier.versions[..], [0]);
}

/// Every later task comes after the epoch anyway, so its read of a buffer does not cause another version.
#[test]
fn a_capture_takes_no_version() {
    let mut graph = TaskGraph::new();
    let u = buffer(&mut graph, true);
    graph.set_versions(u, 2);
    let barrier = epoch(&mut graph, &[Access::read(u, all())]);
    let overwrite = submit(&mut graph, &[Access::write(u, all())]);
    assert_eq!((overwrite.dependencies[0].on, overwrite.versions), (barrier.id, barrier.versions));
}

#[test]
fn buffers_and_objects_created_later_depend_on_the_last_epoch() {
    let mut graph = TaskGraph::new();
    let barrier = epoch(&mut graph, &[]).id.0;
    let u = buffer(&mut graph, true);
    let object = graph.create_object();
    assert_eq!(
        edges(&submit(&mut graph, &[Access::read(u, all())])),
        [(barrier, Kind::True, Origin::Buffer(u))]
    );
    let task = graph.submit(&[], &[Effect { object, order: Order::Relaxed }], &|_| false).unwrap();
    assert_eq!(edges(&task), [(barrier, Kind::Serial, Origin::Object(object))]);
}

/// In a large front of mostly finished tasks, an unfinished task without a successor is found, however old it
/// is.
#[test]
fn only_tasks_that_are_done_or_have_successors_leave_the_front() {
    let mut graph = TaskGraph::new();
    let object = graph.create_object();
    let slow = |id: u64| id % 10_000 == 1;
    for i in 0..100_000 {
        // The second slow task is old now, and gets a successor.
        let order = Order::Sequential;
        let effect = (i == 10_000 || i == 50_000).then_some(Effect { object, order });
        graph.submit(&[], effect.as_slice(), &|id| !slow(id.0)).unwrap();
    }
    let front = epoch(&mut graph, &[]).dependencies;
    let has = |id: u64| front.iter().any(|d| d.on.0 == id);
    assert!((0..10).map(|i| 10_000 * i + 1).all(|id| has(id) == (id != 10_001)));
    assert!(has(100_000) && front.len() < 2000);
}

#[test]
#[should_panic(expected = "access 1 of an epoch writes")]
fn captures_only_read() {
    let mut graph = TaskGraph::new();
    let u = buffer(&mut graph, true);
    epoch(&mut graph, &[Access::read(u, part(0, 1)), Access::update(u, part(1, 2))]);
}

#[test]
#[should_panic(expected = "this graph was made without epochs")]
fn a_graph_without_epochs_makes_none() {
    epoch(&mut TaskGraph::with(Settings { epochs: false, ..Settings::default() }), &[]);
}
