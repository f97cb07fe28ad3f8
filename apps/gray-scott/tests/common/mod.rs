//! Runs of the program, for the tests.

#![allow(dead_code, reason = "every test file uses a part of this")]

#[cfg(feature = "gpu")]
pub mod devices;
#[cfg(target_os = "linux")]
pub mod nodes;

use anabranch_store::Reader;
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::Duration,
};
use tempfile::TempDir;

/// The program in `folder`, with these arguments and without settings from the environment.
pub fn program(folder: &Path, args: &str) -> Command {
    // `.ci/gpu` carries it to another machine.
    let carried = std::env::var_os("ANABRANCH_TEST_PROGRAM");
    let mut command = Command::new(carried.unwrap_or_else(|| env!("CARGO_BIN_EXE_gray-scott").into()));
    command.args(args.split_whitespace()).current_dir(folder);
    command.env_remove("ANABRANCH_NUM_THREADS").env_remove("ANABRANCH_DEVICE");
    command
}

/// Starts the program in `folder`.
pub fn start(folder: &Path, args: &str) -> Child {
    program(folder, args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Runs the program in `folder` to its end.
pub fn run(folder: &Path, args: &str) -> Output {
    start(folder, args).wait_with_output().expect("the program ends")
}

/// Runs the program, which must succeed, and returns its standard error.
pub fn succeed(folder: &Path, args: &str) -> String {
    let output = run(folder, args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args}: {text}");
    text
}

/// Runs the program, which must fail with this status, and returns its standard error.
pub fn fail(folder: &Path, args: &str, status: i32) -> String {
    let output = run(folder, args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{args}: {text}");
    assert!(text.contains("error: "), "{text}");
    text
}

/// All frames of a complete file.
pub fn frames(path: PathBuf) -> Vec<Vec<f32>> {
    let reader = Reader::open(path).unwrap();
    assert!(reader.is_complete().unwrap());
    (0..reader.frames()).map(|i| reader.read_frame(i).unwrap().into_raw_vec_and_offset().0).collect()
}

pub fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Sends a signal to a run.
#[cfg(unix)]
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

pub fn wait_until(ready: impl Fn() -> bool) {
    while !ready() {
        sleep(Duration::from_millis(2));
    }
}

/// Waits until this many frames are stored in a file that is being written.
#[cfg(unix)]
pub fn wait_for_frames(path: &Path, frames: u64) {
    let stored = || Reader::open(path).and_then(|reader| reader.stored_frames()).unwrap_or(0);
    wait_until(|| stored() >= frames);
}
