//! Rules of the command graph, one per test: transfers, edges, horizons, errors, hashes, memoization, and
//! bounds.

mod command_program;

use anabranch_graph::{Kind, Mode, ObjectId, Order, TaskId, command::*};
use anabranch_grid::*;
use command_program::*;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

#[test]
fn graphs_move_between_threads() {
    let _deadline = testing::deadline();
    let moved = std::thread::spawn(|| Program::new(0, 1, 1, true).graph).join().expect("no panic");
    assert_eq!((moved.node(), moved.nodes()), (NodeId(0), 1));
}

#[test]
fn data_that_a_node_has_is_not_sent_again() {
    let mut program = Program::new(0, 3, 9, false);
    program.kernel(&[access(U, Mode::Write, points(9))]);
    let read_all = [access(U, Mode::Read, everything(9))];
    let first = program.kernel(&read_all);
    let own = "[0..3, 0..1, 0..1]".to_string();
    assert_eq!(targets(&first[0]), [(1, own.clone()), (2, own.clone())]);
    assert_eq!(program.kernel(&read_all).len(), 1, "only an execution");

    // One element changes on another node: only that element is sent.
    let changed = Mapper::new(|chunk| line(4, 5).intersection(&chunk.range.into()));
    program.kernel(&[access(U, Mode::Update, changed)]);
    let again = program.kernel(&read_all);
    assert_eq!(again[0].kind, CommandKind::AwaitPush { buffer: U, region: line(4, 5), exchange: None });
    assert_eq!(again.len(), 2);
}

#[test]
fn contents_given_from_the_start_are_everywhere() {
    let mut program = Program::new(1, 4, 8, true);
    let commands =
        program.kernel(&[access(U, Mode::Read, everything(8)), access(V, Mode::Update, points(8))]);
    assert_eq!(commands.len(), 1);
    assert_eq!(program.graph.current(U), line(0, 8));
    assert!(program.graph.owned(U).is_empty());
    assert_eq!((program.graph.current(V), program.graph.owned(V)), (line(2, 4), line(2, 4)));
}

#[test]
fn an_overwrite_waits_for_pushes_that_still_read() {
    let mut program = Program::new(0, 2, 8, false);
    let write = [access(U, Mode::Write, points(8))];
    program.kernel(&write);
    let push = program.kernel(&[access(U, Mode::Read, everything(8))])[0].clone();
    assert_eq!(targets(&push).len(), 1);
    let write = program.kernel(&write);
    assert!(write[0].dependencies.contains(&CommandDependency { on: push.id, kind: Kind::Anti }));
}

#[test]
fn an_overwrite_waits_for_all_repeated_readers() {
    let mut program = Program::new(0, 1, 10, true);
    let point = points(10);
    let step = [access(U, Mode::Read, point.clone()), access(V, Mode::Write, point.clone())];
    let overwrite = [access(U, Mode::Write, point)];
    for steps in [1, 1, 2, 40, 40] {
        let readers: Vec<_> = (0..steps).map(|_| program.kernel(&step)[0].id).collect();
        let write = &program.kernel(&overwrite)[0];
        assert!(write.dependencies.iter().map(|d| d.on).eq(readers), "{write:?}");
    }
}

#[test]
fn horizons_are_applied_at_the_next_horizon_and_epochs_at_once() {
    let mut program = Program::new(0, 1, 8, false);
    let write = program.kernel(&[access(U, Mode::Write, points(8))])[0].id;
    let read = [access(U, Mode::Read, points(8))];
    let first = program.launch(Work::Horizon, &[]).unwrap()[0].id;
    assert_eq!(on(&program.kernel(&read)[0]), [write]);
    program.launch(Work::Horizon, &[]).unwrap();
    assert_eq!(on(&program.kernel(&read)[0]), [first]);
    let epoch = program.launch(Work::Epoch, &[]).unwrap()[0].id;
    let commands = program.kernel(&[access(U, Mode::Read, points(8)), access(V, Mode::Write, points(8))]);
    assert_eq!(on(&commands[0]), [epoch]);
}

#[test]
fn exclusive_effects_conflict_on_the_node_where_they_meet() {
    let mut program = Program::new(0, 1, 1, false);
    let object = ObjectId(9);
    program.graph.create_object(object);
    let relaxed = [program.effect(object, Order::Relaxed), program.effect(object, Order::Relaxed)];
    assert!(relaxed[1].conflicts.is_empty());
    let exclusive = program.effect(object, Order::Exclusive);
    assert_eq!(exclusive.conflicts[..], [relaxed[0].id, relaxed[1].id]);
    let sequential = program.effect(object, Order::Sequential);
    assert!(sequential.conflicts.is_empty());
    assert_eq!(sequential.dependencies.len(), 3);
    let last = program.effect(object, Order::Exclusive);
    assert_eq!((last.dependencies[0].on, last.conflicts.len()), (sequential.id, 0));
}

