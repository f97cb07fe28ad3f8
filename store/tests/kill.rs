//! `kill -9` at any moment leaves a valid file with every counted frame in it.
#![cfg(unix)]

use anabranch_store::{FileOptions, Reader, Stamp};
use std::{
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use testing::deadline;

const FRAMES: u64 = 4000;
const SHAPE: [usize; 2] = [40, 70];
const LEN: usize = 40 * 70;
/// Set in the child: the compression level (0 for none) and the file.
const TASK: &str = "ANABRANCH_STORE_KILL_TASK";

fn options(path: &Path, level: u8) -> FileOptions {
    let options = FileOptions::new(path).frames(FRAMES).frame_shape(&SHAPE).stamps(true);
    options.attribute("feed", 0.014_f32).compress((level > 0).then_some(level))
}

fn frame(index: u64, data: &mut [f32]) {
    for (i, x) in data.iter_mut().enumerate() {
        *x = (index * 31 + i as u64 / 3) as f32 * 0.25;
    }
}

/// The child: writes frames until it is killed.
fn write(task: &str) {
    let (level, path) = task.split_once(' ').unwrap();
    let options = options(Path::new(path), level.parse().unwrap());
    let mut writer = options.create::<f32>().unwrap().queued(2).unwrap();
    for i in 0..FRAMES {
        let mut buffer = writer.frame().unwrap();
        frame(i, &mut buffer);
        writer.submit(buffer, Stamp { step: i, time: i as f64 }).unwrap();
    }
    writer.finish().unwrap();
}

/// Starts a child, which runs `test` again, waits until the file appears and then for `time`, and kills the
/// child. Returns whether the child was still alive.
fn write_and_kill(test: &str, path: &Path, level: u8, time: Duration) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--test-threads=1"])
        .env(TASK, format!("{level} {}", path.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    loop {
        let ended = child.try_wait().unwrap();
        if path.exists() {
            break;
        }
        assert!(ended.is_none(), "the child ended without a file: {ended:?}");
        std::thread::yield_now();
    }
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap().signal() == Some(9)
}

/// Checks every counted frame, by position and through HDF5, and returns how many there are.
fn check(path: &Path) -> u64 {
    let reader = Reader::open(path).unwrap();
    let stored = reader.stored_frames().unwrap();
    let mut expected = [0.0; LEN];
    for i in 0..stored {
        frame(i, &mut expected);
        assert!(
            reader.read_frame::<f32>(i).unwrap().as_slice().unwrap() == expected,
            "frame {i} of {stored}"
        );
        assert_eq!(reader.stamp(i).unwrap(), Some(Stamp { step: i, time: i as f64 }));
    }
    let file = hdf5::File::open(path).unwrap();
    assert_eq!(file.dataset("stored_frames").unwrap().read_scalar::<u64>().unwrap(), stored);
    let matrix = file.dataset("matrix").unwrap();
    let counted = matrix.read_slice_1d::<f32, _>((..stored as usize, 39, 69)).unwrap();
    for (i, &x) in counted.iter().enumerate() {
        frame(i as u64, &mut expected);
        assert_eq!(x, expected[LEN - 1]);
    }
    stored
}

fn assert_survives(test: &str, level: u8, rounds: u32) {
    if let Ok(task) = std::env::var(TASK) {
        return write(&task);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut counts = Vec::new();
    let mut seed = 1_u64;
    for round in 0..rounds {
        let path = folder.path().join(format!("{round}.h5"));
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let killed = write_and_kill(test, &path, level, Duration::from_micros((seed >> 33) % 40_000));
        let stored = check(&path);
        assert!(killed || stored == FRAMES, "the child ended early, with {stored} frames");
        counts.push(stored);

        let from = stored.saturating_sub(2);
        let mut writer = options(&path, level).resume::<f32>(from).unwrap();
        let mut data = [0.0; LEN];
        for i in from..(stored + 5).min(FRAMES) {
            frame(i, &mut data);
            writer.append(&data, Stamp { step: i, time: i as f64 }).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(check(&path), (stored + 5).min(FRAMES));
    }
    println!("frames stored before each kill: {counts:?}");
    assert!(counts.iter().any(|&n| n > 0 && n < FRAMES), "no kill came in the middle: {counts:?}");
}

#[test]
fn uncompressed_files_survive() {
    let _deadline = deadline();
    assert_survives("uncompressed_files_survive", 0, 8);
}

#[test]
fn compressed_files_survive() {
    let _deadline = deadline();
    assert_survives("compressed_files_survive", 1, 8);
}
