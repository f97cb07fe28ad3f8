//! Runs that are interrupted, killed or terminated, at frames and within them, and go on bit for bit.

#![cfg(unix)]

mod common;

use anabranch_store::Reader;
use common::{folder, frames, signal, start, succeed, wait_for_frames, wait_until};
use gray_scott::files::checkpoint;
use std::path::Path;
use testing::deadline;

/// A run that takes a second or more, in frames of some milliseconds.
const LONG: &str = "simulate -r 48 -c 40 -n 60 -e 1500 -j 1 --edges clamped --checkpoint-every 4";

#[test]
fn an_interrupted_and_then_killed_run_gives_the_same_file_as_a_whole_run() {
    let _deadline = deadline();
    let folder = folder();
    let path = folder.path().join("run.h5");
    succeed(folder.path(), &format!("{LONG} -q -o whole.h5"));

    let child = start(folder.path(), &format!("{LONG} -o run.h5"));
    wait_for_frames(&path, 2);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("To go on: ") && text.contains(" simulate --resume -o run.h5"), "{text}");
    let stored = Reader::open(&path).unwrap().stored_frames().unwrap();

    let mut child = start(folder.path(), "simulate --resume -o run.h5 --checkpoint-every 4");
    wait_for_frames(&path, stored + 6);
    signal(&child, "KILL");
    child.wait().unwrap();
    let reader = Reader::open(&path).unwrap();
    let survivors = reader.stored_frames().unwrap();
    assert!((stored + 6..60).contains(&survivors), "{survivors}");

    succeed(folder.path(), "simulate --resume -o run.h5");
    assert_eq!(frames(path), frames(folder.path().join("whole.h5")));
}

#[test]
fn a_killed_run_without_a_checkpoint_is_computed_again() {
    let _deadline = deadline();
    let folder = folder();
    let path = folder.path().join("output.h5");
    let mut child =
        start(folder.path(), &format!("{LONG} --checkpoint-every 0").replacen("--checkpoint-every 4", "", 1));
    wait_for_frames(&path, 2);
    signal(&child, "KILL");
    child.wait().unwrap();
    let text = succeed(folder.path(), "simulate --resume");
    assert!(text.contains("no checkpoint") && text.contains("again"), "{text}");
    assert_eq!(frames(path).len(), 60);
}

/// A run whose first frame is never complete.
const ENDLESS: &str = "simulate -r 64 -c 70 -n 2 -e 1000000000000 --noise 5";

/// The step of the checkpoint of a file.
fn checkpointed(path: &Path) -> Option<u64> {
    checkpoint::load(&checkpoint::path_of(path)).ok().flatten().map(|start| start.step)
}

#[test]
fn a_run_goes_on_from_a_checkpoint_within_a_frame_after_a_kill_and_an_interruption() {
    let _deadline = deadline();
    let folder = folder();
    let path = folder.path().join("output.h5");
    let child = start(folder.path(), &format!("{ENDLESS} --checkpoint-seconds 0.01"));
    wait_until(|| checkpointed(&path).is_some());
    signal(&child, "KILL");
    child.wait_with_output().unwrap();
    let killed = checkpointed(&path).unwrap();

    let child = start(folder.path(), "simulate --resume --checkpoint-seconds 0.01 -j 3");
    wait_until(|| checkpointed(&path) > Some(killed));
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("Stopping; Ctrl-C again stops at once"), "{text}");
    assert!(text.contains("Stopped with 0 of 2 frames stored"), "{text}");
    assert_eq!(Reader::open(&path).unwrap().stored_frames().unwrap(), 0);

    let state = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
    assert!(state.step > killed);
    succeed(folder.path(), &format!("simulate -q -r 64 -c 70 -n 1 -e {} --noise 5 -o whole.h5", state.step));
    assert!(frames(folder.path().join("whole.h5"))[0] == state.whole().unwrap().1);
}

#[test]
fn termination_stops_a_run_within_a_long_frame() {
    let _deadline = deadline();
    let folder = folder();
    let path = folder.path().join("output.h5");
    let child = start(folder.path(), &format!("{ENDLESS} --checkpoint-seconds 0.01"));
    wait_until(|| checkpointed(&path).is_some());
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_run_without_output_stops_within_a_long_frame_too() {
    let _deadline = deadline();
    let folder = folder();
    let child = start(folder.path(), &format!("{ENDLESS} --no-output"));
    // The handler of signals is installed when the process has its threads.
    let threads = format!("/proc/{}/task", child.id());
    let count = || std::fs::read_dir(&threads).map_or(0, |tasks| tasks.count());
    if cfg!(target_os = "linux") {
        wait_until(|| count() > 2);
        signal(&child, "INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    } else {
        signal(&child, "KILL");
        child.wait_with_output().unwrap();
    }
}

#[test]
fn two_signals_at_once_leave_a_valid_file() {
    let _deadline = deadline();
    let folder = folder();
    let path = folder.path().join("output.h5");
    let child = start(folder.path(), &format!("{ENDLESS} --checkpoint-seconds 0.01"));
    wait_until(|| checkpointed(&path).is_some());
    signal(&child, "STOP");
    signal(&child, "INT");
    signal(&child, "TERM");
    signal(&child, "CONT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(Reader::open(&path).unwrap().stored_frames().unwrap(), 0);
    assert!(checkpointed(&path).is_some());
}
