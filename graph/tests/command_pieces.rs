//! Pieces: each waits for its own inputs, and transfers wait for and are awaited by the pieces that they
//! concern.

mod command_program;

use anabranch_graph::{Mode, TaskId, command::*};
use anabranch_grid::*;
use command_program::*;

const N: usize = 64;

fn pieces(pieces: usize) -> Hints {
    Hints { pieces, ..Hints::default() }
}

/// The commands of a step of a stencil with this radius, after the first step from buffer U to V.
fn second_step(node: u16, nodes: u16, hints: Hints, radius: usize) -> [Vec<Command>; 2] {
    let mut program = Program::new(node, nodes, N, true);
    let mut step = |from, to| {
        let accesses = [access(from, Mode::Read, near(radius, N)), access(to, Mode::Write, points(N))];
        program.launch_with(kernel(N), hints, &accesses).expect("a valid launch")
    };
    [step(U, V), step(V, U)]
}

fn executions(commands: &[Command]) -> Vec<&Command> {
    commands.iter().filter(|command| matches!(command.kind, CommandKind::Execute { .. })).collect()
}

fn pushes(commands: &[Command]) -> Vec<&Command> {
    commands.iter().filter(|command| matches!(command.kind, CommandKind::Push { .. })).collect()
}

/// The regions that are awaited, and the commands that await them.
fn awaits(commands: &[Command]) -> Vec<(String, CommandId)> {
    let of = |command: &Command| match &command.kind {
        CommandKind::AwaitPush { region, .. } => Some((region.to_string(), command.id)),
        _ => None,
    };
    commands.iter().filter_map(of).collect()
}

#[test]
fn on_one_node_a_piece_waits_for_the_neighbouring_pieces_of_the_step_before() {
    let [first, second] = second_step(0, 1, pieces(8), 1);
    assert_eq!([first.len(), second.len()], [8, 8]);
    for (at, command) in second.iter().enumerate() {
        let CommandKind::Execute { chunk, .. } = &command.kind else { panic!("{command:?}") };
        assert_eq!(chunk.range, GridBox::new([8 * at, 0, 0], [8 * at + 8, 1, 1]));
        let neighbours = at.saturating_sub(1)..(at + 2).min(8);
        assert_eq!(on(command), neighbours.map(|at| first[at].id).collect::<Vec<_>>());
    }
}

#[test]
fn a_border_is_sent_when_its_own_piece_is_done() {
    let [first, second] = second_step(1, 3, pieces(4), 1);
    let (first, sent) = (executions(&first), pushes(&second));
    assert_eq!(sent.len(), 2);
    assert_eq!(targets(sent[0]), [(0, "[22..23, 0..1, 0..1]".into())]);
    assert_eq!(on(sent[0]), [first[0].id]);
    assert_eq!(targets(sent[1]), [(2, "[42..43, 0..1, 0..1]".into())]);
    assert_eq!(on(sent[1]), [first[3].id]);
}

#[test]
fn a_piece_waits_for_the_halo_that_it_reads_and_not_for_the_other() {
    let [_, second] = second_step(1, 3, pieces(4), 1);
    let arrivals = awaits(&second);
    assert_eq!(arrivals.len(), 2);
    assert_eq!([&*arrivals[0].0, &*arrivals[1].0], ["[21..22, 0..1, 0..1]", "[43..44, 0..1, 0..1]"]);
    let waits =
        |command: &Command| arrivals.iter().map(|(_, id)| on(command).contains(id)).collect::<Vec<_>>();
    let found: Vec<_> = executions(&second).into_iter().map(waits).collect();
    assert_eq!(found, [[true, false], [false, false], [false, false], [false, true]]);
}

#[test]
fn a_halo_that_several_pieces_read_is_awaited_in_parts_and_sent_in_one_message() {
    // Pieces of one and two points, and halos of three.
    let [first, second] = second_step(1, 4, pieces(12), 3);
    let [left, right] = pushes(&second)[..] else { panic!("one message per neighbour") };
    assert_eq!([targets(left).len(), targets(right).len()], [1, 1]);
    assert_eq!(on(left).len(), 2, "the writers of three points: {first:?}");
    let arrivals = awaits(&second);
    let left: Vec<_> = arrivals.iter().filter(|(region, _)| region.starts_with("[1")).collect();
    assert_eq!(left.len(), 2, "{arrivals:?}");
    for command in executions(&second) {
        let CommandKind::Execute { chunk, .. } = &command.kind else { unreachable!() };
        let range = chunk.range;
        for (region, id) in &arrivals {
            let numbers: Vec<usize> =
                region[1..].split([',', '.']).filter_map(|word| word.parse().ok()).collect();
            let halo = numbers[0]..numbers[1];
            let reads = halo.start < range.max()[0] + 3 && range.min()[0] < halo.end + 3;
            assert_eq!(on(command).contains(id), reads, "{range} and {region}");
        }
    }
}

