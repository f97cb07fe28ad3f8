//! The scenarios under a real `mpirun`: this program starts itself as the processes of an MPI program.

mod conformance;

use anabranch_wire::{Options, WireError, connect, launched};
use conformance::{ENDS, SCENARIOS, node::Node, transfers::more_bytes_than_an_int_counts};
use std::{
    env, fs,
    path::Path,
    process::{Command, Output},
    thread,
    time::Duration,
};
use testing::mpi::{MPICH, Mpi, OPEN_MPI, compile, text};

/// What the processes run; set by the tests below.
const TASK: &str = "ANABRANCH_WIRE_TASK";
/// A folder in which each process notes that it has come to the end.
const FOLDER: &str = "ANABRANCH_WIRE_FOLDER";

/// Runs a task on the processes of an MPI program; `None` if this MPI is not installed.
fn run(mpi: &Mpi, nodes: u16, task: &str, folder: &Path, variables: &[(&str, &str)]) -> Option<Output> {
    mpi.run_test(nodes, "one_process", |command| {
        command.env(TASK, task).env(FOLDER, folder).envs(variables.iter().copied());
    })
}

/// Runs a task, and expects that all processes come to its end.
fn complete(mpi: &Mpi, nodes: u16, task: &str, with_success: bool) {
    complete_with(mpi, nodes, task, with_success, &[]);
}

fn complete_with(mpi: &Mpi, nodes: u16, task: &str, with_success: bool, variables: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(mpi, nodes, task, folder.path(), variables) else { return };
    let text = text(&output);
    // A node whose memory MPI still reads ends all processes, itself included.
    let ends_all = usize::from(task == "a_node_leaves_with_transfers_under_way");
    assert_eq!(ends_all == 1, text.contains("node 1 of") && text.contains("ends all processes"), "{text}");
    assert_eq!(
        notes(folder.path()),
        usize::from(nodes) - ends_all,
        "{task} with {nodes} nodes of {}:\n{text}",
        mpi.mpirun()
    );
    assert!(
        output.status.success() || !with_success,
        "{task} with {nodes} nodes of {}:\n{text}",
        mpi.mpirun()
    );
}

