//! Weights: later launches have other chunks, the data follows, and launches with other weights are no
//! repetitions.

mod command_program;

use anabranch_graph::{Mode, command::*};
use anabranch_grid::*;
use command_program::*;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

fn weights(weights: &[f64]) -> Weights {
    Weights::new(weights).expect("valid weights")
}

/// The rows that a node executes, and those that it sends and awaits.
fn summary(commands: &[Command]) -> Vec<String> {
    let line = |command: &Command| match &command.kind {
        CommandKind::Execute { chunk, .. } => format!("execute {}", Region::from(chunk.range)),
        CommandKind::Push { .. } => format!("push {:?}", targets(command)),
        CommandKind::AwaitPush { region, .. } => format!("await {region}"),
        other => format!("{other:?}"),
    };
    commands.iter().map(line).collect()
}

/// A step of a stencil from U to V or back.
fn step(program: &mut Program, number: usize) -> Vec<Command> {
    let [from, to] = if number.is_multiple_of(2) { [U, V] } else { [V, U] };
    let n = program.n;
    program.kernel(&[access(from, Mode::Read, near(1, n)), access(to, Mode::Write, points(n))])
}

#[test]
fn the_data_follows() {
    let steps = |node| {
        let mut program = Program::new(node, 3, 12, false);
        program.kernel(&[access(U, Mode::Write, points(12))]);
        program.graph.set_weights(&weights(&[2.0, 0.0, 1.0]));
        let first = summary(&step(&mut program, 0));
        (first, summary(&step(&mut program, 1)))
    };
    let row = |rows: &str| format!("[{rows}, 0..1, 0..1]");
    let push = |node: u16, rows: &str| format!("push [({node}, \"{}\")]", row(rows));
    let (awaits, execute) = (|rows| format!("await {}", row(rows)), |rows| format!("execute {}", row(rows)));
    let (first, second) = steps(0);
    // Rows 0 to 4 were written here.
    assert_eq!(first, [awaits("4..9"), execute("0..8")]);
    assert_eq!(second, [push(2, "7..8"), awaits("8..9"), execute("0..8")]);
    let (first, second) = steps(1);
    let both = format!("push [(0, \"{}\"), (2, \"{}\")]", row("4..8"), row("7..8"));
    assert_eq!((first, second), (vec![both], vec![]));
    let (first, second) = steps(2);
    assert_eq!(first, [push(0, "8..9"), awaits("7..8"), execute("8..12")]);
    assert_eq!(second, [push(0, "8..9"), awaits("7..8"), execute("8..12")]);
}

#[test]
fn equal_weights_are_no_weights() {
    for nodes in [1, 2, 3, 7, 16] {
        for node in 0..nodes {
            let steps = |given: Option<f64>| {
                let mut program = Program::new(node, nodes, 30, true);
                // The first weights are forgotten.
                let others: Vec<_> = (1..=nodes).map(f64::from).collect();
                program.graph.set_weights(&weights(&others));
                let given = vec![given.unwrap_or(1.0); nodes.into()];
                program.graph.set_weights(&weights(&given));
                (0..6).map(|number| step(&mut program, number)).collect::<Vec<_>>()
            };
            let mut program = Program::new(node, nodes, 30, true);
            let expected: Vec<_> = (0..6).map(|number| step(&mut program, number)).collect();
            assert_eq!(steps(None), expected, "{node} of {nodes}");
            assert_eq!(steps(Some(0.3)), expected, "{node} of {nodes}");
        }
    }
}

#[test]
fn launches_with_other_weights_are_no_repetition() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = |mapper: Mapper| {
        let calls = Arc::clone(&calls);
        Mapper::new(move |chunk| {
            calls.fetch_add(1, Relaxed);
            mapper.map(chunk)
        })
    };
    let n = 64;
    let mut program = Program::new(1, 3, n, true);
    let (reading, writing) = (counted(near(1, n)), counted(points(n)));
    let both = [weights(&[1.0, 2.0, 1.0]), weights(&[1.0, 1.0, 2.0])];
    let mut step = |number: usize| {
        program.graph.set_weights(&both[number % 2]);
        let accesses = [access(U, Mode::Read, reading.clone()), access(V, Mode::Write, writing.clone())];
        let commands = program.kernel(&accesses);
        program.launch(Work::Horizon, &[]).unwrap();
        summary(&commands).last().expect("an execution").clone()
    };
    let rows = [0, 1].map(|at| GridBox::new([16, 0, 0], [[48, 32][at], 1, 1]));
    let expected = rows.map(|rows| format!("execute {}", Region::from(rows)));
    (0..20).for_each(|number| assert_eq!(step(number), expected[number % 2]));
    // Both are recalled from there on.
    let before = calls.load(Relaxed);
    (20..60).for_each(|number| assert_eq!(step(number), expected[number % 2]));
    assert_eq!(calls.load(Relaxed), before);
}

#[test]
fn the_program_hash_has_the_weights() {
    let hash = |given: &[&[f64]]| {
        let mut program = Program::new(0, 2, 8, true);
        given.iter().for_each(|given| program.graph.set_weights(&weights(given)));
        program.kernel(&[access(U, Mode::Update, points(8))]);
        program.graph.program_hash()
    };
    assert_eq!(hash(&[&[1.0, 3.0]]), hash(&[&[0.5, 1.5]]), "the same shares");
    let all = [
        hash(&[]),
        hash(&[&[1.0, 3.0]]),
        hash(&[&[3.0, 1.0]]),
        hash(&[&[1.0, 1.0]]),
        // The chunks of these few rows are the same.
        hash(&[&[1.0, 3.000001]]),
        hash(&[&[1.0, 3.0], &[1.0, 1.0]]),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(all[..at].iter().all(|other| other != one), "{at}");
    }
}

#[test]
fn the_work_of_a_launch_does_not_grow_with_the_nodes() {
    let calls = |nodes: u16| {
        let calls = Arc::new(AtomicUsize::new(0));
        let n = 16 * usize::from(nodes);
        let (inner, seen) = (near(1, n), Arc::clone(&calls));
        let reading = Mapper::new(move |chunk| {
            seen.fetch_add(1, Relaxed);
            inner.map(chunk)
        });
        let mut program = Program::new(nodes / 2, nodes, n, true);
        // Every third node has no share.
        let given: Vec<_> = (0..nodes).map(|node| [0.0, 1.0, 2.5][usize::from(node) % 3]).collect();
        program.graph.set_weights(&weights(&given));
        program.kernel(&[access(U, Mode::Read, reading.clone()), access(V, Mode::Write, points(n))]);
        program.kernel(&[access(V, Mode::Read, reading), access(U, Mode::Write, points(n))]);
        calls.load(Relaxed)
    };
    assert!(calls(4096) <= calls(16) + 40, "{} and {}", calls(16), calls(4096));
}

#[test]
#[should_panic(expected = "2 weights for 3 nodes: give one to each node")]
fn a_missing_weight_is_a_panic() {
    CommandGraph::new(NodeId(0), 3).set_weights(&weights(&[1.0, 2.0]));
}
