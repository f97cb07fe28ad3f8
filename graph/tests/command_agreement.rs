//! All nodes agree: on the hash of the program and on the errors of its declarations.

mod command_program;

use anabranch_graph::{BufferId, Mode, ObjectId, Order, command::*};
use anabranch_grid::*;
use command_program::*;

/// The hash of a program that drops its handles at the given steps.
fn hash_with_handles_dropped_at(buffer: usize, object: usize) -> u64 {
    let mut program = Program::new(0, 2, 8, true);
    program.graph.create_object(ObjectId(9));
    program.effect(ObjectId(9), Order::Relaxed);
    program.kernel(&[access(V, Mode::Read, points(8))]);
    for step in 0..4 {
        if step == buffer {
            program.graph.remove_buffer(V);
        }
        if step == object {
            program.graph.remove_object(ObjectId(9));
        }
        program.kernel(&[access(U, Mode::Update, points(8))]);
    }
    program.graph.program_hash()
}

#[test]
fn the_program_hash_does_not_depend_on_when_the_last_handle_is_dropped() {
    let first = hash_with_handles_dropped_at(0, 0);
    assert_eq!(hash_with_handles_dropped_at(3, 0), first);
    assert_eq!(hash_with_handles_dropped_at(0, 2), first);
    assert_eq!(hash_with_handles_dropped_at(9, 9), first);
}

/// The error of a launch on every node, which is the same.
fn error_of(nodes: u16, hints: Hints, accesses: &[BufferAccess]) -> CommandError {
    let errors = (0..nodes).map(|node| {
        let mut program = Program::new(node, nodes, 64, false);
        program.kernel(&[access(V, Mode::Write, points(64))]);
        let hash = program.graph.program_hash();
        let error = program.launch_with(kernel(64), hints, accesses).expect_err("a wrong declaration");
        assert_eq!(program.graph.program_hash(), hash, "an error changes nothing");
        assert_eq!(
            program.launch_with(kernel(64), hints, accesses),
            Err(again(&error)),
            "also if it repeats"
        );
        error
    });
    let errors: Vec<_> = errors.collect();
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    errors[0].clone()
}

/// The same error, for the next task.
fn again(error: &CommandError) -> CommandError {
    let mut error = error.clone();
    match &mut error {
        CommandError::OverlappingWrites { task, .. }
        | CommandError::InexactWrite { task, .. }
        | CommandError::NotMonotonic { task, .. }
        | CommandError::NeverWritten { task, .. } => task.0 += 1,
        _ => {}
    }
    error
}

/// Writes its own points, except that the chunks from `first` on have `change`d ones.
fn wrong_from(first: usize, change: impl Fn(&Chunk<3>) -> Region<3> + Send + Sync + 'static) -> Mapper {
    Mapper::new(move |chunk| match chunk.range != chunk.global && chunk.range.min()[0] >= first {
        true => change(chunk),
        false => chunk.range.into(),
    })
}

#[test]
fn every_node_finds_writes_that_overlap_on_other_nodes() {
    for nodes in [2, 3, 8, 64] {
        let last = 64 - 64 / nodes as usize;
        let one_more = wrong_from(last, |chunk| line(chunk.range.min()[0] - 1, chunk.range.max()[0]));
        let error = error_of(nodes, Hints::default(), &[access(U, Mode::Write, one_more)]);
        let CommandError::OverlappingWrites { common, .. } = &error else { panic!("{error}") };
        assert_eq!(**common, line(last - 1, last));
    }
}

#[test]
fn every_node_finds_pieces_that_overlap_on_one_node() {
    let hints = Hints { pieces: 4, node: Some(NodeId(1)), ..Hints::default() };
    let one_more = wrong_from(48, |chunk| line(chunk.range.min()[0] - 1, chunk.range.max()[0]));
    let error = error_of(3, hints, &[access(U, Mode::Write, one_more)]);
    assert!(matches!(error, CommandError::OverlappingWrites { .. }), "{error}");
}

#[test]
fn every_node_finds_points_that_no_node_writes() {
    let one_less = wrong_from(40, |chunk| line(chunk.range.min()[0] + 1, chunk.range.max()[0]));
    let error = error_of(8, Hints::default(), &[access(U, Mode::Write, one_less)]);
    let CommandError::InexactWrite { missing, .. } = &error else { panic!("{error}") };
    assert_eq!(**missing, Region::from_iter([line(40, 41), line(48, 49), line(56, 57)]));
}

#[test]
fn every_node_finds_a_writer_that_is_not_monotonic() {
    let beyond = wrong_from(48, |chunk| line(chunk.range.min()[0], chunk.range.max()[0] + 1));
    let error = error_of(4, Hints::default(), &[access(U, Mode::Write, beyond)]);
    assert!(matches!(error, CommandError::NotMonotonic { .. }), "{error}");
}

#[test]
fn every_node_finds_points_that_were_never_written() {
    for nodes in [2, 5, 64] {
        let error = error_of(nodes, Hints::default(), &[access(U, Mode::Read, points(64))]);
        assert_eq!(error.to_string(), "T2 reads [0..64, 0..1, 0..1] of buffer 1, never written on any node");
    }
    let only_the_last = Mapper::new(|chunk| line(60, 64).intersection(&chunk.range.into()));
    let error = error_of(4, Hints::default(), &[access(U, Mode::Update, only_the_last)]);
    let CommandError::NeverWritten { buffer: BufferId(1), missing, .. } = &error else { panic!("{error}") };
    assert_eq!(**missing, line(60, 64));
}

/// Regions that are no boxes in order are checked, too: each chunk writes every second point of its own in
/// two parts.
#[test]
fn regions_of_any_shape_are_exact_or_not() {
    let half = |chunk: &Chunk<3>| (chunk.range.min()[0] / 2, chunk.range.max()[0] / 2);
    let exact = Mapper::new(move |chunk| {
        let (low, high) = half(chunk);
        Region::from_iter([line(low, high), line(32 + low, 32 + high)])
    });
    let mut program = Program::new(1, 4, 64, false);
    program.kernel(&[access(U, Mode::Write, exact)]);
    assert_eq!(program.graph.owned(U), Region::from_iter([line(8, 16), line(40, 48)]));
    let mirrored = Mapper::new(|chunk| line(64 - chunk.range.max()[0], 64 - chunk.range.min()[0]));
    program.kernel(&[access(U, Mode::Write, mirrored)]);
    assert_eq!(program.graph.owned(U), line(32, 48));
    let overlap = Mapper::new(move |chunk| {
        let (low, high) = half(chunk);
        Region::from_iter([line(low, high), line(16 + low, 16 + high)])
    });
    let error = error_of(4, Hints::default(), &[access(U, Mode::Write, overlap)]);
    assert!(matches!(error, CommandError::OverlappingWrites { .. }), "{error}");
}