fn notes(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// What each process of an MPI program runs; no test otherwise.
#[test]
fn one_process() {
    let _deadline = testing::deadline();
    let Ok(task) = env::var(TASK) else { return };
    let folder = env::var(FOLDER).unwrap();
    let done = |node: u16| fs::write(Path::new(&folder).join(node.to_string()), "").unwrap();
    match task.as_str() {
        "all" => {
            let mut node = 0;
            for scenario in SCENARIOS {
                let wire = connect(&Options::new()).unwrap().expect("mpirun has started this process");
                node = wire.place().node;
                (scenario.run)(wire);
            }
            done(node);
        }
        "connect" if launched().unwrap().is_none() => {
            assert!(connect(&Options::new()).unwrap().is_none());
            println!("alone");
        }
        "connect" => match connect(&Options::new()) {
            Ok(None) => panic!("a process that is one of several runs alone"),
            Ok(Some(wire)) => {
                assert_eq!(connect(&Options::new()).err(), Some(WireError::Connected));
                println!("{}", wire.place());
                wire.finish().unwrap();
            }
            Err(error) => println!("{error}"),
        },
        "stopped" => stopped(),
        "communicators" => done(communicators()),
        "large" => {
            let wire = connect(&Options::new()).unwrap().unwrap();
            let node = wire.place().node;
            more_bytes_than_an_int_counts(wire);
            done(node);
        }
        end => {
            let scenario = ENDS.iter().find(|scenario| scenario.name == end).unwrap();
            let wire = connect(&Options::new()).unwrap().unwrap();
            let place = wire.place();
            (scenario.run)(wire);
            assert_eq!(connect(&Options::new()).err(), Some(WireError::Disconnected));
            done(place.node);
            // The launcher ends all processes when the first one has ended like this.
            while notes(Path::new(&folder)) < place.nodes.into() {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Three endpoints, one after the other, with communicators. Those of the first one are still being made when
/// it finishes. The others begin one when another one is under way.
fn communicators() -> u16 {
    let mut wire = connect(&Options::new().communicators(true)).unwrap().unwrap();
    for _ in 0..3 {
        assert_eq!(wire.make_communicator(), Ok(true));
    }
    wire.finish().unwrap();
    let mut place = None;
    for _ in 0..2 {
        let mut node = Node::new(connect(&Options::new().communicators(true)).unwrap().unwrap());
        for _ in 0..3 {
            assert_eq!(node.wire.make_communicator(), Ok(true));
        }
        node.until("the communicators are made", |node| node.communicators.len() == 3);
        for (i, made) in node.communicators.iter().enumerate() {
            assert!(!node.communicators[..i].contains(made), "each has a handle of its own");
            let whose = [made.open_mpi().is_some(), made.mpich().is_some(), made.mpi_abi().is_some()];
            assert_eq!(whose.iter().filter(|is_so| **is_so).count(), 1);
        }
        node.barrier(0);
        place = Some(node.place());
        node.wire.finish().unwrap();
    }
    place.unwrap().node
}

/// Node 1 stops, and all others name it.
fn stopped() {
    let options = Options::new().timeout(Duration::from_secs(2));
    let mut node = Node::new(connect(&options).unwrap().unwrap());
    node.barrier(0);
    let place = node.place();
    if place.node == 1 {
        let pid = std::process::id().to_string();
        Command::new("kill").args(["-STOP", &pid]).status().unwrap();
        // Another thread of this process may get the signal and be late with it. The launcher ends this
        // process when the others have ended.
        loop {
            thread::sleep(Duration::from_millis(5));
        }
    }
    let error = node.failure();
    println!("{place} has an error: {error}");
    let folder = env::var(FOLDER).unwrap();
    fs::write(Path::new(&folder).join(place.node.to_string()), error.to_string()).unwrap();
    while notes(Path::new(&folder)) + 1 < place.nodes.into() {
        thread::sleep(Duration::from_millis(5));
    }
    // As an error of a program: the launcher then ends all processes.
    std::process::exit(1);
}

#[test]
fn all_scenarios_with_open_mpi() {
    let _deadline = testing::deadline();
    for nodes in [2, 3, 4] {
        complete(&OPEN_MPI, nodes, "all", true);
    }
}

#[test]
fn all_scenarios_with_mpich() {
    let _deadline = testing::deadline();
    for nodes in [2, 3] {
        complete(&MPICH, nodes, "all", true);
    }
}

/// No distribution has a library with the binary interface of MPI 5 yet, so this makes one of Open MPI.
#[test]
fn all_scenarios_with_the_interface_of_mpi_5() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libmpi_abi.so.0");
    let arguments = |command: &mut Command| {
        command.args(["-shared", "-fPIC", "tests/abi/libmpi_abi.c", "-o"]).arg(&library);
    };
    if !compile("mpicc.openmpi", "libopenmpi-dev", "tests with the interface of MPI 5", arguments) {
        return;
    }
    let variable = [("ANABRANCH_MPI_LIBRARY", library.to_str().unwrap())];
    complete_with(&OPEN_MPI, 2, "all", true, &variable);
    complete_with(&OPEN_MPI, 3, "communicators", true, &variable);
    complete_with(&OPEN_MPI, 3, "a_node_leaves_with_transfers_under_way", false, &variable);
}

#[test]
#[ignore = "needs 5 GiB of memory; a deep run"]
fn more_bytes_than_an_int_counts_with_mpi() {
    let _deadline = testing::deadline();
    complete(&OPEN_MPI, 2, "large", true);
    complete(&MPICH, 2, "large", true);
}

#[test]
fn communicators_are_made() {
    let _deadline = testing::deadline();
    complete(&OPEN_MPI, 3, "communicators", true);
    complete(&MPICH, 2, "communicators", true);
}

#[test]
fn all_ends_with_open_mpi() {
    let _deadline = testing::deadline();
    for end in ENDS {
        complete(&OPEN_MPI, 3, end.name, false);
    }
}

#[test]
fn all_ends_with_mpich() {
    let _deadline = testing::deadline();
    for end in ENDS {
        complete(&MPICH, 2, end.name, false);
    }
}

#[test]
fn a_stopped_process_is_named_by_all_others() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(&OPEN_MPI, 3, "stopped", folder.path(), &[]) else { return };
    let text = text(&output);
    assert!(!output.status.success());
    for node in ["0", "2"] {
        let error = fs::read_to_string(folder.path().join(node)).expect(&text);
        assert!(error.starts_with("node 1 has not answered for "), "{error}");
    }
    assert_eq!(notes(folder.path()), 2);
}

#[test]
fn one_process_of_mpirun_runs_alone() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(&OPEN_MPI, 1, "connect", folder.path(), &[]) else { return };
    assert!(text(&output).contains("alone"), "{}", text(&output));
    let variables = [("ANABRANCH_TRANSPORT", "mpi")];
    let output = run(&OPEN_MPI, 1, "connect", folder.path(), &variables).unwrap();
    assert!(text(&output).contains("node 0 of 1"), "{}", text(&output));
}

#[test]
fn processes_without_a_usable_library_are_an_error_and_never_alone() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let variables = [("ANABRANCH_MPI_LIBRARY", "libno-such-mpi.so")];
    let Some(output) = run(&OPEN_MPI, 2, "connect", folder.path(), &variables) else { return };
    let text_of = text(&output);
    assert_eq!(
        text_of.matches("started this program as one of 2 processes, but no MPI library was found").count(),
        2,
        "{text_of}"
    );
    // A library of another kind.
    let variables = [("ANABRANCH_MPI_LIBRARY", "libc.so.6")];
    let output = run(&OPEN_MPI, 2, "connect", folder.path(), &variables).unwrap();
    assert_eq!(text(&output).matches("it has no MPI_Get_library_version").count(), 2, "{}", text(&output));
    // MPICH under the launcher of Open MPI.
    let variables = [("ANABRANCH_MPI_LIBRARY", "libmpich.so.12")];
    let output = run(&OPEN_MPI, 2, "connect", folder.path(), &variables).unwrap();
    let text_of = text(&output);
    let other = "started 2 processes, but libmpich.so.12 sees 1";
    assert!(text_of.matches(other).count() == 2 || text_of.contains("no MPI library was found"), "{text_of}");
}

#[test]
fn nothing_of_mpi_is_linked() {
    let _deadline = testing::deadline();
    testing::mpi::assert_nothing_is_linked(&env::current_exe().unwrap());
}
