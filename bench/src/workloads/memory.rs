//! The memory that a stream of tasks takes.
//!
//! It is measured in a process of its own: this program, started with [`WORD`] as its first argument.

use std::{
    env, fs,
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use super::empty_tasks::{EmptyTasks, Kind, Shape};
use crate::harness::Failure;

/// The first argument that makes this program the measured one. The numbers of tasks and threads follow.
const WORD: &str = "run-stream-of-tasks";

/// Every task whose number is a multiple of this sleeps, so that submission runs ahead as far as the limit of
/// tasks in flight permits.
const SLEEPER: usize = 100_000;
const SLEEP: Duration = Duration::from_millis(200);

/// If this process was started to measure, does so and returns its exit code.
pub fn run_if_asked() -> Option<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [word, tasks, threads] = arguments.as_slice() else { return None };
    if word != WORD {
        return None;
    }
    let added = || -> Result<u64, Failure> { stream(tasks.parse()?, threads.parse()?) };
    Some(match added() {
        Ok(bytes) => {
            println!("{bytes}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

/// Submits `tasks` tasks without a wait, and returns the growth in bytes from the resident memory before to
/// its peak.
///
/// # Errors
/// If the memory cannot be measured.
pub fn added_by(tasks: usize, threads: usize) -> Result<f64, Failure> {
    let output = Command::new(env::current_exe()?)
        .args([WORD, &tasks.to_string(), &threads.to_string()])
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Submits a wavefront, the shape with the most dependencies, and returns the bytes that it added.
fn stream(tasks: usize, threads: usize) -> Result<u64, Failure> {
    let stream = EmptyTasks::new(threads)?;
    let before = resident("VmRSS:")?;
    for number in 0..tasks {
        let sleeps = number % SLEEPER == 0;
        let act = move || {
            if sleeps {
                thread::sleep(SLEEP)
            }
        };
        stream.submit(Shape::Wavefront, Kind::Host, number, act)?;
    }
    let peak = resident("VmHWM:")?;
    stream.run(Shape::Independent, Kind::Host, 0)?;
    Ok(peak.saturating_sub(before))
}

/// Bytes of resident memory: the current amount (`VmRSS:`) or the peak (`VmHWM:`).
fn resident(field: &str) -> Result<u64, Failure> {
    let unknown = || format!("this system does not report the {field} of a process");
    let status = fs::read_to_string("/proc/self/status").map_err(|_| unknown())?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).ok_or_else(unknown)?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_includes_a_new_allocation() {
        let _deadline = testing::deadline();
        let before = resident("VmRSS:").unwrap();
        let used = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(resident("VmHWM:").unwrap() >= before + (used.len() as u64) * 9 / 10);
    }
}
