//! How much memory a stream of tasks takes, in a process of its own: this program, started with [`WORD`] as first
//! argument.

use std::{
    env, fs,
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use crate::{
    harness::Failure,
    rows::tasks::{Kind, Shape, Stage},
};

/// The first argument that turns this program into the measured one; then come the numbers of tasks and threads.
const WORD: &str = "run-stream-of-tasks";

/// Every so many tasks one sleeps, so that submission runs ahead as far as it is allowed to.
const SLEEPER: usize = 100_000;
const SLEEP: Duration = Duration::from_millis(200);

/// Measures and nothing else if this process was started for that.
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

/// The bytes of resident memory by which the largest amount while `tasks` tasks are submitted, one after the other and
/// without a wait, exceeds the amount before.
///
/// # Errors
/// If it cannot be measured.
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

/// A wavefront, the shape with the most dependencies.
fn stream(tasks: usize, threads: usize) -> Result<u64, Failure> {
    let stage = Stage::new(threads)?;
    let before = resident("VmRSS:")?;
    for number in 0..tasks {
        let sleeps = number % SLEEPER == 0;
        let act = move || {
            if sleeps {
                thread::sleep(SLEEP)
            }
        };
        stage.submit(Shape::Wavefront, Kind::Host, number, act)?;
    }
    let peak = resident("VmHWM:")?;
    stage.run(Shape::Independent, Kind::Host, 0)?;
    Ok(peak.saturating_sub(before))
}

/// Bytes of resident memory: now (`VmRSS:`) or at most so far (`VmHWM:`).
fn resident(field: &str) -> Result<u64, Failure> {
    let untold = || format!("this system does not tell a process's {field}");
    let status = fs::read_to_string("/proc/self/status").map_err(|_| untold())?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).ok_or_else(untold)?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_used_is_seen() {
        let before = resident("VmRSS:").unwrap();
        let used = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(resident("VmHWM:").unwrap() >= before + (used.len() as u64) * 9 / 10);
    }
}
