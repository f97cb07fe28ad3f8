//! `mpirun gray-scott`: the same file as by one process, and what runs in one process only.

mod common;

use common::{folder, frames, succeed};
use std::{fs, path::Path};
use testing::{
    deadline,
    mpi::{MPICH, Mpi, OPEN_MPI, text},
};

/// Runs the program on several nodes in `folder`. Returns whether it has succeeded, and what it has printed;
/// `None` if this MPI is not installed.
fn run(mpi: &Mpi, nodes: u16, folder: &Path, args: &str) -> Option<(bool, String)> {
    run_with(mpi, nodes, folder, args, ("ANABRANCH_NUM_THREADS", "2"))
}

fn run_with(
    mpi: &Mpi,
    nodes: u16,
    folder: &Path,
    args: &str,
    variable: (&str, &str),
) -> Option<(bool, String)> {
    let output = mpi.run(nodes, Path::new(env!("CARGO_BIN_EXE_gray-scott")), |command| {
        command.args(args.split_whitespace()).current_dir(folder).env(variable.0, variable.1);
    })?;
    Some((output.status.success(), text(&output)))
}

fn same_file(mpi: &Mpi, nodes: u16, args: &str) {
    let folder = folder();
    let run = run(mpi, nodes, folder.path(), &format!("simulate {args} -o nodes.h5 --stats-json stats.json"));
    let Some((success, text)) = run else { return };
    assert!(success, "{text}");
    assert_eq!(text.matches("frames in ").count(), 1, "node 0 alone prints: {text}");
    assert!(text.contains(&format!("{nodes} nodes of 2 threads")), "{text}");
    succeed(folder.path(), &format!("simulate {args} -o one.h5 -j 3"));
    let [on_nodes, by_one] = ["nodes.h5", "one.h5"].map(|file| folder.path().join(file));
    assert!(fs::read(&on_nodes).unwrap() == fs::read(&by_one).unwrap(), "{args} on {nodes} nodes");
    assert_eq!(frames(on_nodes), frames(by_one));
    let stats: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("stats.json")).unwrap()).unwrap();
    assert_eq!(stats["stored_frames"], stats["frames"], "{stats}");
}

#[test]
fn nothing_of_mpi_is_linked() {
    let _deadline = deadline();
    testing::mpi::assert_nothing_is_linked(Path::new(env!("CARGO_BIN_EXE_gray-scott")));
}

#[test]
fn the_file_is_that_of_one_process() {
    let _deadline = deadline();
    same_file(&OPEN_MPI, 2, "-r 70 -c 33 -n 6 -e 21 --edges periodic --noise 3 --preset mazes");
    same_file(&OPEN_MPI, 3, "-r 50 -c 40 -n 3 -e 40 --edges clamped --noise 1");
    // Uneven rows, and a compressed file, whose frames node 0 gathers.
    same_file(&OPEN_MPI, 4, "-r 13 -c 20 -n 5 -e 9 --noise 7 --sync frame");
    same_file(&OPEN_MPI, 3, "-r 13 -c 20 -n 5 -e 9 --noise 7 --compress 3");
    // More nodes than rows, and one frame after the other.
    same_file(&OPEN_MPI, 4, "-r 3 -c 20 -n 5 -e 3 -i 0");
    same_file(&MPICH, 2, "-r 64 -c 64 -n 4 -e 17 --check-finite=false");
}

#[test]
fn a_frame_that_is_not_finite_ends_the_run_on_all_nodes() {
    let _deadline = deadline();
    let folder = folder();
    let args = "simulate -r 60 -c 20 -n 50 -e 1 --dt 60 --noise 1 -o run.h5";
    let Some((success, text)) = run(&OPEN_MPI, 2, folder.path(), args) else { return };
    assert!(!success, "{text}");
    let alone = common::fail(folder.path(), &format!("{args} --force -j 2"), 1);
    // The value and its place are those that one process finds.
    let place = alone.split("error: ").nth(1).unwrap().split(": the run ends").next().unwrap();
    assert!(text.contains(place), "{place} in {text}");
    assert!(text.contains("frames stored"), "{text}");
}

#[test]
fn an_output_that_exists_is_an_error_of_all_nodes_before_the_run() {
    let _deadline = deadline();
    let folder = folder();
    fs::write(folder.path().join("run.h5"), "mine").unwrap();
    let Some((success, text)) = run(&OPEN_MPI, 3, folder.path(), "simulate -o run.h5") else { return };
    assert!(!success && text.contains("run.h5 exists already: use --force"), "{text}");
    assert_eq!(fs::read(folder.path().join("run.h5")).unwrap(), b"mine");
}

#[test]
fn what_runs_in_one_process_is_refused_once() {
    let _deadline = deadline();
    let cases = [
        ("bench", "bench runs in one process"),
        ("render run.h5", "render runs in one process"),
        ("simulate --rows 0", "--rows"),
        ("info none.h5", "none.h5"),
    ];
    for (args, why) in cases {
        let folder = folder();
        let Some((success, text)) = run(&OPEN_MPI, 2, folder.path(), args) else { return };
        assert!(!success && text.matches(why).count() == 1, "{args}: {text}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{args} leaves a file");
    }
}

#[test]
fn without_a_usable_mpi_nothing_is_written() {
    let _deadline = deadline();
    let folder = folder();
    let library = ("ANABRANCH_MPI_LIBRARY", "libno-such-mpi.so");
    let run = run_with(&OPEN_MPI, 2, folder.path(), "simulate -n 1 -r 4 -c 4", library);
    let Some((success, text)) = run else { return };
    assert!(!success && text.contains("no MPI library was found"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
