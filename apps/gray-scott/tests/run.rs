//! Whole runs of the program: frames are stored, survive an interruption or a kill, and are continued bit for
//! bit.

use anabranch_store::Reader;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Starts the program in `folder`.
fn start(folder: &Path, args: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gray-scott"));
    command.args(args.split_whitespace()).current_dir(folder);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Runs the program in `folder` to its end.
fn run(folder: &Path, args: &str) -> Output {
    start(folder, args).wait_with_output().expect("the program ends")
}

/// Runs the program, which must succeed, and returns its standard error.
fn succeed(folder: &Path, args: &str) -> String {
    let output = run(folder, args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args}: {text}");
    text
}

/// Runs the program, which must fail with this status, and returns its standard error.
fn fail(folder: &Path, args: &str, status: i32) -> String {
    let output = run(folder, args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{args}: {text}");
    assert!(text.contains("error: "), "{text}");
    text
}

/// All frames of a complete file.
fn frames(path: PathBuf) -> Vec<Vec<f32>> {
    let reader = Reader::open(path).unwrap();
    assert!(reader.is_complete().unwrap());
    (0..reader.frames()).map(|i| reader.read_frame(i).unwrap().into_raw_vec_and_offset().0).collect()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn any_size_is_simulated_stored_and_described() {
    let folder = folder();
    for (rows, cols) in [(1, 1), (7, 5), (3, 200), (130, 2)] {
        let text = succeed(folder.path(), &format!("simulate -r {rows} -c {cols} -n 3 -e 5 --force"));
        assert!(text.contains("3 frames in ") && text.contains(" render output.h5"), "{text}");
        let frames = frames(folder.path().join("output.h5"));
        assert_eq!((frames.len(), frames[2].len()), (3, rows * cols));
        let info = run(folder.path(), "info output.h5");
        assert!(String::from_utf8_lossy(&info.stdout).contains("3 of 3 stored: complete"));
    }
}

#[test]
fn the_result_does_not_depend_on_threads_queue_or_compression() {
    let folder = folder();
    let base = "simulate -q -r 40 -c 33 -n 4 -e 9 --edges periodic --noise 3 --preset mazes";
    succeed(folder.path(), &format!("{base} -o a.h5 -j 1"));
    succeed(folder.path(), &format!("{base} -o b.h5 -j 8 -i 0 --sync frame"));
    succeed(folder.path(), &format!("{base} -o c.h5 -j 3 --compress 3 --checkpoint-every 1"));
    let a = frames(folder.path().join("a.h5"));
    assert_eq!(a, frames(folder.path().join("b.h5")));
    assert_eq!(a, frames(folder.path().join("c.h5")));
}

#[test]
fn statistics_are_one_json_object() {
    let folder = folder();
    succeed(folder.path(), "simulate -q -r 20 -c 30 -n 4 -e 3 -j 2 --stats-json stats.json");
    let text = fs::read(folder.path().join("stats.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    for (name, value) in [("rows", 20), ("cols", 30), ("steps", 12), ("frames", 4), ("threads", 2)] {
        assert_eq!(json[name], value, "{name}");
    }
    assert_eq!((&json["stored_frames"], &json["bytes_written"]), (&4.into(), &(4 * 20 * 30 * 4).into()));
    assert!(json["ns_per_cell_step"].as_f64().unwrap() > 0.0);
}

#[test]
fn without_output_nothing_is_written() {
    let folder = folder();
    let text = succeed(folder.path(), "simulate --no-output -r 20 -c 30 -n 4");
    assert!(text.contains("nothing was stored"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_quiet_run_prints_nothing() {
    let folder = folder();
    let output = run(folder.path(), "simulate -q -r 9 -c 9 -n 2");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn an_existing_file_is_kept_unless_forced() {
    let folder = folder();
    fs::write(folder.path().join("output.h5"), "precious").unwrap();
    let text = fail(folder.path(), "simulate -r 9 -c 9 -n 2", 1);
    assert!(text.contains("output.h5 exists already: use --force"), "{text}");
    assert_eq!(fs::read(folder.path().join("output.h5")).unwrap(), b"precious");
    succeed(folder.path(), "simulate -r 9 -c 9 -n 2 --force");
    assert_eq!(frames(folder.path().join("output.h5")).len(), 2);
}

#[test]
fn output_that_cannot_be_written_is_refused_before_the_start() {
    let folder = folder();
    let text = fail(folder.path(), "simulate -n 1000000000000", 1);
    assert!(text.contains("need 8.29 EB, and the file system has "), "{text}");
    let text = fail(folder.path(), "simulate -r 9 -c 9 -o no/such/folder/x.h5", 1);
    assert!(text.contains("no/such/folder does not exist"), "{text}");
    let text = fail(folder.path(), "simulate -r 1000000000 -c 1000000000 -n 1000000", 2);
    assert!(text.contains("--rows"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_run_is_resumed_with_the_parameters_of_its_file() {
    let folder = folder();
    let text = fail(folder.path(), "simulate --resume -o none.h5", 1);
    assert!(text.contains("none.h5"), "{text}");
    succeed(folder.path(), "simulate -q -r 9 -c 9 -n 2 --feed 0.03");
    let text = fail(folder.path(), "simulate --resume --feed 0.02", 2);
    assert!(text.contains("was made with --feed 0.03, not 0.02"), "{text}");
    assert!(succeed(folder.path(), "simulate --resume").contains("complete: nothing is left to do"));
}

#[test]
fn frames_become_pictures_and_animations() {
    let folder = folder();
    succeed(folder.path(), "simulate -q -r 30 -c 50 -n 12 -e 4");
    succeed(folder.path(), "render -q output.h5 --every 5 --scale 2");
    let mut names: Vec<_> =
        fs::read_dir(folder.path().join("frames")).unwrap().map(|f| f.unwrap().path()).collect();
    names.sort();
    assert_eq!(names, ["0000", "0005", "0010"].map(|n| folder.path().join(format!("frames/frame-{n}.png"))));
    let decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(&names[0]).unwrap()));
    assert_eq!(decoder.read_info().unwrap().info().size(), (100, 60));
    for name in ["a.gif", "a.png"] {
        succeed(folder.path(), &format!("render -q output.h5 -j 3 --animation {name}"));
        assert!(fs::metadata(folder.path().join(name)).unwrap().len() > 1000);
    }
    let text = fail(folder.path(), "render output.h5 --last 12", 2);
    assert!(text.contains("--last 12") && text.contains("frames 0 to 11"), "{text}");
}

/// Sends a signal to a run.
#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits until this many frames are stored in a file that is being written.
#[cfg(unix)]
fn wait_for_frames(path: &Path, frames: u64) {
    let began = Instant::now();
    while Reader::open(path).and_then(|reader| reader.stored_frames()).unwrap_or(0) < frames {
        assert!(began.elapsed() < Duration::from_secs(60), "no frame was stored in time");
        sleep(Duration::from_millis(2));
    }
}

/// A run that takes a second or more, in frames of some milliseconds.
#[cfg(unix)]
const LONG: &str = "simulate -r 48 -c 40 -n 60 -e 1500 -j 1 --edges clamped --checkpoint-every 4";

#[cfg(unix)]
#[test]
fn an_interrupted_and_then_killed_run_gives_the_same_file_as_a_whole_run() {
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
    assert!(!folder.path().join("run.h5.checkpoint").exists());
}

#[cfg(unix)]
#[test]
fn a_killed_run_without_a_checkpoint_is_computed_again() {
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

#[cfg(unix)]
#[test]
fn a_second_interrupt_stops_at_once_and_leaves_a_valid_file() {
    let folder = folder();
    let path = folder.path().join("output.h5");
    let mut child = start(folder.path(), "simulate -r 600 -c 600 -n 2 -e 1000000");
    while !path.exists() {
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(200));
    signal(&child, "INT");
    sleep(Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none(), "the first interrupt lets the frame go on");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(Reader::open(&path).unwrap().stored_frames().unwrap(), 0);
}