#[test]
fn pieces_change_neither_the_messages_nor_which_node_has_what() {
    let messages = |count| {
        let [_, second] = second_step(2, 5, pieces(count), 2);
        let sent: Vec<_> = pushes(&second).into_iter().flat_map(targets).collect();
        sent
    };
    assert_eq!(messages(1).len(), 2);
    for count in [2, 3, 5, 64] {
        assert_eq!(messages(count), messages(1));
    }
}

#[test]
fn what_all_nodes_need_is_pushed_by_one_command() {
    let mut program = Program::new(1, 4, N, false);
    program.launch_with(kernel(N), pieces(4), &[access(U, Mode::Write, points(N))]).unwrap();
    let commands =
        program.launch_with(kernel(N), pieces(4), &[access(U, Mode::Read, everything(N))]).unwrap();
    let [push] = pushes(&commands)[..] else { panic!("one push: {commands:?}") };
    assert_eq!(targets(push).len(), 3);
    assert_eq!(awaits(&commands).len(), 1);
}

#[test]
fn repeated_pieces_are_recalled_with_the_same_dependencies() {
    let mut program = Program::new(1, 3, N, true);
    let mut step = |number: u64| {
        let [from, to] = if number.is_multiple_of(2) { [U, V] } else { [V, U] };
        let accesses = [access(from, Mode::Read, near(1, N)), access(to, Mode::Write, points(N))];
        let commands = program.launch_with(kernel(N), pieces(8), &accesses).unwrap();
        if number.is_multiple_of(4) {
            program.launch(Work::Horizon, &[]).unwrap();
        }
        let first = commands[0].id.0;
        let back =
            |command: &Command| on(command).iter().map(|id| first - id.0.min(first)).collect::<Vec<_>>();
        commands.iter().map(back).collect::<Vec<_>>()
    };
    let steps: Vec<_> = (0..64).map(&mut step).collect();
    assert!((16..60).all(|at| steps[at] == steps[at + 4]));
    assert!(steps[20].iter().all(|distances| distances.len() < 8));
}

#[test]
fn data_and_partial_results_of_one_task_have_different_names() {
    let mut program = Program::new(0, 2, N, true);
    let reductions = [Reduction { buffer: U, include_current: false }];
    program.tasks += 1;
    program.graph.launch(&Launch { reductions: &reductions, ..Launch::new(TaskId(1), kernel(N)) }).unwrap();
    // One half of the result is overwritten. The task after that needs partial results and elements of one
    // buffer.
    program.kernel(&[access(
        U,
        Mode::Write,
        Mapper::new(|chunk| line(16, 48).intersection(&chunk.range.into())),
    )]);
    let commands = program.kernel(&[access(U, Mode::Read, everything(N))]);
    let names: Vec<_> = commands.iter().filter_map(Command::transfer).collect();
    let name = |kind| TransferName { task: TaskId(3), buffer: U, kind };
    let (data, partials) = (name(TransferKind::Data), name(TransferKind::Partials));
    assert_eq!(names, [partials, partials, data, data]);
}

#[test]
fn more_than_64_nodes_take_part_in_a_large_reduction() {
    let rows = 1 << 12;
    let space = GridBox::full([rows, 1 << 12, 1]);
    let reductions = [Reduction { buffer: U, include_current: false }];
    let part = |node: u16| {
        let mut program = Program::new(node, 200, 1, true);
        let launch = Launch { reductions: &reductions, ..Launch::new(TaskId(1), Work::Kernel { space }) };
        let commands = program.graph.launch(&launch).unwrap().to_vec();
        let CommandKind::Execute { leaves, .. } = &commands[0].kind else { panic!("{commands:?}") };
        leaves.clone()
    };
    let mut next = 0;
    for node in 0..200 {
        let leaves = part(node);
        assert!(leaves.start == next && leaves.end > next);
        next = leaves.end;
    }
    assert_eq!(next, default_leaves(&space, 1) as u32);
}

#[test]
fn a_kernel_on_one_node_reads_from_all() {
    let on_two = Hints { node: Some(NodeId(2)), pieces: 2, ..Hints::default() };
    let commands = |node: u16| {
        let mut program = Program::new(node, 4, N, false);
        program.kernel(&[access(U, Mode::Write, points(N))]);
        let accesses = [access(U, Mode::Read, points(N)), access(V, Mode::Write, points(N))];
        let commands = program.launch_with(kernel(N), on_two, &accesses).unwrap();
        assert_eq!(program.graph.owned(V).is_empty(), node != 2);
        commands
    };
    assert_eq!(targets(&commands(0)[0]), [(2, "[0..16, 0..1, 0..1]".into())]);
    let two = commands(2);
    assert_eq!(executions(&two).len(), 2);
    assert_eq!(awaits(&two).len(), 2);
}