#[test]
fn chunks_that_write_the_same_points_are_an_error() {
    let mut program = Program::new(1, 4, 8, false);
    let hash = program.graph.program_hash();
    let error = program.launch(kernel(8), &[access(U, Mode::Write, everything(8))]).unwrap_err();
    assert!(matches!(error, CommandError::OverlappingWrites { access: 0, .. }), "{error}");
    let error = program.launch(kernel(8), &[access(U, Mode::Write, near(1, 8))]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "T2: access 0 writes [1..3, 0..1, 0..1] from [0..2, 0..1, 0..1] and again from [2..4, 0..1, 0..1]; pieces must \
         write disjoint regions"
    );
    assert_eq!(program.graph.program_hash(), hash, "an error changes nothing");
    assert_eq!(program.kernel(&[access(U, Mode::Write, points(8))])[0].id, CommandId(1));
}

#[test]
fn points_that_no_chunk_writes_are_an_error() {
    let shorter = Mapper::new(|chunk| line(chunk.range.min()[0], chunk.range.max()[0] - 1));
    let mut found = 0;
    for node in 0..4 {
        let mut program = Program::new(node, 4, 8, false);
        let error = program.launch(kernel(8), &[access(U, Mode::Write, shorter.clone())]).unwrap_err();
        found += usize::from(matches!(error, CommandError::InexactWrite { .. }));
    }
    assert_eq!(found, 4);
}

#[test]
fn mappers_that_are_not_monotonic_are_an_error() {
    let mut program = Program::new(1, 2, 8, true);
    let odd = Mapper::new(|chunk| if chunk.range == chunk.global { line(0, 1) } else { line(2, 3) });
    let error = program.launch(kernel(8), &[access(U, Mode::Read, odd)]).unwrap_err();
    assert!(matches!(error, CommandError::NotMonotonic { access: 0, .. }), "{error}");
}

#[test]
fn reading_unwritten_points_is_an_error() {
    let mut program = Program::new(0, 2, 8, false);
    let read = [access(U, Mode::Read, points(8))];
    for _ in 0..3 {
        let error = program.launch(kernel(8), &read).unwrap_err();
        assert!(matches!(error, CommandError::NeverWritten { buffer: U, .. }), "{error}");
    }
    program.kernel(&[access(U, Mode::Write, points(8))]);
    assert_eq!(program.kernel(&read).len(), 1);
}

#[test]
fn snapshots_must_not_write() {
    let mut program = Program::new(0, 2, 8, true);
    let error = program.launch(Work::Fence, &[access(U, Mode::Update, everything(8))]).unwrap_err();
    assert!(matches!(error, CommandError::WritingSnapshot { .. }), "{error}");
}

#[test]
fn a_reduction_over_no_points_is_combined_from_no_leaves() {
    for node in 0..2 {
        let mut program = Program::new(node, 2, 8, true);
        let mut reduce = |include_current| {
            let reductions = [Reduction { buffer: U, include_current }];
            let launch = Launch { reductions: &reductions, ..Launch::new(TaskId(9), kernel(0)) };
            assert_eq!(program.graph.launch(&launch).unwrap(), []);
            program.graph.pending(U)
        };
        assert!(reduce(true).is_empty(), "the contents stay");
        assert_eq!(reduce(false), GridBox::full([8, 1, 1]).into());
        let commands = program.launch(Work::Fence, &[access(U, Mode::Read, everything(8))]).unwrap();
        let kinds: Vec<_> = commands.iter().map(|command| &command.kind).collect();
        assert!(
            matches!(kinds[..], [CommandKind::Reduce { leaves: 0, .. }, CommandKind::Fence]),
            "{kinds:?}"
        );
    }
}

#[test]
fn ranks_that_diverge_have_different_hashes() {
    let hash = |radius: usize, order: Order| {
        let mut program = Program::new(0, 2, 8, true);
        program.graph.create_object(ObjectId(9));
        program.kernel(&[access(U, Mode::Read, erase::<1, 1>(fixed(GridBox::full(radius)), Extent([8])))]);
        program.effect(ObjectId(9), order);
        program.graph.program_hash()
    };
    assert_eq!(hash(1, Order::Relaxed), hash(1, Order::Relaxed));
    assert_ne!(hash(1, Order::Relaxed), hash(2, Order::Relaxed));
    assert_ne!(hash(1, Order::Relaxed), hash(1, Order::Exclusive));
}

