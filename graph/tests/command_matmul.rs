//! The product of two diagonal matrices on two nodes, and the check of its result: the commands are those of
//! figures 1 and 4 in "Declarative Data Flow in a Graph-Based Distributed Memory Runtime System".

use anabranch_graph::{BufferId, Kind, Mode, TaskId, command::*};
use anabranch_grid::*;

const N: usize = 8;
const A: BufferId = BufferId(1);
const B: BufferId = BufferId(2);
const C: BufferId = BufferId(3);
const OK: BufferId = BufferId(4);

fn access(buffer: BufferId, mode: Mode, mapper: impl RangeMapper<2, 2> + 'static) -> BufferAccess {
    BufferAccess { buffer, mode, mapper: erase(mapper, Extent([N, N])) }
}

/// The commands of a node for each task.
fn commands(node: u16) -> Vec<Vec<Command>> {
    let mut graph = CommandGraph::new(NodeId(node), 2);
    for buffer in [A, B, C] {
        graph.create_buffer(buffer, Extent([N, N, 1]), false);
    }
    graph.create_buffer(OK, Extent([1, 1, 1]), false);
    let work = Work::Kernel { space: GridBox::full([N, N, 1]) };
    let read_ok = BufferAccess { buffer: OK, mode: Mode::Read, mapper: erase::<0, 0>(all(), Extent([])) };
    let tasks: [(Work, Vec<BufferAccess>); 5] = [
        (work, vec![access(A, Mode::Write, one_to_one())]),
        (work, vec![access(B, Mode::Write, one_to_one())]),
        (
            work,
            vec![
                access(A, Mode::Read, slice(1)),
                access(B, Mode::Read, slice(0)),
                access(C, Mode::Write, one_to_one()),
            ],
        ),
        (work, vec![access(C, Mode::Read, one_to_one())]),
        (Work::Epoch, vec![read_ok]),
    ];
    let verify = [Reduction { buffer: OK, include_current: false }];
    let launch = |(number, (work, accesses)): (usize, &(Work, Vec<BufferAccess>))| {
        let reductions = if number == 3 { &verify[..] } else { &[] };
        let launch = Launch::new(TaskId(number as u64 + 1), *work);
        graph.launch(&Launch { accesses, reductions, ..launch }).expect("a valid program").to_vec()
    };
    tasks.iter().enumerate().map(launch).collect()
}

fn on(command: &Command) -> Vec<(u64, Kind)> {
    command.dependencies.iter().map(|d| (d.on.0, d.kind)).collect()
}

fn rows(node: usize) -> GridBox<3> {
    GridBox::new([node * N / 2, 0, 0], [(node + 1) * N / 2, N, 1])
}

#[test]
fn only_the_second_operand_is_transferred() {
    for node in 0..2 {
        let other = 1 - node;
        let [diag_a, diag_b, mul, verify, _] = &commands(node as u16)[..] else { panic!("five tasks") };
        let chunk = Chunk { range: rows(node), global: GridBox::full([N, N, 1]) };
        let execute = CommandKind::Execute { chunk, leaves: 0..0 };
        assert_eq!((diag_a.len(), &diag_a[0].kind, on(&diag_a[0])), (1, &execute, vec![(0, Kind::Output)]));
        assert_eq!((diag_b.len(), &diag_b[0].kind), (1, &execute));

        let [push, arrival, product] = &mul[..] else {
            panic!("a push, an await-push, an execution: {mul:?}")
        };
        let target = Target { node: NodeId(other as u16), region: rows(node).into() };
        assert_eq!(push.kind, CommandKind::Push { buffer: B, targets: [target].into(), exchange: None });
        assert_eq!(on(push), [(diag_b[0].id.0, Kind::True)]);
        assert_eq!(
            arrival.kind,
            CommandKind::AwaitPush { buffer: B, region: rows(other).into(), exchange: None }
        );
        assert_eq!(on(arrival), [(0, Kind::Output)]);
        assert_eq!(product.kind, execute);
        let operands = [diag_a[0].id.0, diag_b[0].id.0, arrival.id.0].map(|id| (id, Kind::True));
        assert_eq!(on(product), operands);

        let [check] = &verify[..] else { panic!("an execution: {verify:?}") };
        let leaves = node as u32 * N as u32 / 2..(node as u32 + 1) * N as u32 / 2;
        assert_eq!(check.kind, CommandKind::Execute { chunk, leaves });
        assert_eq!(on(check), [(product.id.0, Kind::True)]);
    }
}

#[test]
fn the_capture_makes_both_nodes_reduce() {
    for node in 0..2 {
        let commands = commands(node);
        let (check, push) = (&commands[3][0], &commands[2][0]);
        let [send, arrival, reduce, epoch] = &commands[4][..] else { panic!("{:?}", commands[4]) };
        assert!(
            matches!(&send.kind, CommandKind::PushPartials { targets, .. } if **targets == [NodeId(1 - node)])
        );
        assert_eq!(on(send), [(check.id.0, Kind::True)]);
        assert!(matches!(arrival.kind, CommandKind::AwaitPartials { leaves: 8, .. }));
        assert_eq!(on(arrival), [(0, Kind::Serial)]);
        assert!(matches!(reduce.kind, CommandKind::Reduce { buffer: OK, reduction: TaskId(4), .. }));
        assert_eq!(on(reduce), [(check.id.0, Kind::True), (arrival.id.0, Kind::True)]);
        assert_eq!(epoch.kind, CommandKind::Epoch);
        let front = [(push.id.0, Kind::Serial), (send.id.0, Kind::Serial), (reduce.id.0, Kind::True)];
        assert_eq!(on(epoch), front);
    }
}
