//! What a program observes: the results of its steps. Processes pass it to the one that compares it.

use anabranch::Status;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a step shows to the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    pub what: Observation,
    /// The status in each call of a callback that the step has added.
    #[serde(with = "statuses")]
    pub called: Vec<Status>,
    /// Whether a callback that panics was called by the thread that added it, because the task was done
    /// already.
    pub passed_on: bool,
}

/// The observable result of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Observation {
    Nothing,
    /// The step was refused because of its declaration.
    Refused(Refusal),
    /// The status of a task that has ended, and the chain of causes: the task itself first, then the tasks
    /// that it needed.
    Task(#[serde(with = "StatusName")] Status, Vec<String>),
    /// The result of a fence, or of a barrier that was waited for later.
    Captured(Captured),
    /// The failures that a wait reported, for the current group or for tasks in none, and the values that a
    /// barrier captured.
    Report(Option<Report>, Option<Captured>),
    /// The failures that were left in each group.
    GroupReports(Vec<Option<Report>>),
    /// The result of cancelling a task.
    CancelAnswer(bool),
    /// The result of a drain, and the values that the host objects still had if it failed.
    Drained(Box<Observation>, Vec<Option<Vec<u64>>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Refusal {
    Outside,
    NeverWritten,
    /// The device with this number is lost.
    Lost(usize),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Captured {
    Values(Vec<u64>),
    Failed(Vec<String>),
}

/// What a device has done wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The number of the device.
    pub device: usize,
    pub what: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}: {}", self.device, self.what)
    }
}

/// What a wait reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The oldest failures, oldest first.
    pub listed: Vec<String>,
    /// The number of newer ones.
    pub omitted: u64,
    /// The number of skipped tasks.
    pub skipped: u64,
}

impl Report {
    /// The runtime lists this many failures.
    pub const MOST_LISTED: usize = 64;
}

pub fn name(step: usize) -> String {
    format!("step {step}")
}

/// The status of the library, by name.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Status")]
#[non_exhaustive]
enum StatusName {
    Waiting,
    Running,
    Done,
    Failed,
    Skipped,
    Cancelled,
}

/// Several of them.
mod statuses {
    use super::{Deserialize, Serialize, Status, StatusName};
    use serde::{Deserializer, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Named(#[serde(with = "StatusName")] Status);

    pub fn serialize<S: Serializer>(all: &[Status], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(all.iter().map(|&status| Named(status)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Status>, D::Error> {
        let all = Vec::<Named>::deserialize(deserializer)?;
        Ok(all.into_iter().map(|Named(status)| status).collect())
    }
}
