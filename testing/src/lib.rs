//! What the tests of all crates share: a [`deadline`] for each test that waits for another thread or for a
//! child process.

#![deny(unsafe_code)]

#[cfg(unix)]
pub mod fork;
pub mod mpi;
#[cfg(target_os = "linux")]
pub mod threads;

use std::{
    env, fs,
    io::{self, Write as _},
    panic::Location,
    process::{self, Command},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

/// How long a test may take, in seconds, unless `ANABRANCH_TEST_SECONDS` says otherwise.
const SECONDS: f64 = 300.0;

/// The deadline of a test. It ends with this guard.
#[derive(Debug)]
#[must_use = "the deadline ends with this guard"]
pub struct Deadline {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Begins the deadline of the test that calls this in its first line. If the test does not end in five
/// minutes, or in as many seconds as `ANABRANCH_TEST_SECONDS` says, a message names it, and the process and
/// its child processes are ended.
///
/// ```
/// let _deadline = testing::deadline();
/// std::thread::spawn(|| ()).join().unwrap();
/// ```
///
/// # Panics
/// If `ANABRANCH_TEST_SECONDS` is not a number of seconds, or if no thread can be started.
#[track_caller]
pub fn deadline() -> Deadline {
    let limit = limit();
    // The test harness names the thread of a test after the test, unless it runs one test after the other.
    let place = Location::caller();
    let test = thread::current().name().unwrap_or("a test").to_string();
    let (end, ended) = mpsc::channel();
    let watch = move || {
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            // Not `eprintln!`, which the test harness may capture.
            let _ = writeln!(
                io::stderr(),
                "\nerror: the test {test} hangs: it has not ended within {} seconds. It begins at {place}. \
                 ANABRANCH_TEST_SECONDS permits more.",
                limit.as_secs_f64()
            );
            kill_children();
            process::abort();
        }
    };
    let thread =
        thread::Builder::new().name("deadline".into()).spawn(watch).expect("a thread can be started");
    Deadline { end: Some(end), thread: Some(thread) }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        drop(self.end.take());
        // So that tests that look at the threads and the memory of the process find none of an earlier test.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// How long a test may take: five minutes, or as many seconds as `ANABRANCH_TEST_SECONDS` says.
///
/// # Panics
/// If `ANABRANCH_TEST_SECONDS` is not a number of seconds.
pub fn limit() -> Duration {
    let Some(text) = env::var_os("ANABRANCH_TEST_SECONDS") else { return Duration::from_secs_f64(SECONDS) };
    let seconds = text.to_str().and_then(|text| text.parse().ok());
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.unwrap_or_else(|| panic!("ANABRANCH_TEST_SECONDS is {text:?}, but must be a number of seconds"))
}

/// Ends the child processes of this process. They would keep its output open, and run on.
fn kill_children() {
    let own = process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        // `pid (name) state parent …`, where the name may contain anything.
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
        let parent = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(1));
        if parent == Some(&own) {
            let _ = Command::new("kill").arg("-KILL").arg(process.file_name()).status();
        }
    }
}
