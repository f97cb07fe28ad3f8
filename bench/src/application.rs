//! The `gray-scott` program as a user runs it: in a process of its own, with its statistics read back.
//!
//! This program contains it: started with [`WORD`] as first argument it is `gray-scott`. So nothing has to be built
//! or found beside it.

use std::{
    env,
    ffi::OsString,
    fs,
    process::{Command, ExitCode, Stdio},
};

use clap::Parser;
use serde::Deserialize;

use crate::harness::Failure;

/// The first argument that turns this program into `gray-scott`.
const WORD: &str = "run-gray-scott";

/// What is read of the program's `--stats-json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Stats {
    /// From the start of the program to its end.
    pub seconds_total: f64,
    /// Compute time per cell and step.
    pub ns_per_cell_step: f64,
    /// The largest memory that it had in use, where the system tells.
    pub peak_rss_bytes: Option<u64>,
    /// Frames in the file.
    pub stored_frames: u64,
    /// What the storage side did, if anything was stored.
    pub storage: Option<Storage>,
}

/// What is read of the storage side's.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Storage {
    /// Bytes of frames that were copied in memory on their way to the file.
    pub bytes_copied: u64,
}

/// Runs `gray-scott` and nothing else if this process was started for that.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1).peekable();
    if arguments.peek()? != WORD {
        return None;
    }
    Some(match gray_scott::run(&gray_scott::options::Cli::parse_from(arguments)) {
        Ok(outcome) => ExitCode::from(outcome.exit_status()),
        Err(error) => {
            eprintln!("error: {}", gray_scott::error::describe(&error));
            ExitCode::from(error.exit_status())
        }
    })
}

/// `gray-scott simulate` with these arguments.
///
/// # Errors
/// If it fails, with what it says.
pub fn simulate<I: Into<OsString>>(arguments: impl IntoIterator<Item = I>) -> Result<Stats, Failure> {
    let folder = tempfile::tempdir()?;
    let stats = folder.path().join("stats.json");
    let output = Command::new(env::current_exe()?)
        .args([WORD, "simulate", "--quiet", "--stats-json"])
        .arg(&stats)
        .args(arguments.into_iter().map(Into::into))
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("gray-scott simulate failed ({}): {}", output.status, said.trim()).into());
    }
    Ok(serde_json::from_str(&fs::read_to_string(&stats)?)?)
}
