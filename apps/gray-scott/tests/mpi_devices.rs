//! `mpirun gray-scott simulate --device`: the file of one process on the same device, and errors that all
//! nodes have.
#![cfg(all(target_os = "linux", feature = "gpu"))]

mod common;

use anabranch_store::Reader;
use common::{
    devices::{assert_near, device},
    fail, folder, frames,
    nodes::{signal, start},
    succeed, wait_for_frames,
};
use gray_scott::files::checkpoint;
use std::{fs, path::Path};
use testing::{deadline, mpi::text};

/// Runs the program on nodes in `folder` to its end: its exit status, and what it has printed. `None` if
/// there is no MPI.
fn run(nodes: u16, folder: &Path, args: &str) -> Option<(i32, String)> {
    let output = start(nodes, folder, args)?.wait();
    Some((output.status.code().unwrap_or(-1), text(&output)))
}

#[test]
fn the_file_is_that_of_one_process_on_the_same_device() {
    let _deadline = deadline();
    let Some(device) = device() else { return };
    let folder = folder();
    for (nodes, args, steps) in [
        (2, "-r 70 -c 33 -n 4 -e 17 --edges periodic --noise 3 --preset mazes", 17),
        (3, "-r 50 -c 40 -n 3 -e 34 --edges clamped --noise 1 -i 0", 34),
        // More nodes than rows; and a compressed file, whose frames node 0 gathers.
        (4, "-r 3 -c 20 -n 5 -e 3 --sync frame", 3),
        (3, "-r 13 -c 20 -n 5 -e 9 --noise 7 --compress 3", 9),
        (2, "-r 64 -c 64 -n 4 -e 5 --check-finite=false", 5),
    ] {
        let on_nodes =
            format!("simulate {args} --device {device} --force -o nodes.h5 --stats-json stats.json");
        let Some((status, said)) = run(nodes, folder.path(), &on_nodes) else { return };
        assert_eq!(status, 0, "{said}");
        assert_eq!(said.matches("frames in ").count(), 1, "node 0 alone prints: {said}");
        assert!(said.contains(&format!("on {nodes} nodes with {device}")), "{said}");
        succeed(folder.path(), &format!("simulate -q {args} --device {device} --force -o one.h5 -j 2"));
        succeed(folder.path(), &format!("simulate -q {args} --force -o host.h5 -j 2"));
        let [on_nodes, by_one, host] = ["nodes.h5", "one.h5", "host.h5"].map(|file| folder.path().join(file));
        assert!(fs::read(&on_nodes).unwrap() == fs::read(&by_one).unwrap(), "{args} on {nodes} nodes");
        assert_near(&on_nodes, &host, steps);
        let stats: serde_json::Value =
            serde_json::from_slice(&fs::read(folder.path().join("stats.json")).unwrap()).unwrap();
        assert_eq!(stats["stored_frames"], stats["frames"], "{stats}");
        assert!(stats["device"].as_str().unwrap().starts_with(&device), "{stats}");
    }
}

#[test]
fn a_signal_to_one_node_stops_the_run_and_other_numbers_of_nodes_go_on_with_the_same_bits() {
    let _deadline = deadline();
    let Some(device) = device() else { return };
    let folder = folder();
    let path = folder.path().join("run.h5");
    let long = format!("simulate -r 49 -c 40 -n 200 -e 40 --edges periodic --noise 4 --device {device}");
    let Some(run_of_3) = start(3, folder.path(), &format!("{long} -o run.h5")) else { return };
    wait_for_frames(&path, 2);
    signal(run_of_3.process(2), "INT");
    let output = run_of_3.wait();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(said.matches("Stopped with ").count(), 1, "{said}");
    let first = Reader::open(&path).unwrap().stored_frames().unwrap();
    let state = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
    assert!((2..200).contains(&first) && state.step / 40 == first, "{} steps, {first} frames", state.step);

    let run_of_2 =
        start(2, folder.path(), &format!("simulate --resume -o run.h5 --device {device}")).unwrap();
    wait_for_frames(&path, first + 2);
    signal(run_of_2.process(0), "TERM");
    let output = run_of_2.wait();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));

    // One process completes the run.
    succeed(folder.path(), &format!("simulate -q --resume -o run.h5 --device {device}"));
    succeed(folder.path(), &format!("{long} -q -o whole.h5"));
    assert!(frames(path) == frames(folder.path().join("whole.h5")));
}

#[test]
fn a_frame_that_is_not_finite_ends_the_run_at_the_place_that_one_process_finds() {
    let _deadline = deadline();
    let Some(device) = device() else { return };
    let folder = folder();
    let args = format!("simulate -r 60 -c 20 -n 50 -e 1 --dt 60 --noise 1 -o run.h5 --device {device}");
    let Some((status, said)) = run(3, folder.path(), &args) else { return };
    assert_ne!(status, 0, "{said}");
    let alone = fail(folder.path(), &format!("{args} --force"), 1);
    let error = alone.lines().find_map(|line| line.strip_prefix("error: U or V is not finite")).unwrap();
    let place = error.split(": the run ends").next().unwrap();
    assert!(place.starts_with(" in row ") && said.contains(place), "{place} in {said}");
}

#[test]
fn a_device_that_is_not_there_is_one_error_of_all_nodes_before_anything_is_written() {
    let _deadline = deadline();
    let folder = folder();
    let largest = device().map(|device| {
        let adapters = anabranch_gpu::adapters();
        let found = adapters.into_iter().find(|adapter| adapter.info.name.starts_with(&device)).unwrap();
        let rows = found.info.largest_buffer / 4000 + 1;
        (format!("-r {rows} -c 1000 --device {device}"), format!("a grid of {rows} × 1000 cells"))
    });
    // On all nodes, on the last of them, and on that one another place than on the others.
    let no_such = |options: String| (options, "--device no-such: no ".to_owned());
    let on_last = format!("--device host : -n 1 {} simulate -n 1 --device", env!("CARGO_BIN_EXE_gray-scott"));
    let differ = device().map(|device| {
        let why = "--device host: node 2 is to compute on a device, and node 0 on its processor";
        (format!("{on_last} {device}"), why.to_owned())
    });
    let cases = [no_such("--device no-such".into()), no_such(format!("{on_last} no-such"))];
    for (options, why) in cases.into_iter().chain(differ).chain(largest) {
        let args = format!("simulate -n 1 {options}");
        let Some((status, said)) = run(2, folder.path(), &args) else { return };
        assert!(status != 0 && said.matches(&why).count() == 1, "{args}: {said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{args} leaves a file");
    }
}

#[test]
fn auto_computes_on_the_processors_if_a_node_has_no_gpu() {
    let _deadline = deadline();
    let folder = folder();
    let args = "simulate --no-output -r 8 -c 9 -n 1 --device auto";
    let Some((status, said)) = run(2, folder.path(), args) else { return };
    assert_eq!(status, 0, "{said}");
    let why = anabranch_gpu::why_no_gpu();
    assert_eq!(said.matches("Computing on the processor: ").count(), usize::from(why.is_some()), "{said}");
    assert_eq!(said.contains("2 nodes of 1 thread"), why.is_some(), "{said}");
}
