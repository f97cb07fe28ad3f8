//! While a process writes a file, a second process may read it and not write it.
#![cfg(unix)]

use anabranch_store::{FileOptions, Holder, Reader, Stamp, StoreError, Writer};
use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};
use testing::deadline;

/// Set in the child: the folder of its file.
const TASK: &str = "ANABRANCH_STORE_LOCK_TASK";

fn options(path: &Path) -> FileOptions {
    FileOptions::new(path).frames(4).frame_shape(&[3, 5])
}

fn append(writer: &mut Writer<f32>, frames: u64) {
    for _ in 0..frames {
        writer.append(&[writer.next_frame() as f32; 15], Stamp::default()).unwrap();
    }
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn assert_busy(result: Result<Writer<f32>, StoreError>, process: u32) {
    let error = result.expect_err("the file has two writers");
    let text = error.to_string();
    let StoreError::Busy { holder: Some(Holder { process: holder, host }), .. } = error else {
        panic!("{error}")
    };
    assert_eq!(holder, process);
    for part in ["out.h5 is being written by process", &process.to_string(), &host, "wait until it ends"] {
        assert!(!part.is_empty() && text.contains(part), "{part:?} is not in {text:?}");
    }
}

/// Waits for a file that another process makes, and calls `check` meanwhile.
fn await_file(path: &Path, mut check: impl FnMut()) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_secs(100), "there is no {}", path.display());
        check();
        sleep(Duration::from_millis(1));
    }
}

/// The child: writes two frames, changes its working directory, and finishes its file on request.
fn write(folder: &Path) {
    std::env::set_current_dir(folder).unwrap();
    let mut writer = options(Path::new("out.h5")).create::<f32>().unwrap();
    append(&mut writer, 2);
    std::env::set_current_dir("/").unwrap();
    fs::write(folder.join("ready"), "").unwrap();
    await_file(&folder.join("stop"), || {});
    append(&mut writer, 2);
    writer.finish().unwrap();
}

/// Starts a child, which runs the test again, and waits until it has the lock.
fn start_child(folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["a_second_process_is_refused_until_the_first_one_ends", "--exact", "--test-threads=1"])
        .env(TASK, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    await_file(&folder.join("ready"), || assert_eq!(child.try_wait().unwrap(), None, "the child has ended"));
    child
}

// One test, since a process that is started while another thread has HDF5 files open inherits their locks.
#[test]
fn a_second_process_is_refused_until_the_first_one_ends() {
    let _deadline = deadline();
    if let Some(folder) = std::env::var_os(TASK) {
        return write(Path::new(&folder));
    }
    a_second_process_is_refused_with_the_first_and_may_read();
    the_lock_of_a_killed_process_holds_nothing_back();
}

fn a_second_process_is_refused_with_the_first_and_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let mut child = start_child(folder.path());
    assert_busy(options(&path).create(), child.id());
    assert_busy(options(&path).force(true).create(), child.id());
    assert_busy(options(&path).resume(1), child.id());
    assert_eq!(Reader::open(&path).unwrap().stored_frames().unwrap(), 2);
    // HDF5 with its own locks.
    let file = hdf5::File::open(&path).unwrap();
    assert_eq!(file.dataset("stored_frames").unwrap().read_scalar::<u64>().unwrap(), 2);
    drop(file);

    fs::write(folder.path().join("stop"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(options(&path).resume::<f32>(4).unwrap().finish().unwrap().is_complete());
    assert_eq!(names(folder.path()), ["out.h5", "ready", "stop"]);
}

fn the_lock_of_a_killed_process_holds_nothing_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    for force in [false, true] {
        let mut child = start_child(folder.path());
        assert_busy(options(&path).resume(2), child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        let mut writer =
            if force { options(&path).force(true).create() } else { options(&path).resume(2) }.unwrap();
        let rest = writer.frames() - writer.next_frame();
        append(&mut writer, rest);
        assert!(writer.finish().unwrap().is_complete());
        assert_eq!(names(folder.path()), ["out.h5", "ready"]);
        fs::remove_file(&path).unwrap();
        fs::remove_file(folder.path().join("ready")).unwrap();
    }
}
