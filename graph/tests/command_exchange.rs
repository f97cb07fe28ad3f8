//! Exchanges: all nodes read a buffer, and every node knows the part of each node.

mod command_program;

use anabranch_graph::{Mode, command::*};
use anabranch_grid::*;
use command_program::*;

const N: usize = 16;

/// The parts in the exchange of a launch, by node, if it is one.
fn exchange(commands: &[Command]) -> Option<Vec<(u16, String)>> {
    let parts = commands.iter().find_map(|command| match &command.kind {
        CommandKind::Push { exchange, .. } | CommandKind::AwaitPush { exchange, .. } => exchange.as_ref(),
        _ => None,
    });
    Some(parts?.iter().map(|(node, part)| (node.0, part.to_string())).collect())
}

fn write(by: Mapper) -> [BufferAccess; 1] {
    [access(U, Mode::Write, by)]
}

fn read(by: Mapper) -> [BufferAccess; 1] {
    [access(U, Mode::Read, by)]
}

fn part(min: usize, max: usize) -> String {
    format!("[{min}..{max}, 0..1, 0..1]")
}

#[test]
fn all_nodes_exchange_what_all_of_them_read() {
    let _deadline = testing::deadline();
    for node in 0..4 {
        let mut program = Program::new(node, 4, N, false);
        let expected: Vec<_> = (0..4).map(|node| (node as u16, part(4 * node, 4 * node + 4))).collect();
        // The third time the launches are recognised.
        for _ in 0..4 {
            program.kernel(&write(points(N)));
            let commands = program.kernel(&read(everything(N)));
            assert_eq!(exchange(&commands).as_ref(), Some(&expected));
            assert_eq!(commands.len(), 3, "a push, an await and an execution");
            // Now all of them have all of it.
            assert_eq!(program.kernel(&read(everything(N))).len(), 1);
        }
    }
}

#[test]
fn one_node_tells_all() {
    let _deadline = testing::deadline();
    for node in 0..5 {
        let mut program = Program::new(node, 5, N, false);
        let hints = Hints { node: Some(NodeId(3)), ..Hints::default() };
        let on_node = |program: &mut Program| {
            program.launch_with(kernel(N), hints, &write(points(N))).unwrap();
        };
        on_node(&mut program);
        let commands = program.kernel(&read(everything(N)));
        assert_eq!(exchange(&commands), Some(vec![(3, part(0, N))]));
        assert_eq!(commands.len(), 2, "a push or an await, and an execution");
        // A fence of a part that one of all nodes has.
        program.kernel(&write(points(N)));
        let some = program.launch(Work::Fence, &read(Mapper::new(|_| line(4, 6)))).unwrap();
        assert_eq!(exchange(&some), Some(vec![(1, part(4, 6))]));
        // What node 3 reads moves nothing, so all nodes still know.
        on_node(&mut program);
        program.launch_with(kernel(N), hints, &read(everything(N))).unwrap();
        assert!(exchange(&program.kernel(&read(everything(N)))).is_some());
    }
}

#[test]
fn a_task_that_reads_what_its_nodes_have_changes_nothing() {
    let _deadline = testing::deadline();
    for (hints, by, stays) in [
        (Hints::default(), points(N), true),
        (Hints { pieces: 3, ..Hints::default() }, points(N), true),
        (Hints { granularity: [8, 1], ..Hints::default() }, points(N), false),
        (Hints::default(), near(1, N), false),
        (Hints::default(), Mapper::new(|chunk| chunk.range.into()), false),
    ] {
        let mut program = Program::new(1, 4, N, false);
        program.kernel(&write(points(N)));
        program.launch_with(kernel(N), hints, &read(by)).unwrap();
        let commands = program.kernel(&read(everything(N)));
        assert_eq!(exchange(&commands).is_some(), stays, "{hints:?}");
        assert!(commands.len() > 1, "the others lack something");
    }
}

#[test]
fn nodes_that_cannot_know_push() {
    let _deadline = testing::deadline();
    let exchanges = |nodes: u16, by: Mapper, reads: Mapper| {
        let mut program = Program::new(1, nodes, N, false);
        program.kernel(&write(by));
        exchange(&program.kernel(&read(reads))).is_some()
    };
    let some = || erase::<1, 1>(fixed(GridBox::new(3, 9)), Extent([N]));
    assert!(exchanges(4, points(N), everything(N)) && exchanges(4, points(N), some()));
    assert!(!exchanges(3, points(N), everything(N)), "few nodes");
    assert!(!exchanges(N as u16 + 1, points(N), everything(N)), "a node without a chunk reads nothing");
    assert!(!exchanges(4, points(N), near(N, N)), "a mapper that may differ from chunk to chunk");
    assert!(!exchanges(4, Mapper::new(|chunk| chunk.range.into()), everything(N)), "any function");
    // A part is written anew.
    let mut program = Program::new(1, 4, N, false);
    program.kernel(&write(points(N)));
    program.kernel(&[access(
        U,
        Mode::Write,
        Mapper::new(|chunk| line(4, 5).intersection(&chunk.range.into())),
    )]);
    assert!(exchange(&program.kernel(&read(everything(N)))).is_none());
}
