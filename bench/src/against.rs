//! Compares two builds of this program, to show what a change costs or gains.
//!
//! Each row is measured several times with both builds, in turns, so that a machine that becomes slower or
//! faster does so for both. Each run of a build is a process of its own. The medians and the minima of a row
//! are compared by the median over its runs.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    harness::{Context, Failure, Samples},
    report,
    row::{Direction, Row},
};

/// The environment variable that leaves out the peers. An older build that does not know it measures them
/// too.
pub const NO_PEERS: &str = "BENCH_NO_PEERS";

/// Measures `rows` with the program `other` and with this one, and prints the figures and their ratios.
/// Returns whether every row could be measured with both.
pub fn compare(other: &Path, rows: &[&Row], context: &Context, rounds: u16) -> Result<bool, Failure> {
    let this = std::env::current_exe()?;
    let head = ["benchmark", "unit", "before", "now", "ratio", "before (best)", "now (best)", "ratio"];
    let mut lines = vec![head.map(String::from)];
    for (i, row) in rows.iter().enumerate() {
        eprintln!("[{}/{}] {}", i + 1, rows.len(), row.name);
        match measure(other, &this, row, context, rounds) {
            Ok(line) => {
                eprintln!("      {} -> {} {}, ratio {}", line[2], line[3], line[1], line[4]);
                lines.push(line);
            }
            Err(failure) => eprintln!("error: {} could not be compared: {failure}", row.name),
        }
    }
    print!("{}", report::aligned(&lines));
    Ok(lines.len() == rows.len() + 1)
}

fn measure(
    other: &Path,
    this: &Path,
    row: &Row,
    context: &Context,
    rounds: u16,
) -> Result<[String; 8], Failure> {
    let (mut before, mut now) = (Figures::default(), Figures::default());
    for round in 0..rounds {
        // Neither build always runs first.
        if round % 2 == 0 {
            before.add(other, row, context)?;
            now.add(this, row, context)?;
        } else {
            now.add(this, row, context)?;
            before.add(other, row, context)?;
        }
    }
    let [medians, bests] = [(before.medians, now.medians), (before.bests, now.bests)]
        .map(|(before, now)| Some((Samples::new(before)?.median(), Samples::new(now)?.median())));
    let [(before, now), (best_before, best_now)] =
        [medians, bests].map(|pair| pair.expect("every run gives a figure"));
    let ratio = |before: f64, now: f64| format!("{:.3}", now / before);
    Ok([
        row.name.clone(),
        row.unit.into(),
        report::figure_text(before),
        report::figure_text(now),
        ratio(before, now),
        report::figure_text(best_before),
        report::figure_text(best_now),
        ratio(best_before, best_now),
    ])
}

/// The figures of one build, one of each run.
#[derive(Default)]
struct Figures {
    medians: Vec<f64>,
    bests: Vec<f64>,
}

impl Figures {
    /// Runs the row once with `program`.
    fn add(&mut self, program: &Path, row: &Row, context: &Context) -> Result<(), Failure> {
        let file = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(program);
        command.args([OsStr::new(&row.name), OsStr::new("--json"), file.path().as_os_str()]);
        command.args(["--threads", &context.threads.to_string()]).args(context.smoke.then_some("--smoke"));
        command.env(NO_PEERS, "1").stdout(Stdio::null()).stderr(Stdio::piped());
        let output =
            command.output().map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(format!("{}: {message}", program.display()).into());
        }
        let entries: serde_json::Value = serde_json::from_reader(file.as_file())?;
        let best = match row.direction {
            Direction::Lower => "ours_min",
            Direction::Higher => "ours_max",
        };
        let figure = |key: &str| {
            let missing = || format!("{} printed no {key}", program.display());
            entries[0][key].as_f64().ok_or_else(missing)
        };
        self.medians.push(figure("ours_median")?);
        self.bests.push(figure(best)?);
        Ok(())
    }
}
