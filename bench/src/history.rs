//! The history of a program's figures: a file with a run in each line, and the ratios of a run to the one
//! before it.
//!
//! Each line is a JSON object with the commit, the time, the circumstances and the rows of a run. Lines are
//! only ever appended. A row is compared with the newest earlier run that has it and was taken under the same
//! circumstances; other runs say nothing about it.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use crate::{
    harness::Failure,
    machine::Setting,
    report::{self, Entry},
};

/// A run: a line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Run {
    /// The commit that the program was built from, if that is known; `+` follows if the tree had other
    /// changes.
    commit: Option<String>,
    /// When the run ended, in seconds since 1970.
    seconds: u64,
    setting: Setting,
    rows: Vec<Entry>,
}

/// The runs of a file.
pub struct History {
    path: PathBuf,
    runs: Vec<Run>,
}

impl History {
    /// Reads the runs of a file. A file that does not exist has none.
    ///
    /// # Errors
    /// If the file cannot be read, or a line of it is not a run.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.map_err(|error| format!("cannot read the history {}: {error}", path.display()))?,
        };
        let run = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| {
                let (path, number) = (path.display(), number + 1);
                format!("line {number} of {path} is not a run of this program: {error}; name another file")
                    .into()
            })
        };
        let runs = text.lines().enumerate().map(run).collect::<Result<_, Failure>>()?;
        Ok(Self { path: path.into(), runs })
    }

    /// Appends a run, and returns the table of its ratios to earlier runs.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(mut self, setting: Setting, rows: Vec<Entry>) -> Result<String, Failure> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let run = Run { commit: commit(), seconds, setting, rows };
        let cannot = |error: &dyn std::fmt::Display| {
            format!("cannot append the run to {}: {error}", self.path.display())
        };
        let line = serde_json::to_string(&run).map_err(|error| cannot(&error))? + "\n";
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| cannot(&error))?;
        self.runs.push(run);
        Ok(self.ratios())
    }

    /// The ratios of the last run.
    fn ratios(&self) -> String {
        let Some((now, earlier)) = self.runs.split_last() else { return String::new() };
        let comparable: Vec<_> = earlier.iter().filter(|run| run.setting == now.setting).collect();
        let head = ["benchmark", "unit", "current", "previous", "commit", "ratio"];
        let mut lines = vec![head.map(String::from)];
        for entry in &now.rows {
            let find = |run: &&Run| {
                let entry =
                    run.rows.iter().find(|other| other.name == entry.name && other.unit == entry.unit);
                entry.map(|entry| (entry.ours(), run.name()))
            };
            let before = comparable.iter().rev().find_map(find);
            let (figure, commit, ratio) = match before {
                Some((figure, commit)) => {
                    (report::figure_text(figure), commit, format!("{:.2}", entry.ours() / figure))
                }
                None => ["-"; 3].map(String::from).into(),
            };
            let current = report::figure_text(entry.ours());
            lines.push([entry.name.clone(), entry.unit.clone(), current, figure, commit, ratio]);
        }
        let mut text = report::aligned(&lines);
        if comparable.len() < earlier.len() {
            let others = earlier.len() - comparable.len();
            text +=
                &format!("{others} earlier runs were taken under other circumstances and are not compared\n");
        }
        text
    }
}

impl Run {
    fn name(&self) -> String {
        self.commit.clone().unwrap_or_else(|| "unknown".into())
    }
}

/// The commit of the sources that this program was built from.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let output = command.args(["-C", env!("CARGO_MANIFEST_DIR")]).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string())
    };
    let head = git(&["rev-parse", "--short", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { head } else { head + "+" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        harness::{Context, Outcome, Samples},
        row::Row,
    };

    fn entry(name: &str, figure: f64) -> Entry {
        let row = Row::lower(name, "us", "", |_| Err("this row is never measured".into()));
        let ours = Samples::new(vec![figure]).unwrap();
        Entry::new(&row, Outcome { ours, peers: Vec::new(), quantities: Vec::new(), left_out: Vec::new() })
    }

    fn setting(threads: usize) -> Setting {
        Setting::here(&Context { threads, smoke: false, peers: true })
    }

    /// The cells of the line of a row.
    fn line<'t>(table: &'t str, row: &str) -> Vec<&'t str> {
        let line =
            table.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("{row}: {table}"));
        line.split_whitespace().collect()
    }

    #[test]
    fn a_run_is_compared_with_the_newest_earlier_one_of_its_circumstances() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let append = |threads, rows: &[(&str, f64)]| {
            let rows = rows.iter().map(|&(name, figure)| entry(name, figure)).collect();
            History::load(&path).unwrap().append(setting(threads), rows).unwrap()
        };
        let first = append(2, &[("a/x", 8.0), ("a/y", 1.0)]);
        assert_eq!(line(&first, "a/x"), ["a/x", "us", "8.00", "-", "-", "-"]);
        append(2, &[("a/x", 4.0)]);
        append(3, &[("a/x", 100.0)]);
        let last = append(2, &[("a/x", 5.0), ("a/y", 3.0)]);
        // The run between has no `a/y`.
        assert_eq!((line(&last, "a/x")[3], line(&last, "a/x")[5]), ("4.00", "1.25"));
        assert_eq!((line(&last, "a/y")[3], line(&last, "a/y")[5]), ("1.00", "3.00"));
        assert!(last.contains("1 earlier runs were taken under other circumstances"), "{last}");
        assert_eq!(History::load(&path).unwrap().runs.len(), 4);
    }

    #[test]
    fn a_line_that_is_no_run_is_named_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        fs::write(&path, "what I measured\n").unwrap();
        let error = History::load(&path).err().expect("this is no history").to_string();
        assert!(error.starts_with("line 1 of ") && error.contains("notes is not a run"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "what I measured\n");
    }
}
