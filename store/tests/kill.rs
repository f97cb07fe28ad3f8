//! `kill -9` at any moment leaves a valid file with every counted frame in it.
#![cfg(unix)]

use anabranch_store::{FileOptions, Reader, Stamp};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const FRAMES: u64 = 4000;
const SHAPE: [usize; 2] = [40, 70];
const LEN: usize = 40 * 70;
/// Tells the child to run: the compression level (0 for none) and the file.
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

/// The child: writes frames until it is killed. Does nothing as an ordinary test.
#[test]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
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

/// Starts a child, waits until the file appears and then for `time`, and kills the child.
fn write_and_kill(path: &Path, level: u8, time: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--test-threads=1"])
        .env(TASK, format!("{level} {}", path.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !path.exists() && began.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
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

fn assert_survives(level: u8, rounds: u32) {
    let folder = tempfile::tempdir().unwrap();
    let mut counts = Vec::new();
    let mut seed = 1_u64;
    for round in 0..rounds {
        let path = folder.path().join(format!("{round}.h5"));
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        write_and_kill(&path, level, Duration::from_micros((seed >> 33) % 40_000));
        let stored = check(&path);
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
    assert_survives(0, 8);
}

#[test]
fn compressed_files_survive() {
    assert_survives(1, 8);
}
