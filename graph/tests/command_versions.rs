//! Versions: what overwrites a buffer does not wait for what still reads it, and no other node notices.

mod command_program;

use anabranch_graph::{BufferId, Kind, Mode, TaskId, command::*};
use anabranch_grid::*;
use command_program::*;

const N: usize = 32;

fn write(buffer: BufferId) -> [BufferAccess; 1] {
    [access(buffer, Mode::Write, points(N))]
}

/// A host task that reads this node's part of a buffer, such as one that stores it.
fn store(program: &mut Program, buffer: BufferId) -> CommandId {
    let work = Work::HostChunks { space: GridBox::full([N, 1, 1]) };
    let commands = program.launch(work, &[access(buffer, Mode::Read, points(N))]).expect("a valid launch");
    commands.last().expect("an execution").id
}

#[test]
fn a_complete_overwrite_does_not_wait_for_a_reader() {
    for versions in [1, 2] {
        let mut program = Program::new(0, 2, N, true);
        program.graph.set_versions(U, versions);
        let first = program.kernel(&write(U))[0].id;
        let stored = store(&mut program, U);
        let second = program.kernel(&write(U))[0].clone();
        assert_eq!(on(&second).contains(&stored), versions == 1, "{second:?}");
        assert!(!on(&second).contains(&first) || versions == 1);
        assert_eq!(program.graph.version(U) as usize, versions - 1);
    }
}

#[test]
fn the_bound_on_versions_waits_for_the_oldest_reader() {
    let mut program = Program::new(0, 2, N, true);
    program.graph.set_versions(U, 3);
    let mut stored = Vec::new();
    for step in 0..10 {
        let overwrite = program.kernel(&write(U))[0].clone();
        assert_eq!(program.graph.version(U), step % 3);
        match step {
            0..3 => assert_eq!(on(&overwrite), [CommandId::EPOCH]),
            _ => assert!(
                overwrite
                    .dependencies
                    .iter()
                    .any(|d| d.on == stored[step as usize - 3] && d.kind == Kind::Anti)
            ),
        }
        assert!(stored.iter().rev().take(2).all(|id| !on(&overwrite).contains(id)));
        stored.push(store(&mut program, U));
    }
}

#[test]
fn readers_that_are_done_cause_no_other_version() {
    let mut program = Program::new(0, 1, N, true);
    program.graph.set_versions(U, 4);
    for _ in 0..5 {
        store(&mut program, U);
        program.tasks += 1;
        let launch = Launch { accesses: &write(U), ..Launch::new(TaskId(program.tasks), kernel(N)) };
        program.graph.launch_after(&launch, &|_| true).expect("a valid launch");
        assert_eq!(program.graph.version(U), 0);
    }
    // The memory that is free again is used before a new one is made.
    for versions in [1, 0, 1] {
        let stored = store(&mut program, U);
        program.tasks += 1;
        let launch = Launch { accesses: &write(U), ..Launch::new(TaskId(program.tasks), kernel(N)) };
        program.graph.launch_after(&launch, &|id| id < stored).expect("a valid launch");
        assert_eq!(program.graph.version(U), versions);
    }
}

#[test]
fn an_overwrite_that_comes_after_the_reader_anyway_stays_in_place() {
    for nodes in [1, 3] {
        let mut program = Program::new(0, nodes, N, true);
        [U, V].into_iter().for_each(|buffer| program.graph.set_versions(buffer, 3));
        for step in 0..40 {
            let [from, to] = if step % 2 == 0 { [U, V] } else { [V, U] };
            program.kernel(&[access(from, Mode::Read, near(1, N)), access(to, Mode::Write, points(N))]);
            assert_eq!([program.graph.version(U), program.graph.version(V)], [0, 0], "step {step}");
        }
    }
}

#[test]
fn a_discard_makes_one_overwrite_of_several_launches() {
    let mut program = Program::new(0, 1, N, true);
    program.graph.set_versions(U, 2);
    let stored = store(&mut program, U);
    program.graph.discard(U, &|_| false);
    assert_eq!(program.graph.version(U), 1);
    for half in [0..N / 2, N / 2..N] {
        let half = line(half.start, half.end);
        let write = Mapper::new(move |chunk| half.intersection(&chunk.range.into()));
        assert!(!on(&program.kernel(&[access(U, Mode::Write, write)])[0]).contains(&stored));
    }
    assert_eq!(program.graph.version(U), 1);
    assert_eq!(program.kernel(&[access(U, Mode::Read, points(N))]).len(), 1);
}

#[test]
fn discarded_contents_cannot_be_read_on_any_node() {
    for node in 0..3 {
        let mut program = Program::new(node, 3, N, true);
        program.kernel(&write(U));
        program.graph.discard(U, &|_| false);
        let read = [access(U, Mode::Read, points(N))];
        for _ in 0..3 {
            let error = program.launch(kernel(N), &read).unwrap_err();
            assert!(matches!(error, CommandError::NeverWritten { buffer: U, .. }), "{error}");
        }
        program.kernel(&write(U));
        assert_eq!(program.kernel(&read).len(), 1);
    }
}

/// Only the pieces that use the same part of an old memory are waited for.
#[test]
fn a_piece_waits_for_those_that_use_its_part_of_an_old_memory() {
    let mut program = Program::new(0, 1, N, true);
    program.graph.set_versions(U, 2);
    let pieces = Hints { pieces: 4, ..Hints::default() };
    let mut readers: Vec<Vec<CommandId>> = Vec::new();
    for step in 0..4 {
        let writers = program.launch_with(kernel(N), pieces, &write(U)).expect("a valid launch");
        for (at, writer) in writers.iter().enumerate() {
            let waits: Vec<_> =
                readers.iter().flatten().filter(|id| on(writer).contains(id)).copied().collect();
            let expected: Vec<CommandId> = if step < 2 { Vec::new() } else { vec![readers[step - 2][at]] };
            assert_eq!(waits, expected, "step {step}, piece {at}");
        }
        let read = program
            .launch_with(kernel(N), pieces, &[access(U, Mode::Read, points(N))])
            .expect("a valid launch");
        readers.push(read.iter().map(|command| command.id).collect::<Vec<_>>());
    }
}