/// The number of calls of the reading mapper, and of commands, for one step of a stencil in the middle of
/// `nodes` nodes.
fn stencil_work(nodes: u16) -> (usize, usize) {
    let n = 1 << 16;
    let mut program = Program::new(nodes / 2, nodes, n, false);
    program.kernel(&[access(U, Mode::Write, points(n))]);
    let (mut calls, mut commands) = (0, 0);
    for step in 0..10 {
        let counter = Arc::new(AtomicUsize::new(0));
        let (inner, seen) = (near(1, n), counter.clone());
        // Each step has a new mapper, so that no step repeats the one before.
        let counted = Mapper::new(move |chunk| {
            seen.fetch_add(1, Relaxed);
            inner.map(chunk)
        });
        let [from, to] = if step % 2 == 0 { [U, V] } else { [V, U] };
        let list = program.kernel(&[access(from, Mode::Read, counted), access(to, Mode::Write, points(n))]);
        (calls, commands) = (counter.load(Relaxed), list.len());
    }
    (calls, commands)
}

#[test]
fn the_work_of_a_stencil_grows_with_the_logarithm_of_the_nodes() {
    let (few, commands) = stencil_work(8);
    assert_eq!(commands, 3);
    for levels in 4..=12 {
        let (calls, commands) = stencil_work(1 << levels);
        assert_eq!(commands, 3);
        // Two neighbours to find, with two calls for each level of the tree.
        assert!(calls <= few + 4 * (levels - 3), "{calls} calls with {} nodes, {few} with 8", 1 << levels);
    }
}

/// An endless program in which one of two nodes reads and writes changing columns.
#[test]
fn commands_of_an_endless_program_name_only_recent_commands() {
    let mut program = Program::new(0, 2, 64, true);
    for step in 0..3000usize {
        let (a, b) = (step * 7 % 61, step * 5 % 59);
        let read = Mapper::new(move |_| line(a, a + 3));
        let write = Mapper::new(move |chunk| line(b, b + 4).intersection(&chunk.range.into()));
        for command in program.kernel(&[access(U, Mode::Read, read), access(V, Mode::Update, write)]) {
            assert!(command.dependencies.len() < 40, "{command:?}");
        }
        if step % 8 == 7 {
            program.launch(Work::Horizon, &[]).unwrap();
        }
    }
}

/// Node 2 of 4 captures everything, and the others nothing.
#[test]
fn a_snapshot_of_other_regions_on_each_node_moves_only_those() {
    let _deadline = testing::deadline();
    let hints = Hints { own_regions: Some(1), ..Hints::default() };
    for work in [Work::Fence, Work::Epoch] {
        for node in 0..4 {
            let mut program = Program::new(node, 4, 8, false);
            program.kernel(&[access(U, Mode::Write, points(8))]);
            let only = Mapper::new(|chunk| {
                let nodes = chunk.range.min()[0]..chunk.range.max()[0];
                if nodes.contains(&2) { line(0, 8) } else { Region::empty() }
            });
            let commands = program.launch_with(work, hints, &[access(U, Mode::Read, only)]).unwrap();
            let (mut pushed, mut awaited, mut snapshots) = (Region::empty(), Region::empty(), 0);
            for command in &commands {
                match &command.kind {
                    CommandKind::Push { targets, .. } => {
                        assert!(targets.iter().all(|target| target.node == NodeId(2)), "{commands:?}");
                        pushed = targets.iter().fold(pushed, |all, target| all.union(&target.region));
                    }
                    CommandKind::AwaitPush { region, .. } => awaited = awaited.union(region),
                    CommandKind::Fence | CommandKind::Epoch => snapshots += 1,
                    other => panic!("{other:?}"),
                }
            }
            let own = line(2 * usize::from(node), 2 * usize::from(node) + 2);
            let expected = match node {
                2 => (Region::empty(), line(0, 8).difference(&own)),
                _ => (own, Region::empty()),
            };
            assert_eq!(((pushed, awaited), snapshots), (expected, 1), "node {node}");
        }
    }
}

#[test]
fn other_regions_on_each_node_are_part_of_the_hash() {
    let _deadline = testing::deadline();
    let hash = |own_regions| {
        let mut program = Program::new(0, 2, 8, true);
        let hints = Hints { own_regions, ..Hints::default() };
        program.launch_with(Work::Fence, hints, &[access(U, Mode::Read, everything(8))]).unwrap();
        program.graph.program_hash()
    };
    assert!(hash(Some(1)) != hash(Some(2)) && hash(None) != hash(Some(0)));
}
