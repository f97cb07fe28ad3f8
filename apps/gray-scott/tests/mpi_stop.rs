//! Runs on several nodes that are stopped or killed: what counts is complete, and they go on with another
//! number of nodes.

#![cfg(target_os = "linux")]

mod common;

use anabranch_store::Reader;
use common::{
    folder, frames,
    nodes::{signal, start},
    succeed, wait_for_frames, wait_until,
};
use gray_scott::files::checkpoint;
use std::{fs, path::Path, process::Output};
use testing::deadline;

/// A run that takes a second or more.
const LONG: &str = "simulate -r 49 -c 40 -n 360 -e 100 --edges periodic --noise 4";

fn text(output: &Output) -> String {
    testing::mpi::text(output)
}

fn stored(path: &Path) -> u64 {
    Reader::open(path).unwrap().stored_frames().unwrap()
}

/// Every counted frame is that of the whole run.
fn assert_complete(path: &Path, whole: &[Vec<f32>]) {
    let reader = Reader::open(path).unwrap();
    for frame in 0..reader.stored_frames().unwrap() {
        let found = reader.read_frame::<f32>(frame).unwrap();
        assert!(found.as_slice().unwrap() == &whole[frame as usize][..], "frame {frame}");
    }
}

#[test]
fn a_signal_to_one_node_or_to_all_stops_the_run_and_other_numbers_of_nodes_go_on() {
    let _deadline = deadline();
    let folder = folder();
    let path = folder.path().join("run.h5");
    // Node 2 alone gets the signal.
    let Some(run) = start(3, folder.path(), &format!("{LONG} -o run.h5")) else { return };
    wait_for_frames(&path, 2);
    signal(run.process(2), "INT");
    let output = run.wait();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(said.matches("Stopped with ").count(), 1, "{said}");
    assert!(said.contains("To go on: ") && said.contains(" simulate --resume -o run.h5"), "{said}");
    let (first, state) = (stored(&path), checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap());
    assert!((2..360).contains(&first) && state.step / 100 == first, "{} steps, {first} frames", state.step);

    // All nodes get it, not at the same time.
    let run = start(2, folder.path(), "simulate --resume -o run.h5").unwrap();
    wait_for_frames(&path, first + 2);
    let processes = [1, 0].map(|node| run.process(node));
    processes.iter().for_each(|&process| signal(process, "TERM"));
    let output = run.wait();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(stored(&path) >= first + 2);

    // One process completes the run, and several extend it.
    succeed(folder.path(), "simulate -q --resume -o run.h5 -j 2");
    succeed(folder.path(), &format!("{LONG} -q -o whole.h5"));
    assert_eq!(frames(path.clone()), frames(folder.path().join("whole.h5")));
    assert!(fs::read(&path).unwrap() == fs::read(folder.path().join("whole.h5")).unwrap());
}

#[test]
fn a_killed_node_leaves_a_valid_file_and_the_run_goes_on_from_its_checkpoint() {
    let _deadline = deadline();
    let folder = folder();
    let path = folder.path().join("run.h5");
    succeed(folder.path(), &format!("{LONG} -q -o whole.h5"));
    let whole = frames(folder.path().join("whole.h5"));
    for (node, sync) in [(1, "none"), (0, "frame"), (2, "end")] {
        let args = format!("{LONG} --force --checkpoint-every 2 --sync {sync} -o run.h5");
        let _ = fs::remove_file(&path);
        let Some(run) = start(3, folder.path(), &args) else { return };
        wait_for_frames(&path, 3);
        wait_until(|| checkpoint::path_of(&path).exists());
        signal(run.process(node), "KILL");
        let output = run.wait();
        assert!(!output.status.success(), "{}", text(&output));
        assert!(stored(&path) >= 3);
        assert_complete(&path, &whole);
        let saved = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
        assert!(saved.step > 0 && saved.step.is_multiple_of(200));
    }
    // One process, from a checkpoint that three nodes have written.
    let said = succeed(folder.path(), "simulate --resume -o run.h5");
    assert!(!said.contains("no checkpoint") && !said.contains("from step 0"), "{said}");
    assert_eq!(frames(path), whole);
}

#[test]
fn a_run_is_extended_on_nodes_and_its_checkpoints_are_those_of_one_process() {
    let _deadline = deadline();
    let folder = folder();
    let base = "-r 13 -c 20 -e 7 --noise 2 --checkpoint-every 2";
    let part = |file: &str| fs::read(folder.path().join(file)).unwrap();
    let Some(run) = start(4, folder.path(), &format!("simulate {base} -n 5 -o nodes.h5")) else { return };
    let output = run.wait();
    assert!(output.status.success(), "{}", text(&output));
    succeed(folder.path(), &format!("simulate -q {base} -n 5 -o one.h5"));
    assert!(part("nodes.h5.checkpoint") == part("one.h5.checkpoint"));

    let args = "simulate --resume --frames 9 --checkpoint-every 2 -o nodes.h5";
    let output = start(3, folder.path(), args).unwrap().wait();
    let said = text(&output);
    assert!(output.status.success() && said.matches("Extending nodes.h5").count() == 1, "{said}");
    succeed(folder.path(), "simulate -q --resume --frames 9 --checkpoint-every 2 -o one.h5");
    assert!(part("nodes.h5") == part("one.h5") && part("nodes.h5.checkpoint") == part("one.h5.checkpoint"));
    let output = start(2, folder.path(), "simulate --resume -o nodes.h5").unwrap().wait();
    let said = text(&output);
    assert!(output.status.success() && said.matches("nothing is left to do").count() == 1, "{said}");
}
