//! Runs the `gray-scott` program as a user does: in its own process, and reads back its statistics.
//!
//! The benchmark program contains `gray-scott`: started with [`WORD`] as its first argument, it acts as that
//! program. No other executable has to be built or found.

use std::{
    env,
    ffi::OsString,
    fs,
    process::{Command, ExitCode, Stdio},
};

use serde::Deserialize;

use super::nodes;
use crate::harness::Failure;

/// The first argument that makes this program act as `gray-scott`.
const WORD: &str = "run-gray-scott";

/// The part of the program's `--stats-json` that rows use.
#[derive(Clone, Debug, Deserialize)]
pub struct Stats {
    /// Seconds from the start of the program to its end.
    pub seconds_total: f64,
    /// The part of it before the first step.
    pub seconds_start_up: f64,
    /// The largest resident memory, where the system reports it.
    pub peak_rss_bytes: Option<u64>,
    /// The number of frames in the file.
    pub stored_frames: u64,
    /// Statistics of the storage, if the run stored anything.
    pub storage: Option<Storage>,
}

/// The part of the storage statistics that rows use.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Storage {
    /// Bytes of frames that were copied in memory on their way to the file.
    pub bytes_copied: u64,
}

/// If this process was started as `gray-scott`, runs that program and returns its exit code.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1).peekable();
    if arguments.peek()? != WORD {
        return None;
    }
    Some(gray_scott::main(arguments))
}

/// Runs `gray-scott simulate` with these arguments.
///
/// # Errors
/// If the program fails; the error contains its message.
pub fn simulate<I: Into<OsString>>(arguments: impl IntoIterator<Item = I>) -> Result<Stats, Failure> {
    simulate_by(Command::new(env::current_exe()?), arguments)
}

/// Runs `gray-scott simulate` with these arguments on several processes.
///
/// # Errors
/// If the program fails, or if `mpirun` is missing.
pub fn simulate_on<I: Into<OsString>>(
    processes: u16,
    arguments: impl IntoIterator<Item = I>,
) -> Result<Stats, Failure> {
    simulate_by(nodes::launch(processes, &env::current_exe()?), arguments)
}

/// `program` starts this program.
fn simulate_by<I: Into<OsString>>(
    mut program: Command,
    arguments: impl IntoIterator<Item = I>,
) -> Result<Stats, Failure> {
    let folder = tempfile::tempdir()?;
    let stats = folder.path().join("stats.json");
    let output = program
        .args([WORD, "simulate", "--quiet", "--stats-json"])
        .arg(&stats)
        .args(arguments.into_iter().map(Into::into))
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!("gray-scott simulate failed ({}): {}", output.status, message.trim()).into());
    }
    Ok(serde_json::from_str(&fs::read_to_string(&stats)?)?)
}
